// Computation to overlap with a non-blocking operation: a fixed number of steps that access no
// memory and call nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "clock.hpp"
#include "optimisation_barrier.hpp"

namespace seatrial::mpi {

// Each step depends on the previous one (a linear congruential generator; constants of D. Knuth's
// MMIX).
inline void compute(std::uint64_t steps) noexcept {
  auto state = do_not_fold(std::uint64_t{1});
  for (; steps != 0; --steps)
    state = state * 6364136223846793005u + 1442695040888963407u;
  do_not_eliminate(state);
}

// The time of one step in seconds, the minimum of several tries.
[[nodiscard]] inline double time_of_step() {
  constexpr std::uint64_t steps = 20'000;
  double min_s = std::numeric_limits<double>::max();
  for (int i = 0; i < 20; ++i)
    min_s = std::min(min_s, timed([] { compute(steps); }).elapsed_s());
  return min_s / static_cast<double>(steps);
}

} // namespace seatrial::mpi
