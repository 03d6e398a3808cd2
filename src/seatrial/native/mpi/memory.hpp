// Whether the ranks of each host have room for what they are about to take: all go on, or none.
#pragma once

#include <cstdint>

namespace seatrial::mpi {

// Collective: throws Skip on all ranks where the memory of one host does not hold the `bytes` that
// each of its ranks asks for. A rank that gave up alone would leave the others waiting for it.
void require_memory(std::uint64_t bytes);

} // namespace seatrial::mpi
