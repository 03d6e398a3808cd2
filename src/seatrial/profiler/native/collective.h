/* The bytes of a rank's send buffer in collective calls; MPI_IN_PLACE counts the buffer read. */
#ifndef SEATRIAL_COLLECTIVE_H
#define SEATRIAL_COLLECTIVE_H

#include "communicator.h"
#include "datatype.h"

static inline bool seatrial_is_in_place(word buffer) {
  return buffer == seatrial_mpi.in_place;
}

/* Whether this rank is the root that a rooted operation sends from. */
bool seatrial_is_root(word comm, word root);

/* Whether this rank sends in an operation towards a root; in the root's group of an
 * intercommunicator no rank does. */
static inline bool seatrial_sends_to_root(word root) {
  return (int)root != seatrial_mpi.root && (int)root != seatrial_mpi.proc_null;
}

int64_t seatrial_rank_of(word comm);  /* of this process in its local group */
int64_t seatrial_size_of(word comm);  /* size of the local group */
int64_t seatrial_peers_of(word comm); /* number of ranks it sends to */
int64_t seatrial_neighbours_of(word comm);

/* The sum of the first `n` counts, each `width` bytes wide. */
int64_t seatrial_sum(word counts, unsigned width, int64_t n);

/* The bytes of `n` buffers with a datatype each. */
uint64_t seatrial_sum_of_types(word counts, unsigned width, word datatypes, int64_t n);

#endif
