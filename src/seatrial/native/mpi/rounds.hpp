// Rounds of measuring that end on all ranks at once, when the clock of rank 0 says so.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>

#include "clock.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

class Rounds {
public:
  // At least `least` rounds, and on until `slice_s` is over; where a round is slow, one is enough
  // once `most_s` is over. The time runs from here.
  Rounds(std::size_t least, double slice_s,
         double most_s = std::numeric_limits<double>::infinity()) noexcept
      : least_(least), slice_s_(slice_s), most_s_(most_s) {}

  // Collective, with the same `done` on all: whether another round follows these.
  [[nodiscard]] bool another(std::size_t done) const {
    const double spent_s = seconds(Clock::now() - begin_);
    const bool mine = done == 0 || spent_s < slice_s_ || (done < least_ && spent_s < most_s_);
    return of_first(mine ? 1.0 : 0.0) != 0.0;
  }

private:
  std::size_t least_;
  double slice_s_;
  double most_s_;
  Clock::time_point begin_ = Clock::now();
};

} // namespace seatrial::mpi
