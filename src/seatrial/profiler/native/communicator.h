/* Cached properties of a communicator: its size and its ranks in MPI_COMM_WORLD. Queried once
 * and kept until it is freed, since libraries reuse handles. */
#ifndef SEATRIAL_COMMUNICATOR_H
#define SEATRIAL_COMMUNICATOR_H

#include "area.h"
#include "family.h"
#include "lock.h"

#include <stdbool.h>

struct seatrial_communicator {
  word handle;
  int references;
  int rank;             /* in the local group */
  int size;             /* of the local group */
  int peers;            /* number of possible destinations: the size of the remote group of an
                           intercommunicator, else `size` */
  int outdegree;        /* of its topology; -1: not queried yet */
  uint64_t collectives; /* blocking ones so far, where every N-th is preceded by a barrier */
  bool is_inter;
  bool is_in_world;      /* all possible destinations are */
  uint16_t trace_number; /* 0: not in the trace yet */
  int* world;            /* rank of each peer in MPI_COMM_WORLD; NULL: the same */
};

/* The communicator of a handle; valid while this thread is in the call. NULL if the MPI library
 * is unknown or memory ran out. */
struct seatrial_communicator* seatrial_find_communicator(word comm);
unsigned seatrial_find_kind(word comm);

static inline struct seatrial_communicator* seatrial_communicator(word comm) {
  const struct seatrial_thread_state* here = &seatrial_thread_state;
  if (SEATRIAL_LIKELY(here->comm_word == comm && here->comm != NULL))
    return here->comm;
  return seatrial_find_communicator(comm);
}

/* Caches a communicator in `seatrial_thread_state`, after a call with it succeeded; returns its
 * kind. */
static SEATRIAL_INLINE uint64_t seatrial_set_communicator(word comm) {
  const struct seatrial_thread_state* here = &seatrial_thread_state;
  if (!SEATRIAL_LIKELY(here->comm_word == comm && here->comm != NULL))
    seatrial_find_communicator(comm);
  return here->comm_kind;
}

/* The kind of communicator, numbered as in struct seatrial_slot. */
static inline uint64_t seatrial_comm_kind(word comm) {
  const struct seatrial_thread_state* here = &seatrial_thread_state;
  return SEATRIAL_LIKELY(here->comm_word == comm) ? here->comm_kind : seatrial_find_kind(comm);
}

/* The number of neighbours that a neighbourhood collective sends to. */
int seatrial_outdegree(struct seatrial_communicator* comm);

/* Call before the handle at an address is freed: afterwards the library may reuse it. */
void seatrial_forget_communicator(word address);

/* For receives from any source, whose sender is known only on completion. */
static inline void seatrial_retain_communicator(struct seatrial_communicator* comm) {
  if (seatrial_many_threads)
    __atomic_fetch_add(&comm->references, 1, __ATOMIC_ACQ_REL);
  else
    comm->references++;
}
void seatrial_end_communicator(struct seatrial_communicator* comm);
static inline void seatrial_release_communicator(struct seatrial_communicator* comm) {
  const int left = seatrial_many_threads
                       ? __atomic_sub_fetch(&comm->references, 1, __ATOMIC_ACQ_REL)
                       : --comm->references;
  if (left == 0)
    seatrial_end_communicator(comm);
}

/* The world group is that of MPI_COMM_WORLD; in a program that uses Sessions only, it is that of
 * the process set mpi://WORLD, and is released with the session it was obtained from. */
bool seatrial_begin_world(int* rank, int* size);
bool seatrial_begin_session_world(word session, int* rank, int* size);
void seatrial_end_world(void);
void seatrial_end_session_world(word session);

/* Where messages to and from a peer of this communicator are counted. */
static inline struct seatrial_peer* seatrial_peer_of(const struct seatrial_communicator* comm,
                                                     int rank) {
  struct seatrial_peer* peers = seatrial_thread_state.peers;
  if (!SEATRIAL_LIKELY((unsigned)rank < (unsigned)comm->peers))
    return &peers[seatrial_process.world_size];
  return &peers[SEATRIAL_LIKELY(comm->world == NULL) ? rank : comm->world[rank]];
}

#endif
