// The cache line bounce between two ranks of one host: what no message between them can beat.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "bounce.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// Memory that both ranks of a communicator of two have mapped.
class SharedLine {
public:
  // Collective over `pair`, whose ranks are on one host.
  explicit SharedLine(MPI_Comm pair) : pair_(pair) {
    MPI_Comm_rank(pair, &rank_);
    // Room to align in. The first rank touches it first: the page is at home on its node.
    const MPI_Aint bytes = rank_ == 0 ? sizeof(BounceLines) + alignof(BounceLine) : 0;
    void* base = nullptr;
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, pair, &base, &window_);
    MPI_Aint size = 0;
    int unit = 0;
    MPI_Win_shared_query(window_, 0, &size, &unit, &base);
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    const auto aligned = (address + alignof(BounceLine) - 1) / alignof(BounceLine);
    // Each mapping has the same offset within its page, so both align alike.
    lines_ = reinterpret_cast<BounceLines*>(aligned * alignof(BounceLine));
  }
  ~SharedLine() { MPI_Win_free(&window_); }
  SharedLine(const SharedLine&) = delete;
  SharedLine& operator=(const SharedLine&) = delete;

  // Collective: the time of one trip in seconds, on the first rank; 0 on the other.
  double measure(std::uint64_t round_trips) {
    if (rank_ == 0)
      lines_ = new (lines_) BounceLines;
    MPI_Barrier(pair_);
    const BounceWord last = 2 * round_trips;
    Interval timed;
    timed.start = Clock::now();
    for (auto& [word] : *lines_) {
      lost_ += bounce(word, rank_ == 0 ? 1 : 2, last);
      while (word.load(std::memory_order_acquire) < last) {
      }
    }
    timed.end = Clock::now();
    MPI_Barrier(pair_);
    const auto trips = static_cast<double>(2 * round_trips * bounce_lines);
    return rank_ == 0 ? timed.elapsed_s() / trips : 0.0;
  }

  // Turns that were lost or came out of order, as this rank saw it.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

private:
  MPI_Comm pair_;
  int rank_ = 0;
  MPI_Win window_ = MPI_WIN_NULL;
  BounceLines* lines_ = nullptr;
  std::uint64_t lost_ = 0;
};

} // namespace seatrial::mpi
