// The frame of every MPI program: the protocol of CONTRACT.md for many ranks.
#pragma once

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "arguments.hpp"
#include "clock.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "isa.hpp"
#include "json.hpp"
#include "mpi/link_bytes.hpp"
#include "mpi/link_counters.hpp"
#include "mpi/mpi.hpp"
#include "mpi/settings.hpp"
#include "mpi/transport.hpp"
#include "mpi/turns.hpp"
#include "phase.hpp"
#include "record.hpp"
#include "unsupported.hpp"
#include "wall_clock.hpp"

namespace seatrial::mpi {

// The arguments that all MPI programs take.
struct CommonArguments {
  explicit CommonArguments(Arguments& arguments);

  static constexpr int max_ranks = 1 << 20;
  std::string record; // the output folder
  int ranks;          // number of ranks that the launcher was asked to start
  double slice_s;     // time for taking samples
  Turns turns;        // for runs interleaved with those that it is compared with
};

// Only rank 0 writes events: it alone keeps what is added, so all ranks may call the same
// functions. Data of other ranks is gathered first, after the timed region.
class Program {
public:
  Program(std::string_view name, CommonArguments& arguments, int rank);

  // Collective. Each rank writes its hello at once; a second line of rank 0 holds the masks of all
  // ranks after MPI_Init, which may move ranks.
  void hello();

  // Sets the current phase, which is reported if the rank must be ended from outside. Do not call
  // inside a timed region.
  void at(std::string_view phase) noexcept;

  void add(const json::Object& event);

  // `value` is that of rank 0: reduce it first.
  void check(std::string_view name, double value);

  template <class Value>
  void note(std::string_view key, const Value& value) {
    add(note_event(key, value));
  }

  // Collective: all ranks skip or none does.
  void skip(std::string_view reason);
  void unsupported(std::string_view need, std::string_view reason);

  // Collective.
  void end();

  const int rank;
  const int ranks;
  const double slice_s;
  Turns& turns;
  SamplingPhase phase; // of rank 0

private:
  void finish(const json::Object& last);
  void choose_counting_ranks();
  void report_traffic();
  void report_counters();

  std::string name_;
  Record record_;
  std::vector<std::string> hosts_; // of each rank; empty but on rank 0
  double nodes_ = 1;
  LinkBytes before_;
  bool reads_counters_ = false; // the first rank of each node does, if there are several nodes
  LinkCounters counters_before_;
};

namespace detail {

// A rank that stops ends all ranks: the others would wait for it forever.
[[nodiscard]] int give_up(const char* name, int rank, const char* why, Exit status) noexcept;

} // namespace detail

// Like `run_program` (program.hpp) for ranks: `prepare(arguments)` reads the benchmark's own
// arguments; `measure(program, settings)` does the rest on every rank. Skip and Unsupported must be
// thrown by all ranks or by none (agreed.hpp).
template <class Prepare, class Measure>
int run_program(const char* name, int argc, char** argv, Prepare prepare,
                Measure measure) noexcept {
  if (const char* feature = missing_feature()) {
    dprintf(STDERR_FILENO, "%s: built for %s, which this CPU lacks\n", name, feature);
    return static_cast<int>(Exit::wrong_cpu);
  }
  const double started_s = wall_clock_s();
  std::signal(SIGXFSZ, SIG_IGN);
  int rank = 0;
  try {
    if (const auto status = described(name, argc, argv))
      return *status;
    Arguments arguments(argc, argv);
    const auto settings = prepare(arguments);
    CommonArguments common(arguments);
    arguments.finish();
    std::optional<double> init_s;
    if (int is_up = 0; MPI_Initialized(&is_up), is_up == 0) // mpi.init has already timed it
      init_s = timed([] { MPI_Init(nullptr, nullptr); }).elapsed_s();
    common.turns.await_first();
    rank = world_rank();
    const int found = world_size();
    if (found != common.ranks)
      throw Failure(Exit::launcher, "each rank has an MPI_COMM_WORLD of size " +
                                        std::to_string(found) + ", but " +
                                        std::to_string(common.ranks) +
                                        " ranks were started: the launcher does not belong to " +
                                        library_version());
    Program program(name, common, rank);
    program.hello();
    program.note("started_at_s", started_s);
    if (init_s)
      program.note("mpi_init_s", *init_s);
    try {
      measure(program, settings);
      report_settings(program);
      report_transport(program);
      program.end();
    } catch (const Skip& skip) {
      program.skip(skip.what());
    } catch (const Unsupported& missing) {
      program.unsupported(missing.need(), missing.what());
    }
    MPI_Finalize();
    return static_cast<int>(Exit::ok);
  } catch (const Failure& failure) {
    return detail::give_up(name, rank, failure.what(), failure.status());
  } catch (const std::bad_alloc&) {
    return detail::give_up(name, rank, "out of memory (ulimit -v?)", Exit::system);
  } catch (const std::exception& error) {
    return detail::give_up(name, rank, error.what(), Exit::software);
  }
}

} // namespace seatrial::mpi
