// The number of this rank among those of its node.
#pragma once

#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// Collective.
[[nodiscard]] inline int rank_on_node() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank(), MPI_INFO_NULL, &node);
  int rank = 0;
  MPI_Comm_rank(node, &rank);
  MPI_Comm_free(&node);
  return rank;
}

} // namespace seatrial::mpi
