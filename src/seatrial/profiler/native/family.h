/* The constants of the MPI library in use. Handles are ints (MPICH) or pointers (the others). */
#ifndef SEATRIAL_FAMILY_H
#define SEATRIAL_FAMILY_H

#include "table_file.h"
#include "word.h"

#include <stdbool.h>

enum seatrial_status_layout {
  SEATRIAL_STATUS_QUERIED,
  SEATRIAL_STATUS_MPICH,
  SEATRIAL_STATUS_OPENMPI
};

struct seatrial_family_constants {
  uint32_t family;
  uint32_t status_layout;
  uint32_t status_bytes;
  uint32_t source_offset; /* offset of MPI_SOURCE in a status */
  uint32_t handle_bytes;
  word handle_mask;
  word comm_world, comm_self, comm_null, byte, request_null;
  word in_place, status_ignore, statuses_ignore;
  word band, no_op; /* operations */
  int err_in_status, err_pending;
  int any_source, proc_null, root, undefined;
  int thread_multiple;
  int cart, graph, dist_graph; /* values returned by MPI_Topo_test */
};

extern struct seatrial_family_constants seatrial_mpi __attribute__((visibility("hidden")));

/* Selects the constants; `version` is the text of MPI_Get_library_version. May be called before
 * MPI_Init. */
void seatrial_choose_family(const char* version);

static inline bool seatrial_is_known(void) {
  return seatrial_mpi.family != SEATRIAL_UNKNOWN;
}

static inline word seatrial_handle(word handle) {
  return handle & seatrial_mpi.handle_mask;
}

/* The handle at an address, such as the argument of MPI_Wait. */
static inline word seatrial_handle_at(word address, int64_t index) {
  return seatrial_mpi.handle_bytes == 4 ? (word)((const uint32_t*)address)[index]
                                        : ((const word*)address)[index];
}

#endif
