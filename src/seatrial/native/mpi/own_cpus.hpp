// The CPUs of the threads of a rank.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "affinity.hpp"
#include "failure.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// Ranks of a node that are not bound take different ones. Collective.
[[nodiscard]] inline std::vector<int> own_cpus(int rank, std::size_t threads) {
  MPI_Comm host = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
  int place = 0;
  MPI_Comm_rank(host, &place);
  MPI_Comm_free(&host);
  const auto cpus = bound_cpus();
  if (cpus.size() < threads)
    throw Failure(Exit::usage, std::to_string(threads) + " threads on " +
                                   std::to_string(cpus.size()) + " CPUs of rank " +
                                   std::to_string(rank));
  std::vector<int> own;
  for (std::size_t t = 0; t < threads; ++t)
    own.push_back(cpus[(static_cast<std::size_t>(place) * threads + t) % cpus.size()]);
  return own;
}

} // namespace seatrial::mpi
