// How long work takes on a device, by its own clock: k times and 2 k times, and the difference, so
// that neither the start of a batch nor the reading of its time counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "device/device.hpp"

namespace seatrial::device {

// A sample: so many runs of the work in so much time of the device.
struct Timed {
  std::uint64_t runs;
  double elapsed_s;
};

// `enqueue()` hands one run of the work to the queue.
class DeviceTimer {
public:
  DeviceTimer(Queue& queue, std::function<void()> enqueue)
      : queue_(queue), enqueue_(std::move(enqueue)) {
    batch(1); // brings code and memory to the device, and the clock up
    for (double spent_s = batch(runs_); spent_s < batch_s && runs_ < most_runs;
         spent_s = batch(runs_)) {
      const double wanted = 1.2 * batch_s / std::max(spent_s, 1e-6);
      runs_ = std::min(most_runs, static_cast<std::uint64_t>(static_cast<double>(runs_) *
                                                             std::clamp(wanted, 2.0, 100.0)));
    }
  }

  // Some times the difference is nothing: the host was held up in the shorter batch. `elapsed_s`
  // is then 0 or less, and the sample none.
  [[nodiscard]] Timed sample() {
    const double once_s = batch(runs_);
    const double twice_s = batch(2 * runs_);
    return {.runs = runs_, .elapsed_s = twice_s - once_s};
  }

private:
  static constexpr double batch_s = 4e-3;
  static constexpr std::uint64_t most_runs = 1 << 14;

  double batch(std::uint64_t runs) {
    const auto begin = queue_.mark();
    for (std::uint64_t i = 0; i < runs; ++i)
      enqueue_();
    const auto end = queue_.mark();
    queue_.finish();
    return queue_.seconds_between(*begin, *end);
  }

  Queue& queue_;
  std::function<void()> enqueue_;
  std::uint64_t runs_ = 1;
};

} // namespace seatrial::device
