// The cache line bounce between two ranks of one host: a lower bound for any message between them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <optional>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bounce.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// Memory mapped by both ranks of a communicator of two.
class SharedLine {
public:
  // Collective over `pair`, whose ranks are on one host.
  explicit SharedLine(MPI_Comm pair) : pair_(pair) {
    MPI_Comm_rank(pair, &rank_);
    // Does not use MPI's shared memory: a library configured to treat ranks as remote (MPICH's
    // NOLOCAL) has none. The second rank may be in another PID namespace, so rank 0 sends the name.
    // Mappings start at a page boundary, which is aligned enough.
    char name[64] = {};
    if (rank_ == 0)
      std::snprintf(name, sizeof name, "/seatrial-line-%ld-%d", static_cast<long>(::getpid()),
                    count_++);
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, pair);
    void* base = rank_ == 0 ? map(name, O_CREAT | O_EXCL) : nullptr;
    MPI_Barrier(pair); // it exists, and rank 0 has touched it first: the page is on its node
    if (rank_ != 0)
      base = map(name, 0);
    MPI_Barrier(pair);
    if (rank_ == 0)
      ::shm_unlink(name);
    lines_ = static_cast<BounceLines*>(base);
  }
  ~SharedLine() { ::munmap(lines_, sizeof(BounceLines)); }
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

  // Trips that were lost or out of order, as seen by this rank.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

private:
  static void* map(const char* name, int how) {
    const int file = ::shm_open(name, O_RDWR | how, 0600);
    if (file < 0 || (how != 0 && ::ftruncate(file, sizeof(BounceLines)) != 0))
      throw Failure(Exit::system, "no shared memory for a cache line between two ranks (/dev/shm)");
    void* base = ::mmap(nullptr, sizeof(BounceLines), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (base == MAP_FAILED)
      throw Failure(Exit::system, "cannot map shared memory between two ranks");
    if (how != 0)
      *static_cast<volatile char*>(base) = 0;
    return base;
  }

  static inline int count_ = 0;
  MPI_Comm pair_;
  int rank_ = 0;
  BounceLines* lines_ = nullptr;
  std::uint64_t lost_ = 0;
};

} // namespace seatrial::mpi
