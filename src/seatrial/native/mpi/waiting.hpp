// Waiting without spinning: if ranks share CPUs, a spinning rank takes time from those that work.
#pragma once

#include <cerrno>
#include <ctime>

#include <sys/prctl.h>

#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// Makes short sleeps end on time, not up to 50 us later (the default timer slack of Linux).
inline void reduce_timer_slack() noexcept {
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
}

inline void nap(double seconds) noexcept {
  timespec left{};
  left.tv_sec = static_cast<std::time_t>(seconds);
  left.tv_nsec = static_cast<long>((seconds - static_cast<double>(left.tv_sec)) * 1e9);
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// A barrier over all ranks that sleeps until the last one arrives. `idle_s` is how long this rank
// has nothing to do: it starts polling only after that.
inline void sleeping_barrier(double idle_s = 0) {
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
