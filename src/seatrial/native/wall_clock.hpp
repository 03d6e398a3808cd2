// The time of day of an event, for other tools; never used to measure durations.
#pragma once

#include <chrono>

namespace seatrial {

// Seconds since the epoch.
[[nodiscard]] inline double wall_clock_s() noexcept {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

} // namespace seatrial
