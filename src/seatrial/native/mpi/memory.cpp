#include "mpi/memory.hpp"

#include <cstddef>
#include <map>
#include <string>

#include "available_memory.hpp"
#include "failure.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::mpi {

void require_memory(std::uint64_t bytes) {
  constexpr std::uint64_t reserve = std::uint64_t{128}
                                    << 20; // for the rank itself and the MPI library
  struct Host {
    double needed = 0;
    double available = 0;
  };
  const auto memory_of_ranks = gather({static_cast<double>(bytes + bytes / 64 + reserve),
                                       static_cast<double>(available_memory().bytes)});
  const auto names = gather_hosts();
  std::map<std::string, Host> hosts;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    auto& host = hosts[names[rank]];
    host.needed += memory_of_ranks[2 * rank];
    host.available = memory_of_ranks[2 * rank + 1];
  }
  Host worst;
  for (const auto& [name, host] : hosts)
    if (host.needed - host.available > worst.needed - worst.available)
      worst = host;
  if (of_first(worst.needed) == 0) // every host has enough memory
    return;
  throw Skip("the buffers of a host's ranks need " + // rank 0 reports it
             needed_of_available(worst.needed, worst.available));
}

} // namespace seatrial::mpi
