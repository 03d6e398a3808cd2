// Computation to overlap with a non-blocking operation: a fixed number of steps that access no
// memory and call nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "clock.hpp"
#include "opaque.hpp"

namespace seatrial::mpi {

// Each step depends on the previous one (a linear congruential generator; constants of D. Knuth's
// MMIX).
inline void compute(std::uint64_t steps) noexcept {
  auto state = from_outside(std::uint64_t{1});
  for (; steps != 0; --steps)
    state = state * 6364136223846793005u + 1442695040888963407u;
  to_outside(state);
}

// The time of one step in seconds, the minimum of several tries.
[[nodiscard]] inline double time_of_step() {
  constexpr std::uint64_t steps = 20'000;
  double least_s = std::numeric_limits<double>::max();
  for (int i = 0; i < 20; ++i)
    least_s = std::min(least_s, timed([] { compute(steps); }).elapsed_s());
  return least_s / static_cast<double>(steps);
}

} // namespace seatrial::mpi
