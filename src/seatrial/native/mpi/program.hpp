// What every MPI program does around its measurement: the protocol of CONTRACT.md for many ranks.
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "affinity.hpp"
#include "arguments.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "isa.hpp"
#include "mpi/mpi.hpp"
#include "record.hpp"

namespace seatrial::mpi {

// The arguments that all MPI programs take.
struct CommonArguments {
  explicit CommonArguments(Arguments& arguments)
      : record(arguments.required("--record")),
        ranks(arguments.number("--ranks", 0, 1, most_ranks)),
        slice_s(arguments.number("--slice", 0.25, 0.0, 86400.0)) {
    if (ranks == 0)
      throw Failure(Exit::usage, "--ranks is missing");
  }

  static constexpr int most_ranks = 1 << 20;
  std::string record; // the folder to write into
  int ranks;          // that the launcher was told to start
  double slice_s;     // how long to take samples
};

namespace detail {

// Where this rank is, for the case that it is ended from outside: whoever hangs can be told from
// whoever waits for it.
struct Phase {
  char text[200] = "start";
  volatile std::sig_atomic_t descriptor = -1;
};

inline Phase phase;

inline void write_phase(int) noexcept {
  constexpr std::string_view head = "{\"ev\":\"note\",\"key\":\"ended_in\",\"value\":\"";
  constexpr std::string_view tail = "\"}\n";
  char line[head.size() + sizeof phase.text + tail.size()];
  std::size_t length = 0;
  for (const char letter : head)
    line[length++] = letter;
  for (std::size_t i = 0; i < sizeof phase.text && phase.text[i] != '\0'; ++i)
    line[length++] = phase.text[i];
  for (const char letter : tail)
    line[length++] = letter;
  if (phase.descriptor >= 0) [[maybe_unused]]
    const auto written = ::write(phase.descriptor, line, length);
  _exit(128 + SIGTERM);
}

} // namespace detail

// Events are rank 0's to write: it alone keeps what is added, so all ranks may call the same
// functions. What belongs to other ranks is gathered first, after the timed region.
class Program {
public:
  Program(std::string_view name, const CommonArguments& arguments, int rank)
      : rank(rank), ranks(arguments.ranks), slice_s(arguments.slice_s), name_(name),
        record_(arguments.record, rank) {
    detail::phase.descriptor = record_.descriptor();
    std::signal(SIGTERM, detail::write_phase);
  }

  // Collective. Each rank says at once that it lives; rank 0's line holds the masks of all, as they
  // are after MPI_Init, which may move ranks.
  void hello() {
    const auto mine = bound_cpus();
    if (rank != 0) {
      record_.add(hello_event(name_, {mine}, rank, ranks));
      record_.flush();
    }
    const auto masks = gather_lists(mine);
    const auto hosts = gather_hosts();
    if (rank == 0) {
      record_.add(hello_event(name_, masks, rank, ranks).add("hosts", hosts));
      record_.flush();
    }
    note("mpi_version", library_version());
  }

  // What this rank does now: told if it must be ended from outside. Not inside a timed region.
  void at(std::string_view phase) noexcept {
    const auto length = std::min(phase.size(), sizeof detail::phase.text - 1);
    std::memcpy(detail::phase.text, phase.data(), length);
    detail::phase.text[length] = '\0';
  }

  [[nodiscard]] static json::Object sample(std::string_view series, std::size_t index,
                                           double elapsed_s) {
    return json::Object()
        .add("ev", "sample")
        .add("series", series)
        .add("rank", 0)
        .add("i", index)
        .add("elapsed_s", elapsed_s);
  }

  void add(const json::Object& event) {
    if (rank == 0)
      record_.add(event);
  }

  // `value` is what rank 0 knows: reduce it first.
  void check(std::string_view name, double value) {
    add(json::Object().add("ev", "check").add("name", name).add("value", value));
  }

  template <class Value>
  void note(std::string_view key, const Value& value) {
    add(json::Object().add("ev", "note").add("key", key).add("value", value));
  }

  // Collective: all ranks skip, or none.
  void skip(std::string_view reason) {
    finish(json::Object().add("ev", "skip").add("reason", reason));
  }

  // Collective.
  void end() { finish(json::Object().add("ev", "end")); }

  const int rank;
  const int ranks;
  const double slice_s;

private:
  // The other ranks' files go first: they remain only where a run died.
  void finish(const json::Object& last) {
    at("the end");
    if (rank != 0)
      record_.remove();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      record_.add(last);
      record_.close();
    }
    detail::phase.descriptor = -1;
    std::signal(SIGTERM, SIG_DFL);
  }

  std::string name_;
  Record record_;
};

namespace detail {

[[nodiscard]] inline int describe(const char* name) {
  const auto hello = hello_event(name, {});
  std::printf("%s\n", hello.text().c_str());
  return static_cast<int>(std::fflush(stdout) == 0 ? Exit::ok : Exit::system);
}

// One rank that gives up takes all with it: the others would wait for it for ever.
[[nodiscard]] inline int give_up(const char* name, int rank, const char* why,
                                 Exit status) noexcept {
  std::fprintf(stderr, "%s: rank %d: %s\n", name, rank, why);
  std::fflush(stderr);
  int is_up = 0;
  int is_down = 0;
  MPI_Initialized(&is_up);
  MPI_Finalized(&is_down);
  if (is_up != 0 && is_down == 0)
    MPI_Abort(MPI_COMM_WORLD, static_cast<int>(status));
  return static_cast<int>(status);
}

} // namespace detail

// As `run_program` (program.hpp) for ranks: `prepare(arguments)` takes the benchmark's own
// arguments; `measure(program, settings)` does the rest on every rank. A Skip must be thrown by all
// ranks or by none.
template <class Prepare, class Measure>
int run_program(const char* name, int argc, char** argv, Prepare prepare,
                Measure measure) noexcept {
  if (const char* feature = missing_feature()) {
    dprintf(STDERR_FILENO, "%s: built for %s, which this CPU lacks\n", name, feature);
    return static_cast<int>(Exit::wrong_cpu);
  }
  std::signal(SIGXFSZ, SIG_IGN);
  int rank = 0;
  try {
    if (argc == 2 && std::string_view(argv[1]) == "--describe")
      return detail::describe(name);
    Arguments arguments(argc, argv);
    const auto settings = prepare(arguments);
    const CommonArguments common(arguments);
    arguments.finish();
    if (int is_up = 0; MPI_Initialized(&is_up), is_up == 0) // mpi.init has timed it already
      MPI_Init(nullptr, nullptr);
    rank = world_rank();
    const int found = world_size();
    if (found != common.ranks)
      throw Failure(Exit::launcher, "MPI knows of " + std::to_string(found) + " ranks where " +
                                        std::to_string(common.ranks) +
                                        " were started: the launcher is not of this MPI library");
    Program program(name, common, rank);
    program.hello();
    try {
      measure(program, settings);
      program.end();
    } catch (const Skip& skip) {
      program.skip(skip.what());
    }
    MPI_Finalize();
    return static_cast<int>(Exit::ok);
  } catch (const Failure& failure) {
    return detail::give_up(name, rank, failure.what(), failure.status());
  } catch (const std::bad_alloc&) {
    return detail::give_up(name, rank, "no memory for the program itself (ulimit -v?)",
                           Exit::system);
  } catch (const std::exception& error) {
    return detail::give_up(name, rank, error.what(), Exit::software);
  }
}

} // namespace seatrial::mpi
