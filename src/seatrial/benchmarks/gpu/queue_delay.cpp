// gpu.queue-delay: the time until 1, 2 and 4 kernels complete on an idle queue, and the time per
// kernel in a long batch, by the host's clock.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/points.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "queue_delay.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 32;
constexpr std::array<unsigned, 3> queued = {1, 2, 4}; // numbers of kernels, as in SHOC's QueueDelay

using Tick = Kernel<std::uint32_t*>;

[[nodiscard]] Source source() {
  return {.name = "queue_delay.cl",
          .text = seatrial_kernels(),
          .defines = {},
          .kernels = {Tick::declared("tick")}};
}

[[nodiscard]] std::vector<SeriesPoint> points() {
  std::vector<SeriesPoint> all;
  for (const auto kernels : queued)
    all.push_back({.series = "delay", .axis = "kernels", .at = kernels, .work = {{"trials", 1.0}}});
  all.push_back({.series = "launch", .axis = "", .at = 0, .work = {{"launches", 1.0}}});
  return all;
}

class Ticking : public PointRunner {
public:
  Ticking(Device& device, bool is_optimised)
      : queue_(device.queue()), module_(device.build(source_for(device, source(), is_optimised))),
        tick_(*module_, "tick"), counters_(device, group) {}

  [[nodiscard]] double error_before() override {
    poison();
    for (const auto kernels : queued)
      static_cast<void>(trial_s(kernels));
    const double error = error_after();
    poison();
    return error;
  }

  [[nodiscard]] Timed sample(std::size_t point) override {
    if (point == queued.size()) {
      if (!timer_)
        timer_.emplace([this](std::uint64_t runs) { return trial_s(runs); });
      return timer_->sample();
    }
    constexpr std::uint64_t trials = 16;
    double spent_s = 0;
    for (std::uint64_t i = 0; i < trials; ++i)
      spent_s += trial_s(queued[point]);
    return {.runs = trials, .elapsed_s = spent_s};
  }

  // The largest difference of any counter from the number of launches.
  [[nodiscard]] double error_after() override {
    const auto counters = on_host(*queue_, counters_);
    const std::uint32_t expected = poisoned + launches_;
    double worst = 0;
    for (const auto counter : counters) {
      const auto off = static_cast<std::int32_t>(counter - expected);
      worst = std::max(worst, std::abs(static_cast<double>(off)));
    }
    return worst;
  }

private:
  static constexpr std::uint32_t poisoned = 0xffffffff; // a count that no run reaches

  void poison() {
    queue_->fill(counters_.memory(), 0, poisoned, counters_.bytes());
    queue_->finish();
    launches_ = 0;
  }

  // The time from the first enqueue on the idle queue to the end of the last kernel.
  [[nodiscard]] double trial_s(std::uint64_t kernels) {
    const auto interval = timed([&] {
      for (std::uint64_t i = 0; i < kernels; ++i)
        tick_(*queue_, {.groups = 1, .items = group}, counters_);
      queue_->finish();
    });
    launches_ += static_cast<std::uint32_t>(kernels); // modulo 2^32, like the counters
    return interval.elapsed_s();
  }

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Tick tick_;
  Array<std::uint32_t> counters_;
  std::uint32_t launches_ = 0; // since the counters were poisoned
  std::optional<BatchTimer> timer_;
};

struct Settings {};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings&) {
  measure_points(program, team, chosen, points(), [&](Device& device) {
    return std::make_unique<Ticking>(device, chosen.is_optimised());
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program(
      "queue_delay", argc, argv, [](seatrial::Arguments&) { return seatrial::Settings{}; },
      [] { return std::vector{seatrial::source()}; }, seatrial::measure);
}
