// ranks_inside: whether MPI ranks find each other in containers, before anything is measured there.
//
//   ranks_inside --record DIR
// Each rank writes a file of its own, named by its process, since ranks that do not find each other
// all have number 0: its namespaces, after MPI_Init its number and the size of the world, after a
// message of 4 MiB in each direction that it arrived. What is missing shows how far it came.
// Whether ranks can read each other's memory (process_vm_readv(2), which libraries call
// cross-memory attach) is tried directly.
//
// untimed: -O1
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/uio.h>
#include <unistd.h>

#include "affinity.hpp"
#include "arguments.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "launch/helper_main.hpp"
#include "launch/seen_inside.hpp"
#include "mpi/mpi.hpp"
#include "record.hpp"

namespace {

using namespace seatrial;

constexpr int message_B = 4 << 20;
constexpr int tag = 21;
constexpr int most_files = 1'000'000;

struct Peer {
  std::int64_t process;
  std::uint64_t address;
};

void exchange(std::vector<std::byte>& mine, std::vector<std::byte>& theirs, int bytes, int peer,
              bool is_first) {
  for (const bool sends : {is_first, !is_first}) {
    if (sends)
      MPI_Send(mine.data(), bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD);
    else
      MPI_Recv(theirs.data(), bytes, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

// 0 if this process can read the memory of its peer, else errno.
[[nodiscard]] int cross_memory_error(int peer, bool is_first) {
  std::uint64_t word = 0x5ea7a1;
  const Peer mine{::getpid(), reinterpret_cast<std::uintptr_t>(&word)};
  Peer theirs{};
  MPI_Sendrecv(&mine, sizeof mine, MPI_BYTE, peer, tag, &theirs, sizeof theirs, MPI_BYTE, peer, tag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::uint64_t read = 0;
  const iovec here{.iov_base = &read, .iov_len = sizeof read};
  const iovec there{.iov_base = reinterpret_cast<void*>(theirs.address), .iov_len = sizeof read};
  const auto got = ::process_vm_readv(static_cast<pid_t>(theirs.process), &here, 1, &there, 1, 0);
  const int error = got < 0 ? errno : read == word ? 0 : EIO;
  int other = 0; // also keeps `word` alive until both have read
  MPI_Sendrecv(&error, 1, MPI_INT, peer, tag, &other, 1, MPI_INT, peer, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return is_first ? error : other;
}

[[nodiscard]] bool arrives(int rank, int peer, bool is_first) {
  std::vector<std::byte> mine(message_B);
  std::vector<std::byte> theirs(message_B);
  for (std::size_t k = 0; k < mine.size(); ++k)
    mine[k] = static_cast<std::byte>(k * 7 + static_cast<std::size_t>(rank));
  exchange(mine, theirs, message_B, peer, is_first);
  for (std::size_t k = 0; k < theirs.size(); ++k)
    if (theirs[k] != static_cast<std::byte>(k * 7 + static_cast<std::size_t>(peer)))
      return false;
  return true;
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("ranks_inside", argc, argv))
    return *status;
  Arguments arguments(argc, argv);
  const std::string folder(arguments.required("--record"));
  arguments.finish();
  Record record(folder, static_cast<int>(::getpid() % most_files));
  record.add(hello_event("ranks_inside", {bound_cpus()}));
  record.add(note_event("namespaces", namespaces_here()));
  record.flush();
  MPI_Init(&argc, &argv);
  const int rank = mpi::world_rank();
  const int size = mpi::world_size();
  record.add(note_event("rank", rank));
  record.add(note_event("size", size));
  record.add(note_event("library", mpi::library_version()));
  record.flush();
  const bool is_first = rank % 2 == 0;
  const int peer = is_first ? rank + 1 : rank - 1;
  if (peer < size) {
    record.add(note_event("cross_memory_error", cross_memory_error(peer, is_first)));
    record.flush();
    record.add(note_event("message_arrived", arrives(rank, peer, is_first)));
    record.flush();
  }
  MPI_Finalize();
  record.add(end_event());
  record.close();
  return static_cast<int>(Exit::ok);
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("ranks_inside", run, argc, argv);
}
