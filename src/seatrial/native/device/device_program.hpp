// The frame of every device benchmark program.
//
//   PROGRAM --record DIR --cpus LIST [--backend cuda|opencl|auto] [--devices 0,1] ...
//                                         a CPU for the thread that drives each device
//   PROGRAM --list [auto|cuda|opencl]     the devices of this machine, as one JSON object
//   PROGRAM --compile CAPABILITY [FILE]   every kernel for GPUs of that capability, with the NVRTC
//                                         of that file: registers and spills, no GPU needed
#pragma once

#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/devices.hpp"
#include "device/kernel.hpp"
#include "program.hpp"
#include "team.hpp"

namespace seatrial::device {

// The arguments that all device programs take beside the common ones.
struct DeviceArguments {
  explicit DeviceArguments(Arguments& arguments);

  std::string backend;
  std::string platform;
  std::string nvrtc;
  bool is_optimised;                      // unoptimised kernels separate compiler bugs from ours
  bool is_as_gpu;                         // treat a CPU as a GPU: for tests
  std::vector<std::size_t> indices = {0}; // empty: --devices none
};

// Whether the host computes as well: then `--cpus` has a CPU for each of its threads after those
// that drive the devices, and there may be no device.
enum class HostThreads { none, some };

// The requested devices. Each is driven by the team member of the same number.
class ChosenDevices {
public:
  ChosenDevices(const Devices& devices, const DeviceArguments& arguments);

  [[nodiscard]] std::size_t size() const noexcept { return chosen_.size(); }
  [[nodiscard]] Device& operator[](std::size_t i) const { return *chosen_[i]; }
  [[nodiscard]] bool is_optimised() const noexcept { return is_optimised_; }

private:
  std::vector<Device*> chosen_;
  bool is_optimised_;
};

// --precision fp32|fp64
[[nodiscard]] bool fp64_requested(Arguments& arguments);

// Calls `action(Real{})` in the requested precision. Throws Unsupported if a device does not
// support it.
template <class Action>
void in_precision(const ChosenDevices& chosen, bool is_fp64, Action action) {
  if (!is_fp64) {
    action(float{});
    return;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (!chosen[i].facts().has_fp64)
      throw Unsupported("fp64", chosen[i].facts().name + " has no double precision");
  action(double{});
}

// The kernels of one file for one device, with the defines that the dialects need.
[[nodiscard]] Source source_for(const Device& device, Source source, bool is_optimised);

namespace detail {

[[nodiscard]] int list_devices(std::string_view backend);

// Prints one JSON line per source: the compiler's resource report for its kernels.
[[nodiscard]] int compile_all(const std::vector<Source>& sources, const char* capability,
                              const std::string& nvrtc);

// The requested devices, opened before the threads are bound: a driver's own threads must be free
// to run on any CPU.
class OpenedDevices {
public:
  OpenedDevices(seatrial::Program& program, const DeviceArguments& wanted, HostThreads threads);

  ChosenDevices& chosen() noexcept { return *chosen_; }
  Team& team() noexcept { return *team_; }

private:
  std::optional<Devices> devices_;
  std::optional<ChosenDevices> chosen_;
  std::optional<Team> team_;
};

} // namespace detail

// --list and --compile: the exit status, or none if the program is to measure. `sources()` returns
// its kernels in every variant.
template <class Sources>
[[nodiscard]] std::optional<int> answered(const char* name, int argc, char** argv,
                                          Sources sources) noexcept {
  try {
    const std::string_view word = argc > 1 ? argv[1] : "";
    if (word == "--list" && argc <= 3)
      return detail::list_devices(argc == 3 ? argv[2] : "auto");
    if (word == "--compile" && (argc == 3 || argc == 4))
      return detail::compile_all(sources(), argv[2], argc == 4 ? argv[3] : "");
    return std::nullopt;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return static_cast<int>(Exit::software);
  }
}

// `prepare(arguments)` reads the benchmark's own arguments; `sources()` returns its kernels in
// every variant; `measure(program, team, chosen, settings)` does the rest. Devices are opened
// before the threads are bound: a driver's own threads must be free to run on any CPU.
template <class Prepare, class Sources, class Measure>
int run_program(const char* name, int argc, char** argv, Prepare prepare, Sources sources,
                Measure measure, HostThreads threads = HostThreads::none) noexcept {
  if (const auto status = answered(name, argc, argv, sources))
    return *status;
  return seatrial::run_program(
      name, argc, argv,
      [&](Arguments& arguments) {
        return std::pair(DeviceArguments(arguments), prepare(arguments));
      },
      [&](seatrial::Program& program, const auto& settings) {
        const auto& [wanted, own] = settings;
        detail::OpenedDevices opened(program, wanted, threads);
        measure(program, opened.team(), std::as_const(opened.chosen()), own);
      });
}

} // namespace seatrial::device
