// mpi.init: the start-up time of MPI, and its memory per rank.
//
// The time is that of MPI_Init only, measured by each rank. The memory is the growth of the
// process, once after MPI_Init and once after every rank has received a message from every other:
// libraries that connect on demand show the memory per peer only then. Memory is the proportional
// set size, which divides a shared page between its processes (proc(5), smaps_rollup), or the
// resident set size if the kernel does not report it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <unistd.h>

#include "available_memory.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "mpi/mpi.hpp"
#include "mpi/program.hpp"

namespace {

using namespace seatrial;

struct Memory {
  double bytes;
  bool is_proportional;
};

[[nodiscard]] Memory memory_of_this_process() {
  constexpr double kibibyte = 1024;
  if (const auto shared = read_value("/proc/self/smaps_rollup", "Pss:"))
    return {static_cast<double>(*shared) * kibibyte, true};
  if (const auto resident = read_value("/proc/self/status", "VmRSS:"))
    return {static_cast<double>(*resident) * kibibyte, false};
  throw Failure(Exit::system,
                "neither /proc/self/smaps_rollup nor /proc/self/status reports how much "
                "memory this process uses");
}

struct Settings {
  Memory before;
  double init_s;
  Memory after;
};

// Called before any other MPI function.
Settings prepare(Arguments&) {
  const auto before = memory_of_this_process();
  const auto init = timed([] { MPI_Init(nullptr, nullptr); });
  return {before, init.elapsed_s(), memory_of_this_process()};
}

// Sends one byte from every rank to every other, each with a distinct value.
[[nodiscard]] double connect_all(const mpi::Program& program) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  constexpr auto value = [](int from, int to) {
    return static_cast<unsigned char>((31 * from + 7 * to + 1) % 251);
  };
  std::vector<unsigned char> sent(ranks);
  std::vector<unsigned char> received(ranks, 255);
  for (int peer = 0; peer < program.ranks; ++peer)
    sent[static_cast<std::size_t>(peer)] = value(program.rank, peer);
  double wrong = 0;
  for (int step = 0; step < program.ranks; ++step) {
    const int to = (program.rank + step) % program.ranks;
    const int from = (program.rank - step + program.ranks) % program.ranks;
    auto& incoming = received[static_cast<std::size_t>(from)];
    MPI_Sendrecv(&sent[static_cast<std::size_t>(to)], 1, MPI_BYTE, to, 0, &incoming, 1, MPI_BYTE,
                 from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    wrong += incoming != value(from, program.rank);
  }
  return wrong;
}

void measure(mpi::Program& program, const Settings& settings) {
  const double wrong = mpi::sum(connect_all(program));
  MPI_Barrier(MPI_COMM_WORLD);
  const auto connected = memory_of_this_process();

  const auto add = [&](std::string_view series, double mine, const char* unit) {
    const auto all = mpi::gather({mine});
    if (program.rank != 0)
      return;
    const double mean = std::accumulate(all.begin(), all.end(), 0.0) / program.ranks;
    const double most = std::ranges::max(all);
    // Entries without a time use that of MPI_Init on the slowest rank.
    program.add(sample_event(series, 0, unit ? settings.init_s : most)
                    .add("work", json::Object().add(unit ? unit : "s", most).add("mean", mean)));
  };
  add("init", settings.init_s, nullptr);
  add("memory", settings.after.bytes - settings.before.bytes, "bytes");
  add("memory_connected", connected.bytes - settings.before.bytes, "bytes");
  program.note("memory_counted", connected.is_proportional ? "proportional" : "resident");
  program.check("wrong_bytes", wrong);
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("init", argc, argv, prepare, measure);
}
