// How long work takes: k times and 2 k times, and the difference, so that neither the start of a
// batch nor the reading of its time counts.
#pragma once

#include <cstdint>
#include <functional>

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
  explicit TrainTimer(std::function<double(std::uint64_t runs)> batch);

  // k more runs must take about as long as k: where something held up one of the batches they do
  // not, and after some attempts `elapsed_s` is 0: no sample, and longer batches from then on.
  [[nodiscard]] Timed sample();

private:
  [[nodiscard]] double quicker();

  std::function<double(std::uint64_t)> batch_;
  std::uint64_t runs_ = 1;
};

// By the device's own clock; `enqueue()` hands one run of the work to the queue.
[[nodiscard]] TrainTimer device_timer(Queue& queue, std::function<void()> enqueue);

} // namespace seatrial::device
