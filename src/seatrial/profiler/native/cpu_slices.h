/* CPU time of this process by slices of time (extension.h): shows a disturbance that lasted for a
 * part of the run. There is no timer: a sample is taken at the end of an MPI call, on the path that
 * is taken every 50 us at most, if one is due. Taking them takes at most a thousandth of the time.
 */
#ifndef SEATRIAL_CPU_SLICES_H
#define SEATRIAL_CPU_SLICES_H

#include "clock.h"

/* Ticks: when the next sample is due. */
extern uint64_t seatrial_slice_at __attribute__((visibility("hidden")));

/* When MPI was initialised, and when it ends. */
void seatrial_begin_slices(void);
void seatrial_end_slices(void);

void seatrial_take_slice(uint64_t now);

static inline void seatrial_take_slice_if_due(uint64_t now) {
  if (now >= __atomic_load_n(&seatrial_slice_at, __ATOMIC_RELAXED))
    seatrial_take_slice(now);
}

#endif
