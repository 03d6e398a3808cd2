// Waiting that leaves the CPU to others: where ranks share CPUs, one that spins takes the time of
// those that work.
#pragma once

#include <cerrno>
#include <ctime>

#include <sys/prctl.h>

#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// Naps end when they should, not up to 50 us later (the default slack of Linux's timers).
inline void wake_in_time() noexcept {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

inline void nap(double seconds) noexcept {
  timespec left{};
  left.tv_sec = static_cast<std::time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// A barrier among all ranks that sleeps until the last has come. `idle_s` is how long this rank has
// nothing to do at all: it looks for the others only after that.
inline void meet(double idle_s = 0) {
  constexpr double between_looks_s = 50e-6;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  if (idle_s > 0)
    nap(idle_s);
  for (int done = 0;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done != 0)
      return;
    nap(between_looks_s);
  }
}

} // namespace seatrial::mpi
