// gpu.kernel-compile: the time to build a program of kernels from source until it can be launched,
// and the time of its first launches, to which drivers defer some of the work.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "clock.hpp"
#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "kernel_compile.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 64;
constexpr unsigned groups = 16;
constexpr std::uint32_t count = group * groups;

using Stencil = Kernel<const std::uint32_t*, std::uint32_t*, std::uint32_t>;
using Sums = Kernel<const std::uint32_t*, std::uint32_t*>;

[[nodiscard]] Source source(std::uint32_t salt) {
  return {.name = "kernel_compile.cl",
          .text = seatrial_kernels(),
          .defines = {"GROUP=" + std::to_string(group), "SALT=" + std::to_string(salt) + "U"},
          .kernels = {Stencil::declared("stencil"), Sums::declared("sums")}};
}

[[nodiscard]] std::uint32_t rotated(std::uint32_t x, std::uint32_t by) {
  return (x << by) | (x >> (32 - by));
}

// The expected results of the kernels.
struct Reference {
  Reference(const std::vector<std::uint32_t>& in, std::uint32_t salt) : out(count), sums(groups) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto before = i == 0 ? 0 : in[i - 1];
      const auto after = i + 1 == count ? 0 : in[i + 1];
      std::uint32_t x = before + 2 * in[i] + after;
      std::uint32_t y = i;
      for (std::uint32_t round = 0; round < 8; ++round) {
        x += y + salt;
        y = rotated(y, 13) ^ x;
        x = rotated(x, 7) + round;
      }
      out[i] = x ^ y;
      sums[i / group] += out[i];
    }
  }

  std::vector<std::uint32_t> out;
  std::vector<std::uint32_t> sums;
};

// One build: its times and its errors.
struct Built {
  double build_s;
  double first_run_s;
  double wrong; // number of wrong results
};

class Builder {
public:
  Builder(Device& device, bool is_optimised)
      : device_(device), is_optimised_(is_optimised), queue_(device.queue()), in_(device, count),
        out_(device, count), sums_(device, groups), numbers_(count) {
    std::mt19937 random(1);
    for (auto& number : numbers_)
      number = static_cast<std::uint32_t>(random());
    queue_->write(in_.memory(), 0, numbers_.data(), in_.bytes());
    queue_->finish();
  }

  [[nodiscard]] Built build() {
    poison();
    const auto salt = salt_++;
    const auto wanted = source_for(device_, source(salt), is_optimised_);
    std::unique_ptr<Module> module;
    std::optional<Stencil> stencil;
    std::optional<Sums> sums;
    const auto building = timed([&] {
      module = device_.build(wanted);
      stencil.emplace(*module, "stencil");
      sums.emplace(*module, "sums");
    });
    const auto running = timed([&] {
      (*stencil)(*queue_, {.groups = groups, .items = group}, in_, out_, count);
      (*sums)(*queue_, {.groups = groups, .items = group}, out_, sums_);
      queue_->finish();
    });
    return {.build_s = building.elapsed_s(),
            .first_run_s = running.elapsed_s(),
            .wrong = wrong_numbers(Reference(numbers_, salt))};
  }

private:
  void poison() {
    poison_arrays(*queue_, out_, sums_);
    queue_->finish();
  }

  [[nodiscard]] double wrong_numbers(const Reference& reference) {
    const auto out = on_host(*queue_, out_);
    const auto sums = on_host(*queue_, sums_);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      wrong += out[i] == reference.out[i] ? 0 : 1;
    for (std::size_t i = 0; i < sums.size(); ++i)
      wrong += sums[i] == reference.sums[i] ? 0 : 1;
    return static_cast<double>(wrong);
  }

  Device& device_;
  bool is_optimised_;
  std::unique_ptr<Queue> queue_;
  Array<std::uint32_t> in_;
  Array<std::uint32_t> out_;
  Array<std::uint32_t> sums_;
  std::vector<std::uint32_t> numbers_;
  // Not a fixed seed: a disk cache must not contain an earlier process's build.
  std::uint32_t salt_ = static_cast<std::uint32_t>(std::random_device{}());
};

struct Settings {};

void measure(Program& program, Team&, const ChosenDevices& chosen, const Settings&) {
  Builder builder(chosen[0], chosen.is_optimised());
  WorstError worst;
  worst.add(builder.build().wrong); // loads the compiler itself into memory
  const SampleCount samples(program);
  for (std::size_t i = 0; !samples.is_enough(i, i); ++i) {
    const auto built = builder.build();
    worst.add(built.wrong);
    const auto facts = facts_for_limit(chosen, 1);
    program.add(sample_event("build", i, built.build_s).add("device", facts));
    program.add(sample_event("first_run", i, built.first_run_s).add("device", facts));
  }
  program.check("error", worst.value());
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  // Disables the drivers' program caches: PoCL's, NVIDIA's, and Intel's and Mesa's.
  for (const auto& [name, value] : {std::array{"POCL_KERNEL_CACHE", "0"},
                                    {"CUDA_CACHE_DISABLE", "1"},
                                    {"NEO_CACHE_PERSISTENT", "0"},
                                    {"MESA_SHADER_CACHE_DISABLE", "true"}})
    setenv(name, value, 1);
  return seatrial::device::run_program(
      "kernel_compile", argc, argv, [](seatrial::Arguments&) { return seatrial::Settings{}; },
      [] { return std::vector{seatrial::source(1)}; }, seatrial::measure);
}
