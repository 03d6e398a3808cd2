// How long work takes: k times and 2 k times, and the difference, so that neither the start of a
// batch nor the reading of its time counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>

#include "device/device.hpp"

namespace seatrial::device {

// A sample: so many runs of the work in so much time; none where that is 0.
struct Timed {
  std::uint64_t runs;
  double elapsed_s;
};

// Takes samples by the clock that `batch(runs)` reads: it does so many runs and says how long they
// took.
class TrainTimer {
public:
  explicit TrainTimer(std::function<double(std::uint64_t runs)> batch) : batch_(std::move(batch)) {
    batch_(1); // brings code and memory to the device
    for (double spent_s = quicker(); spent_s < batch_s && runs_ < most_runs; spent_s = quicker()) {
      const double growth = std::clamp(1.2 * batch_s / std::max(spent_s, 1e-6), 2.0, 100.0);
      runs_ = std::min(most_runs, static_cast<std::uint64_t>(static_cast<double>(runs_) * growth));
    }
  }

  // k more runs must take about as long as k: where something held up one of the batches they do
  // not, and after some attempts `elapsed_s` is 0: no sample, and longer batches from then on.
  [[nodiscard]] Timed sample() {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      const double once_s = batch_(runs_);
      const double more_s = batch_(2 * runs_) - once_s;
      if (more_s > once_s / disagreement && more_s < once_s * disagreement)
        return {.runs = runs_, .elapsed_s = more_s};
    }
    const auto tried =
        std::exchange(runs_, std::min(most_runs, 2 * runs_)); // longer trains suffer less
    return {.runs = tried, .elapsed_s = 0};
  }

private:
  static constexpr double batch_s = 2e-3;
  static constexpr std::uint64_t most_runs = 1 << 14;
  static constexpr double disagreement = 2;
  static constexpr int attempts = 3;

  // Of two batches: one that was held up makes short trains look long.
  [[nodiscard]] double quicker() { return std::min(batch_(runs_), batch_(runs_)); }

  std::function<double(std::uint64_t)> batch_;
  std::uint64_t runs_ = 1;
};

// By the device's own clock; `enqueue()` hands one run of the work to the queue.
[[nodiscard]] inline TrainTimer device_timer(Queue& queue, std::function<void()> enqueue) {
  return TrainTimer([&queue, enqueue = std::move(enqueue)](std::uint64_t runs) {
    const auto begin = queue.mark();
    for (std::uint64_t i = 0; i < runs; ++i)
      enqueue();
    const auto end = queue.mark();
    queue.finish();
    return queue.seconds_between(*begin, *end);
  });
}

} // namespace seatrial::device
