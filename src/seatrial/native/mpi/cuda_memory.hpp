// Whether this MPI takes messages in the memory of CUDA devices.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <dlfcn.h>

#include "mpi/mpi.hpp"
#include "unsupported.hpp"

namespace seatrial::mpi {

// Whether the library says that its calls take addresses of CUDA memory; nothing if it does not
// answer: MPIX_Query_cuda_support is Open MPI's and MVAPICH's, MPIX_GPU_query_support that of MPICH
// 4; Cray's MPICH and MVAPICH2 need a variable as well.
[[nodiscard]] inline std::optional<bool> takes_cuda_memory() {
  const auto is_on = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && std::string_view(value) == "1";
  };
  if (is_on("MPICH_GPU_SUPPORT_ENABLED") || is_on("MV2_USE_CUDA"))
    return true;
  using Query = int (*)();
  if (const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support")))
    return query() == 1;
  using QueryKind = int (*)(int, int*);
  if (const auto query =
          reinterpret_cast<QueryKind>(dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support"))) {
    constexpr int of_cuda = 0; // MPIX_GPU_SUPPORT_CUDA
    int is_supported = 0;
    return query(of_cuda, &is_supported) == MPI_SUCCESS && is_supported != 0;
  }
  return std::nullopt;
}

// Throws Unsupported unless it does: an MPI that does not know device memory would be killed by its
// first copy.
inline void require_cuda_memory() {
  const auto answer = takes_cuda_memory();
  if (answer == true)
    return;
  throw Unsupported("mpi", library_name() +
                               (answer ? " was built without support of CUDA memory"
                                       : " does not say whether it takes CUDA memory") +
                               ", so that it would fail at the first message in a device; use an "
                               "MPI with this support");
}

} // namespace seatrial::mpi
