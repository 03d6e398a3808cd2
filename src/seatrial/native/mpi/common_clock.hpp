// A common clock for all ranks, so that they can agree on a start time.
//
// Ranks of one host share CLOCK_MONOTONIC. The clock of another host is related to rank 0's by
// exchanging time stamps: the reply was sent between the request and its arrival, so each exchange
// bounds the offset from both sides, and many exchanges bound it tightly (the method of SKaMPI; W.
// Gropp, E. Lusk, "Reproducible measurements of MPI performance characteristics", EuroPVM/MPI 1999,
// and T. Worsch, R. Reussner, W. Augustin, "On benchmarking collective MPI operations", 2002).
// Clocks drift, linearly over seconds: S. Hunold, A. Carpen-Amarie, "Reproducible MPI benchmarking
// is still not as easy as you think", IEEE TPDS 27(12), 2016.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "clock.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

using Nanoseconds = std::int64_t;

// The time on this rank's clock.
[[nodiscard]] inline Nanoseconds own_time() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

class CommonClock {
public:
  // Collective.
  CommonClock() {
    int same = 1;
    measure();
    is_common_ = low_ <= 0 && 0 <= high_;
    const int mine = is_common_ ? 1 : 0;
    MPI_Allreduce(&mine, &same, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    all_common_ = same == 1;
    first_ = last_ = middle();
  }

  // Collective: measures the offsets again, and the error of the prediction. If all ranks share one
  // clock, only the final measurement, requested by `always`, is worth its time.
  void measure_again(bool always = false) {
    constexpr Nanoseconds pause = 50'000'000;
    if (!always && (all_common_ || of_first(own_time() - last_.at > pause ? 1.0 : 0.0) == 0.0))
      return;
    measure();
    const Nanoseconds predicted = is_common_ ? 0 : offset(at_);
    const auto beyond = std::max({Nanoseconds{0}, low_ - predicted, predicted - high_});
    // A shared clock is assumed exact unless a measurement contradicts it.
    error_ns_ = std::max(error_ns_, is_common_ ? beyond : std::abs(predicted - middle().offset));
    bound_ns_ = std::max(bound_ns_, is_common_ ? beyond : beyond + (high_ - low_) / 2);
    last_ = middle();
  }

  // Converts rank 0's time `common` to this rank's clock.
  [[nodiscard]] Nanoseconds to_own(Nanoseconds common) const noexcept {
    return is_common_ ? common : common + offset(common);
  }

  // The current time of rank 0's clock, as predicted by this rank.
  [[nodiscard]] Nanoseconds common_time() const noexcept {
    const auto own = own_time();
    return is_common_ ? own : own - offset(own - last_.offset);
  }

  [[nodiscard]] bool all_common() const noexcept { return all_common_; }

  // The error of the prediction: as measured, and its upper bound if one direction of the messages
  // took all the time.
  struct Error {
    double seen_s = 0;
    double bound_s = 0;
  };

  // Collective: the maximum over all ranks, on all of them.
  [[nodiscard]] Error error() const {
    const double mine[2] = {static_cast<double>(error_ns_) * 1e-9,
                            static_cast<double>(bound_ns_) * 1e-9};
    double most[2] = {};
    MPI_Allreduce(mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return {.seen_s = most[0], .bound_s = most[1]};
  }

private:
  // Offset of this clock from rank 0's, at a time of rank 0.
  struct Reading {
    Nanoseconds at = 0;
    Nanoseconds offset = 0;
  };

  [[nodiscard]] Reading middle() const noexcept { return {at_, low_ + (high_ - low_) / 2}; }

  // Linear through the first and the last measurement.
  [[nodiscard]] Nanoseconds offset(Nanoseconds at) const noexcept {
    if (last_.at <= first_.at)
      return last_.offset;
    const auto drift = static_cast<double>(last_.offset - first_.offset) /
                       static_cast<double>(last_.at - first_.at);
    return last_.offset + std::llround(drift * static_cast<double>(at - last_.at));
  }

  // Collective: bounds of this clock's offset from rank 0's, and when they were found.
  void measure() {
    MPI_Barrier(MPI_COMM_WORLD);
    const int ranks = world_size();
    low_ = high_ = 0;
    at_ = own_time();
    for (int other = 1; other < ranks; ++other)
      if (world_rank() == 0)
        ask(other);
      else if (world_rank() == other)
        answer();
    MPI_Barrier(MPI_COMM_WORLD);
  }

  static constexpr int exchanges = 40;
  static constexpr int tag = 77;

  static void ask(int other) {
    Nanoseconds bounds[3] = {std::numeric_limits<Nanoseconds>::min(),
                             std::numeric_limits<Nanoseconds>::max(), 0};
    for (int i = 0; i < exchanges; ++i) {
      Nanoseconds theirs = 0;
      const auto asked = own_time();
      MPI_Send(&asked, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD);
      MPI_Recv(&theirs, 1, MPI_INT64_T, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const auto answered = own_time();
      bounds[0] = std::max(bounds[0], theirs - answered);
      bounds[1] = std::min(bounds[1], theirs - asked);
      bounds[2] = answered;
    }
    MPI_Send(bounds, 3, MPI_INT64_T, other, tag, MPI_COMM_WORLD);
  }

  void answer() {
    for (int i = 0; i < exchanges; ++i) {
      Nanoseconds asked = 0;
      MPI_Recv(&asked, 1, MPI_INT64_T, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const auto mine = own_time();
      MPI_Send(&mine, 1, MPI_INT64_T, 0, tag, MPI_COMM_WORLD);
    }
    Nanoseconds bounds[3] = {};
    MPI_Recv(bounds, 3, MPI_INT64_T, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    // Drift during the exchanges may make the bounds cross.
    low_ = std::min(bounds[0], bounds[1]);
    high_ = std::max(bounds[0], bounds[1]);
    at_ = bounds[2];
  }

  bool is_common_ = false;
  bool all_common_ = false;
  Reading first_;
  Reading last_;
  Nanoseconds low_ = 0;
  Nanoseconds high_ = 0;
  Nanoseconds at_ = 0;
  Nanoseconds error_ns_ = 0;
  Nanoseconds bound_ns_ = 0;
};

} // namespace seatrial::mpi
