#include "device/timing.hpp"

#include <algorithm>
#include <utility>

namespace seatrial::device {

namespace {

constexpr double batch_s = 2e-3;
constexpr std::uint64_t max_runs = 1 << 14;
constexpr double disagreement = 2;
constexpr int attempts = 3;

} // namespace

BatchTimer::BatchTimer(std::function<double(std::uint64_t runs)> batch) : batch_(std::move(batch)) {
  batch_(1); // loads code and memory onto the device
  for (double spent_s = faster_of_two(); spent_s < batch_s && runs_ < max_runs;
       spent_s = faster_of_two()) {
    const double growth = std::clamp(1.2 * batch_s / std::max(spent_s, 1e-6), 2.0, 100.0);
    runs_ = std::min(max_runs, static_cast<std::uint64_t>(static_cast<double>(runs_) * growth));
  }
}

Timed BatchTimer::sample() {
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double once_s = batch_(runs_);
    const double more_s = batch_(2 * runs_) - once_s;
    if (more_s > once_s / disagreement && more_s < once_s * disagreement)
      return {.runs = runs_, .elapsed_s = more_s};
  }
  const auto tried =
      std::exchange(runs_, std::min(max_runs, 2 * runs_)); // longer batches are disturbed less
  return {.runs = tried, .elapsed_s = 0};
}

// The shorter of two batches: a disturbed one would make short batches look long enough.
double BatchTimer::faster_of_two() {
  return std::min(batch_(runs_), batch_(runs_));
}

BatchTimer device_timer(Queue& queue, std::function<void()> enqueue) {
  return BatchTimer([&queue, enqueue = std::move(enqueue)](std::uint64_t runs) {
    const auto begin = queue.mark();
    for (std::uint64_t i = 0; i < runs; ++i)
      enqueue();
    const auto end = queue.mark();
    queue.finish();
    return queue.seconds_between(*begin, *end);
  });
}

} // namespace seatrial::device
