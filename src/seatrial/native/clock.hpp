// The clock of every host-timed region.
#pragma once

#include <algorithm>
#include <chrono>
#include <ctime>

#include <cstddef>
#include <span>
#include <sys/time.h>

namespace seatrial {

// CLOCK_MONOTONIC: read through the vDSO without a system call (20-30 ns), never set back, and the
// same on all CPUs, so that time stamps of different threads may be subtracted.
using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds(Clock::duration duration) noexcept {
  return std::chrono::duration<double>(duration).count();
}

// Start and end of a timed region in one thread.
struct Interval {
  Clock::time_point start;
  Clock::time_point end;

  [[nodiscard]] double elapsed_s() const noexcept { return seconds(end - start); }
};

template <class Action>
[[nodiscard]] Interval timed(Action action) {
  Interval interval;
  interval.start = Clock::now();
  action();
  interval.end = Clock::now();
  return interval;
}

// From the first start to the last end: shared work is done when the slowest thread is.
[[nodiscard]] inline double elapsed_s(std::span<const Interval> threads) noexcept {
  auto whole = threads.front();
  for (const auto& thread : threads) {
    whole.start = std::min(whole.start, thread.start);
    whole.end = std::max(whole.end, thread.end);
  }
  return whole.elapsed_s();
}

[[nodiscard]] inline double in_seconds(const timespec& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

[[nodiscard]] inline double in_seconds(const timeval& time) noexcept {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

} // namespace seatrial
