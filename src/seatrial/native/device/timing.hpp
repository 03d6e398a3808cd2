// Times work by running it k and 2 k times and taking the difference, which cancels the overhead of
// starting a batch and reading the clock.
#pragma once

#include <cstdint>
#include <functional>

#include "device/device.hpp"

namespace seatrial::device {

// A sample: number of runs and elapsed time; an elapsed time of 0 means no sample.
struct Timed {
  std::uint64_t runs;
  double elapsed_s;
};

// Takes samples with the clock of `batch(runs)`, which does this many runs and returns their time.
class BatchTimer {
public:
  explicit BatchTimer(std::function<double(std::uint64_t runs)> batch);

  // k further runs must take about as long as the first k. If a batch was disturbed they do not;
  // after some attempts `elapsed_s` is 0 (no sample), and later batches are longer.
  [[nodiscard]] Timed sample();

private:
  [[nodiscard]] double faster_of_two();

  std::function<double(std::uint64_t)> batch_;
  std::uint64_t runs_ = 1;
};

// Uses the device's clock; `enqueue()` submits one run to the queue.
[[nodiscard]] BatchTimer device_timer(Queue& queue, std::function<void()> enqueue);

} // namespace seatrial::device
