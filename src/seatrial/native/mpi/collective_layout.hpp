// Counts, displacements and datatypes of operations whose ranks exchange blocks of equal size.
#pragma once

#include <climits>
#include <cstddef>
#include <vector>

#include "mpi/collective_data.hpp"
#include "mpi/message.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

// `peers` contiguous blocks. MPI's counts and displacements are ints: if these are too small, each
// block is one element of a derived datatype.
class EqualBlocks {
public:
  EqualBlocks(std::size_t bytes, std::size_t peers)
      : message(MPI_CHAR, bytes, bytes * peers <= INT_MAX ? INT_MAX : 0),
        counts(peers, message.count), types(peers, message.type) {
    for (std::size_t i = 0; i < peers; ++i) {
      places.push_back(static_cast<int>(i) * message.count);
      const auto at = static_cast<MPI_Aint>(i * bytes);
      byte_places.push_back(static_cast<int>(at)); // used only if it fits
      addresses.push_back(at);
    }
  }

  Message message;
  std::vector<int> counts;
  std::vector<int> places; // displacements in elements
  std::vector<MPI_Datatype> types;
  std::vector<int> byte_places;
  std::vector<MPI_Aint> addresses;
};

// The blocks of a buffer that has one for each peer.
template <class Source, class Target>
[[nodiscard]] std::vector<Block> blocks(std::size_t peers, std::size_t bytes, Source source,
                                        Target target) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < peers; ++i)
    blocks.push_back(
        {.offset = i * bytes, .bytes = bytes, .source = source(i), .target = target(i)});
  return blocks;
}

} // namespace seatrial::mpi
