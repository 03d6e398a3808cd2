// Checks that each host has enough memory for its ranks' buffers: all ranks continue, or none.
#pragma once

#include <cstdint>

namespace seatrial::mpi {

// Collective: throws Skip on all ranks if one host has too little memory for the `bytes` of each of
// its ranks. A single rank that stopped would leave the others waiting.
void require_memory(std::uint64_t bytes);

} // namespace seatrial::mpi
