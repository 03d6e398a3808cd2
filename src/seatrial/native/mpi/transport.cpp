#include "mpi/transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>

#include "mpi/mpi.hpp"
#include "mpi/program.hpp"
#include "mpi/settings.hpp"

namespace seatrial::mpi {

namespace {

constexpr int tag = 21;
constexpr int no_peer = -1;

struct Peer {
  std::uint64_t kernel; // equal on ranks that run under one kernel
  std::int64_t process;
  std::uint64_t address;
  std::uint64_t word;
};

[[nodiscard]] std::uint64_t this_kernel() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return std::hash<std::string>{}(id);
}

// 0 if this rank can read the memory of its neighbour, else errno; `no_peer` where there is none on
// this node. In pid namespaces of their own, the number is that of another process: the word shows.
[[nodiscard]] int cross_memory_error(int rank, int size) {
  const int peer = rank ^ 1;
  if (peer >= size)
    return no_peer;
  const volatile std::uint64_t word = 0x5ea7a1u + static_cast<std::uint64_t>(rank);
  const Peer mine{this_kernel(), ::getpid(), reinterpret_cast<std::uintptr_t>(&word), word};
  Peer theirs{};
  PMPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, peer, tag, &theirs, sizeof theirs, MPI_BYTE, peer,
                tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  int error = no_peer;
  if (theirs.kernel == mine.kernel) {
    std::uint64_t read = 0;
    const iovec here{.iov_base = &read, .iov_len = sizeof read};
    const iovec there{.iov_base = reinterpret_cast<void*>(theirs.address), .iov_len = sizeof read};
    const auto got = ::process_vm_readv(static_cast<pid_t>(theirs.process), &here, 1, &there, 1, 0);
    error = got < 0 ? errno : got == sizeof read && read == theirs.word ? 0 : ESRCH;
  }
  int other = 0; // also keeps `word` alive until both have read
  PMPI_Sendrecv(&error, 1, MPI_INT, peer, tag, &other, 1, MPI_INT, peer, tag, MPI_COMM_WORLD,
                MPI_STATUS_IGNORE);
  return error;
}

} // namespace

// The profiling interface (PMPI): these calls are no part of what a profile shows.
void report_transport(Program& program) {
  const int mine = cross_memory_error(program.rank, program.ranks);
  std::vector<int> all(program.rank == 0 ? static_cast<std::size_t>(program.ranks) : 0);
  PMPI_Gather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (!all.empty()) {
    const int worst = *std::ranges::max_element(all);
    if (worst == 0)
      program.note("transport_cross_memory", "yes");
    else if (worst != no_peer)
      program.note("transport_cross_memory", "no (" + std::string(std::strerror(worst)) + ")");
  }
  if (const auto mechanism = single_copy_mechanism())
    program.note("transport_single_copy", *mechanism);
}

} // namespace seatrial::mpi
