/* What is known of a communicator: who its ranks are in MPI_COMM_WORLD, and how many. Asked once,
 * kept until it is freed: libraries use handles anew. */
#ifndef SEATRIAL_COMMUNICATOR_H
#define SEATRIAL_COMMUNICATOR_H

#include "process.h"
#include "word.h"

#include <stdbool.h>

struct seatrial_communicator {
  word handle;
  int references;
  int rank;      /* in the local group */
  int size;      /* of the local group */
  int peers;     /* whom a message can go to: the remote group of an intercommunicator, else size */
  int outdegree; /* of its topology; -1: not asked yet */
  bool is_inter;
  int* world; /* of each peer its rank in MPI_COMM_WORLD; NULL: the same */
};

/* The one of a handle, which stays valid while this thread is in the call; NULL where the family of
 * the library is unknown, or memory ran out. */
struct seatrial_communicator* seatrial_communicator(word comm);

/* How many neighbours a neighbourhood collective sends to. */
int seatrial_outdegree(struct seatrial_communicator* comm);

/* Before the handle at an address is freed: from then on the library may use it for another one. */
void seatrial_forget_communicator(word address);

/* For receives from any source, whose sender is known when they complete. */
void seatrial_hold_communicator(struct seatrial_communicator* comm);
void seatrial_release_communicator(struct seatrial_communicator* comm);

/* World's group is that of MPI_COMM_WORLD; in a program of Sessions alone it is that of the process
 * set mpi://WORLD, and ends with the session that it was taken from. */
bool seatrial_begin_world(int* rank, int* size);
bool seatrial_begin_session_world(word session, int* rank, int* size);
void seatrial_end_world(void);
void seatrial_end_session_world(word session);

/* Where messages with a peer of this communicator are counted. */
static inline struct seatrial_peer* seatrial_peer_of(const struct seatrial_communicator* comm,
                                                     struct seatrial_peer* peers, int rank) {
  if (rank < 0 || rank >= comm->peers)
    return &peers[seatrial_process.world_size];
  return &peers[comm->world == 0 ? rank : comm->world[rank]];
}

#endif
