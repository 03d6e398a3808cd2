/* Wrappers that must not export the name of the wrapped function. Functions newer than MPI 3.1:
 * not every library has them, and programs test for them with weak symbols (mpi4py).
 * MPI_Initialized: programs look it up to find out whether an MPI library is loaded, and which
 * (NEURON). Exporting such a name would give a wrong answer. Instead, the global offset table
 * entries of all objects that are bound to the library's function, or will be, are redirected to
 * the wrapper. */
#ifndef SEATRIAL_REBIND_H
#define SEATRIAL_REBIND_H

#include "look_up.h"

struct seatrial_unnamed {
  const char* name;
  seatrial_function wrapper;
};

/* Generated; sorted by strcmp. */
extern const struct seatrial_unnamed seatrial_unnamed[] __attribute__((visibility("hidden")));
extern const unsigned seatrial_unnamed_count __attribute__((visibility("hidden")));

/* Processes the objects that were loaded since the last call. */
void seatrial_rebind(void);

#endif
