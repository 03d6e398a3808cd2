// Measurement rounds that end on all ranks together, decided by rank 0's clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>

#include "clock.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

class Rounds {
public:
  // At least `least` rounds, and more until `slice_s` has passed; if rounds are slow, one is enough
  // once `max_s` has passed. The time starts at construction.
  Rounds(std::size_t least, double slice_s,
         double max_s = std::numeric_limits<double>::infinity()) noexcept
      : least_(least), slice_s_(slice_s), max_s_(max_s) {}

  // Collective, with the same `done` on all ranks: whether another round follows.
  [[nodiscard]] bool another(std::size_t done) const {
    const double spent_s = seconds(Clock::now() - begin_);
    const bool mine = done == 0 || spent_s < slice_s_ || (done < least_ && spent_s < max_s_);
    return of_first(mine ? 1.0 : 0.0) != 0.0;
  }

private:
  std::size_t least_;
  double slice_s_;
  double max_s_;
  Clock::time_point begin_ = Clock::now();
};

} // namespace seatrial::mpi
