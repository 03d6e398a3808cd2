/* Wrappers that must not have the names of what they wrap. Functions newer than MPI 3.1: not every
 * library has them, and programs ask whether theirs does by weak symbols (mpi4py). MPI_Initialized:
 * programs look it up to find out whether a library of MPI is loaded, and which (NEURON). A name
 * that this library defined would be a lie, so where an object of the process was bound to the
 * library's own function, or is yet to be, its entry in the global offset table is turned to the
 * wrapper. */
#ifndef SEATRIAL_REBIND_H
#define SEATRIAL_REBIND_H

#include "look_up.h"

struct seatrial_unnamed {
  const char* name;
  seatrial_function wrapper;
};

/* Generated; in the order of strcmp. */
extern const struct seatrial_unnamed seatrial_unnamed[] __attribute__((visibility("hidden")));
extern const unsigned seatrial_unnamed_count __attribute__((visibility("hidden")));

/* Looks at the objects that were loaded since it was asked last. */
void seatrial_rebind(void);

#endif
