// Measurement rounds that end on all ranks together, decided by rank 0's clock.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <utility>

#include "clock.hpp"
#include "mpi/mpi.hpp"
#include "mpi/program.hpp"

namespace seatrial::mpi {

class Rounds {
public:
  // At least `least` rounds, and more until the program's slice has passed; if rounds are slow, one
  // is enough once `max_s` has passed. The time starts with the first.
  Rounds(Program& program, std::size_t least,
         double max_s = std::numeric_limits<double>::infinity()) noexcept
      : program_(program), least_(least), slice_s_(program.slice_s), max_s_(max_s) {}

  // Collective, with the same `done` on all ranks: lets the runs that this one is compared with
  // take a turn; then whether another round follows.
  [[nodiscard]] bool another(std::size_t done) {
    program_.turns.pass();
    const auto now = Clock::now();
    if (!std::exchange(has_begun_, true)) {
      begin_ = now; // after the set-up of the others
      program_.phase.begin();
    }
    program_.phase.end();
    const double spent_s = seconds(now - begin_);
    const bool mine = done == 0 || spent_s < slice_s_ || (done < least_ && spent_s < max_s_);
    return of_first(mine ? 1.0 : 0.0) != 0.0;
  }

private:
  Program& program_;
  std::size_t least_;
  double slice_s_;
  double max_s_;
  bool has_begun_ = false;
  Clock::time_point begin_;
};

} // namespace seatrial::mpi
