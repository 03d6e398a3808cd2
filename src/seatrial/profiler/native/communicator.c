#include "communicator.h"

#include "family.h"
#include "library.h"
#include "lock.h"

#include <stddef.h>
#include <stdlib.h>

bool seatrial_many_threads;

enum { KEPT = 4096 }; /* buckets of the table of communicators */

struct kept {
  struct seatrial_communicator comm;
  struct kept* next;
};

static struct kept* table[KEPT];
static int table_lock;

static word world_group;
static word world_session;
static bool has_world_group;

static unsigned place_of(word handle) {
  return (unsigned)((handle ^ handle >> 12) >> 2) % KEPT;
}

static bool begin_group(int* rank, int* size) {
  has_world_group = true;
  return seatrial_library.Group_rank(world_group, rank) == 0 &&
         seatrial_library.Group_size(world_group, size) == 0;
}

bool seatrial_begin_world(int* rank, int* size) {
  seatrial_end_world();
  if (seatrial_library.Comm_group(seatrial_mpi.comm_world, &world_group) != 0)
    return false;
  world_session = 0;
  return begin_group(rank, size);
}

bool seatrial_begin_session_world(word session, int* rank, int* size) {
  if (has_world_group || seatrial_library.Group_from_session_pset == NULL)
    return false;
  if (seatrial_library.Group_from_session_pset(session, "mpi://WORLD", &world_group) != 0)
    return false;
  world_session = seatrial_handle(session);
  return begin_group(rank, size);
}

void seatrial_end_world(void) {
  if (has_world_group)
    seatrial_library.Group_free(&world_group);
  has_world_group = false;
}

void seatrial_end_session_world(word session) {
  if (has_world_group && world_session != 0 && world_session == session)
    seatrial_end_world();
}

/* Ranks outside MPI_COMM_WORLD get numbers after its last rank. */
static int* world_ranks(word group, int size, bool* is_in_world) {
  int* ranks = malloc(2 * sizeof(int) * (size_t)(size > 0 ? size : 1));
  if (ranks == NULL)
    return NULL;
  int* world = ranks + size;
  for (int i = 0; i < size; i++)
    ranks[i] = i;
  const bool is_translated = has_world_group && seatrial_library.Group_translate_ranks(
                                                    group, size, ranks, world_group, world) == 0;
  bool is_same = is_translated;
  *is_in_world = is_translated;
  for (int i = 0; i < size; i++) {
    if (!is_translated || world[i] < 0 || world[i] >= seatrial_process.world_size) {
      world[i] = seatrial_process.world_size;
      *is_in_world = false;
    }
    is_same = is_same && world[i] == i;
    ranks[i] = world[i];
  }
  if (is_same) {
    free(ranks);
    return NULL;
  }
  return ranks;
}

static void examine(struct seatrial_communicator* comm, word handle) {
  int is_inter = 0;
  comm->handle = seatrial_handle(handle);
  comm->references = 1;
  comm->outdegree = -1;
  seatrial_library.Comm_rank(handle, &comm->rank);
  seatrial_library.Comm_size(handle, &comm->size);
  seatrial_library.Comm_test_inter(handle, &is_inter);
  comm->is_inter = is_inter != 0;
  comm->peers = comm->size;
  word group = 0;
  if (is_inter) {
    seatrial_library.Comm_remote_size(handle, &comm->peers);
    seatrial_library.Comm_remote_group(handle, &group);
  } else
    seatrial_library.Comm_group(handle, &group);
  comm->world = world_ranks(group, comm->peers, &comm->is_in_world);
  seatrial_library.Group_free(&group);
}

static struct seatrial_communicator* look_up(word key, word handle) {
  struct kept** chain = &table[place_of(key)];
  for (struct kept* kept = *chain; kept != NULL; kept = kept->next)
    if (kept->comm.handle == key)
      return &kept->comm;
  struct kept* made = calloc(1, sizeof *made);
  if (made == NULL)
    return NULL;
  examine(&made->comm, handle);
  made->next = *chain;
  *chain = made;
  return &made->comm;
}

unsigned seatrial_find_kind(word comm) {
  struct seatrial_thread_state* here = &seatrial_thread_state;
  if (!seatrial_is_known())
    return 0;
  const word handle = seatrial_handle(comm);
  const unsigned kind = handle == seatrial_mpi.comm_world  ? 1
                        : handle == seatrial_mpi.comm_self ? 2
                                                           : 3;
  here->comm_word = comm;
  here->comm_kind = kind;
  here->comm = NULL; /* the handle may be invalid: do not query it for a call that failed */
  return kind;
}

struct seatrial_communicator* seatrial_find_communicator(word comm) {
  if (!seatrial_is_known())
    return NULL;
  seatrial_lock(&table_lock);
  struct seatrial_communicator* found = look_up(seatrial_handle(comm), comm);
  seatrial_unlock(&table_lock);
  seatrial_find_kind(comm);
  seatrial_thread_state.comm = found;
  return found;
}

void seatrial_forget_communicator(word address) {
  if (!seatrial_is_known())
    return;
  const word comm = seatrial_handle_at(address, 0);
  struct seatrial_communicator* forgotten = NULL;
  seatrial_lock(&table_lock);
  struct kept** link = &table[place_of(comm)];
  while (*link != NULL && (*link)->comm.handle != comm)
    link = &(*link)->next;
  if (*link != NULL) {
    forgotten = &(*link)->comm;
    *link = (*link)->next;
  }
  __atomic_fetch_add(&seatrial_generation, 1, __ATOMIC_ACQ_REL);
  seatrial_unlock(&table_lock);
  if (forgotten != NULL)
    seatrial_release_communicator(forgotten);
}

void seatrial_end_communicator(struct seatrial_communicator* comm) {
  free(comm->world);
  free(comm); /* the first member of the allocated block */
}

int seatrial_outdegree(struct seatrial_communicator* comm) {
  if (comm->outdegree >= 0)
    return comm->outdegree;
  int topology = 0;
  int degree = 0;
  int other = 0;
  int weighted = 0;
  seatrial_library.Topo_test(comm->handle, &topology);
  if (topology == seatrial_mpi.cart) {
    seatrial_library.Cartdim_get(comm->handle, &degree);
    degree *= 2;
  } else if (topology == seatrial_mpi.graph)
    seatrial_library.Graph_neighbors_count(comm->handle, comm->rank, &degree);
  else if (topology == seatrial_mpi.dist_graph)
    seatrial_library.Dist_graph_neighbors_count(comm->handle, &other, &degree, &weighted);
  comm->outdegree = degree;
  return degree;
}
