/* Separates waiting from transfer (SEATRIAL_PROFILE_WAIT=N): before every N-th blocking collective
 * of a communicator, starting with the first, its ranks meet in a barrier. The time until all have
 * arrived is waiting; the time the call then takes is transfer.
 *
 * The barrier's time counts as the call's: without a barrier, ranks wait inside the call. Calls
 * that need not wait for all ranks (a broadcast at its root, a reduction at a non-root, a scan)
 * wait longer than they would without it. */
#ifndef SEATRIAL_WAITING_H
#define SEATRIAL_WAITING_H

#include "area.h"

/* N; 0: no barriers. */
extern uint32_t seatrial_barrier_every SEATRIAL_HIDDEN;

/* At the end of MPI_Init, called by all ranks, which agree by communicating (the only time the
 * profiler does so): either all of them count, or there are no barriers. */
void seatrial_agree_on_barriers(void);

/* When all ranks have arrived, in ticks; 0 if this call has no barrier. */
uint64_t seatrial_wait_at_barrier(word comm);

/* The same for a call that is not counted here: other ranks may wait in the barrier. */
static inline void seatrial_wait_uncounted(word comm) {
  if (seatrial_barrier_every != 0 && seatrial_thread_state.where != SEATRIAL_INSIDE)
    seatrial_wait_at_barrier(comm);
}

/* Records waiting and transfer of a call beside its own row. */
void seatrial_split(unsigned call, uint64_t comm, uint64_t bytes, uint64_t begin, uint64_t met,
                    uint64_t end);

#endif
