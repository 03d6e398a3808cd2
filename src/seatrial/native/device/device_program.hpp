// What every program that measures devices does around its measurement.
//
//   PROGRAM --record DIR --cpus LIST [--backend cuda|opencl|auto] [--devices 0,1] ...
//   PROGRAM --list [auto|cuda|opencl]     the devices of this machine, as one JSON object
//   PROGRAM --compile CAPABILITY [FILE]   every kernel for GPUs of that capability, with the NVRTC
//                                         of that file: registers and spills, no GPU needed
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/devices.hpp"
#include "device/kernel.hpp"
#include "device/nvrtc.hpp"
#include "program.hpp"
#include "team.hpp"

namespace seatrial::device {

// The arguments that all of them take beside the common ones.
struct DeviceArguments {
  explicit DeviceArguments(Arguments& arguments)
      : backend(arguments.choice("--backend", "auto", {"auto", "cuda", "opencl"})),
        platform(arguments.find("--platform").value_or("")),
        nvrtc(arguments.find("--nvrtc").value_or("")),
        is_optimised(arguments.flag("--optimised", true)),
        is_as_gpu(arguments.flag("--as-gpu", false)) {
    if (arguments.find("--devices"))
      indices = arguments.numbers<std::size_t>("--devices", 0, 1023);
  }

  std::string backend;
  std::string platform;
  std::string nvrtc;
  bool is_optimised; // kernels without it tell a compiler's faults from ours
  bool is_as_gpu;    // a processor gets what GPUs get: for tests
  std::vector<std::size_t> indices = {0};
};

// The devices that were asked for. Each is driven by the member of the team of the same number.
class Chosen {
public:
  Chosen(const Devices& devices, const DeviceArguments& arguments)
      : is_optimised_(arguments.is_optimised) {
    devices.require_one();
    for (const auto index : arguments.indices) {
      if (index >= devices.size())
        throw Skip("there is no device " + std::to_string(index) + ": " +
                   std::to_string(devices.size()) + " found");
      chosen_.push_back(&devices[index]);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return chosen_.size(); }
  [[nodiscard]] Device& operator[](std::size_t i) const { return *chosen_[i]; }
  [[nodiscard]] bool is_optimised() const noexcept { return is_optimised_; }

private:
  std::vector<Device*> chosen_;
  bool is_optimised_;
};

// --precision fp32|fp64
[[nodiscard]] inline bool asks_for_fp64(Arguments& arguments) {
  return arguments.choice("--precision", "fp32", {"fp32", "fp64"}) == "fp64";
}

// `action(Real{})` in the precision that was asked for. Throws Unsupported where a device has none.
template <class Action>
void in_precision(const Chosen& chosen, bool is_fp64, Action action) {
  if (!is_fp64) {
    action(float{});
    return;
  }
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (!chosen[i].facts().has_fp64)
      throw Unsupported("fp64", chosen[i].facts().name + " has no double precision");
  action(double{});
}

// Kernels of one file for one device, with what all dialects need to know of it.
[[nodiscard]] inline Source source_for(const Device& device, Source source, bool is_optimised) {
  if (device.facts().is_cpu)
    source.defines.emplace_back("DEVICE_IS_CPU=1");
  source.is_optimised = is_optimised;
  return source;
}

namespace detail {

[[nodiscard]] inline int list_devices(std::string_view backend) {
  std::vector<json::Object> found;
  std::vector<json::Object> absent;
  for (const std::string_view each : {"cuda", "opencl"}) {
    if (backend != "auto" && backend != each)
      continue;
    const Devices devices(each, "", "");
    for (std::size_t i = 0; i < devices.size(); ++i)
      found.push_back(devices[i].facts().document());
    for (const auto& lack : devices.absent())
      absent.push_back(
          json::Object().add("backend", lack.backend).add("need", lack.need).add("why", lack.why));
  }
  std::printf("%s\n", json::Object().add("devices", found).add("absent", absent).text().c_str());
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::system);
}

// A line of JSON for each source: what the compiler says of its kernels.
[[nodiscard]] inline int compile_all(const std::vector<Source>& sources, const char* capability,
                                     const std::string& nvrtc) {
  const Nvrtc compiler(nvrtc);
  for (const auto& source : sources) {
    const auto compiled = compiler.compile(source, std::atoi(capability));
    std::vector<json::Object> kernels;
    for (const auto& use : uses_of(compiled.log))
      kernels.push_back(json::Object()
                            .add("kernel", use.kernel)
                            .add("registers", use.registers)
                            .add("spill_bytes", use.spilled)
                            .add("local_bytes", use.local));
    std::printf("%s\n", json::Object()
                            .add("source", source.name)
                            .add("defines", source.defines)
                            .add("capability", std::atoi(capability))
                            .add("nvrtc", compiler.version())
                            .add("code_bytes", compiled.code.size())
                            .add("kernels", kernels)
                            .text()
                            .c_str());
  }
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::system);
}

} // namespace detail

// `prepare(arguments)` takes the benchmark's own arguments; `sources()` are its kernels in every
// variant; `measure(program, team, chosen, settings)` does the rest. Devices are opened before the
// threads are bound: a driver's own threads are to run everywhere.
template <class Prepare, class Sources, class Measure>
int run_program(const char* name, int argc, char** argv, Prepare prepare, Sources sources,
                Measure measure) noexcept {
  try {
    const std::string_view word = argc > 1 ? argv[1] : "";
    if (word == "--list" && argc <= 3)
      return detail::list_devices(argc == 3 ? argv[2] : "auto");
    if (word == "--compile" && (argc == 3 || argc == 4))
      return detail::compile_all(sources(), argv[2], argc == 4 ? argv[3] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return static_cast<int>(Exit::software);
  }
  return seatrial::run_program(
      name, argc, argv,
      [&](Arguments& arguments) {
        return std::pair(DeviceArguments(arguments), prepare(arguments));
      },
      [&](seatrial::Program& program, const auto& settings) {
        const auto& [wanted, own] = settings;
        std::optional<Devices> devices;
        std::optional<Chosen> opened;
        try {
          devices.emplace(wanted.backend, wanted.platform, wanted.nvrtc, wanted.is_as_gpu);
          opened.emplace(*devices, wanted);
        } catch (...) { // a record begins with who wrote it, whatever it says then
          const Team team(program.cpus);
          program.hello(team);
          throw;
        }
        const Chosen& chosen = *opened;
        if (program.cpus.size() != chosen.size())
          throw Failure(Exit::usage, "--cpus: one CPU for each device");
        Team team(program.cpus);
        program.hello(team);
        std::vector<json::Object> documents;
        for (std::size_t i = 0; i < chosen.size(); ++i)
          documents.push_back(chosen[i].facts().document());
        program.note("devices", documents);
        measure(program, team, chosen, own);
      });
}

} // namespace seatrial::device
