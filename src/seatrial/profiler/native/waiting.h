/* Waiting told apart from transfer (SEATRIAL_PROFILE_WAIT=N): before every N-th blocking collective
 * of a communicator, the first among them, its ranks meet in a barrier. What passes until all have
 * come is waiting, what the call takes then is transfer.
 *
 * The barrier's time counts as the call's: where there is none, ranks wait inside of the call.
 * Calls that need not wait for all (a broadcast at its root, a reduction elsewhere, a scan) wait
 * longer than they would without it. */
#ifndef SEATRIAL_WAITING_H
#define SEATRIAL_WAITING_H

#include "area.h"

/* N; 0: there are no barriers. */
extern uint32_t seatrial_barrier_every SEATRIAL_HIDDEN;

/* At the end of MPI_Init, called by all ranks, which tell each other (this alone communicates): all
 * of them count, or there are no barriers. */
void seatrial_settle_barriers(void);

/* When all ranks have come, in ticks; 0 where this call has no barrier. */
uint64_t seatrial_meet(word comm);

/* The same of a call that is not counted here: other ranks may wait in the barrier. */
static inline void seatrial_meet_uncounted(word comm) {
  if (seatrial_barrier_every != 0 && seatrial_here.where != SEATRIAL_INSIDE)
    seatrial_meet(comm);
}

/* Counts the parts of a call, beside its own row. */
void seatrial_split(unsigned call, uint64_t comm, uint64_t bytes, uint64_t begin, uint64_t met,
                    uint64_t end);

#endif
