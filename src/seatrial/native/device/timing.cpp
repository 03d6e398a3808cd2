#include "device/timing.hpp"

#include <algorithm>
#include <utility>

namespace seatrial::device {

namespace {

constexpr double batch_s = 2e-3;
constexpr std::uint64_t most_runs = 1 << 14;
constexpr double disagreement = 2;
constexpr int attempts = 3;

} // namespace

TrainTimer::TrainTimer(std::function<double(std::uint64_t runs)> batch) : batch_(std::move(batch)) {
  batch_(1); // loads code and memory onto the device
  for (double spent_s = quicker(); spent_s < batch_s && runs_ < most_runs; spent_s = quicker()) {
    const double growth = std::clamp(1.2 * batch_s / std::max(spent_s, 1e-6), 2.0, 100.0);
    runs_ = std::min(most_runs, static_cast<std::uint64_t>(static_cast<double>(runs_) * growth));
  }
}

Timed TrainTimer::sample() {
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double once_s = batch_(runs_);
    const double more_s = batch_(2 * runs_) - once_s;
    if (more_s > once_s / disagreement && more_s < once_s * disagreement)
      return {.runs = runs_, .elapsed_s = more_s};
  }
  const auto tried =
      std::exchange(runs_, std::min(most_runs, 2 * runs_)); // longer batches are disturbed less
  return {.runs = tried, .elapsed_s = 0};
}

// The shorter of two batches: a disturbed one would make short batches look long enough.
double TrainTimer::quicker() {
  return std::min(batch_(runs_), batch_(runs_));
}

TrainTimer device_timer(Queue& queue, std::function<void()> enqueue) {
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
