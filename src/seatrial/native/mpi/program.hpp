// What every MPI program does around its measurement: the protocol of CONTRACT.md for many ranks.
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include "affinity.hpp"
#include "arguments.hpp"
#include "clock.hpp"
#include "describe.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "isa.hpp"
#include "json.hpp"
#include "mpi/mpi.hpp"
#include "mpi/settings.hpp"
#include "record.hpp"
#include "wall_clock.hpp"

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

// Where this rank is, for the case that it does not come to its end: whoever hangs can be told from
// whoever waits for it, and whoever died from whom the launcher ended for it.
struct Phase {
  char text[200] = "start";
  volatile std::sig_atomic_t descriptor = -1;
};

inline Phase phase;

// The parts in one line of the record; only what a signal handler may do (signal-safety(7)).
inline void write_line(std::initializer_list<std::string_view> parts) noexcept {
  char line[512];
  std::size_t length = 0;
  for (const auto part : parts)
    for (const char letter : part)
      if (length < sizeof line)
        line[length++] = letter;
  if (phase.descriptor >= 0) [[maybe_unused]]
    const auto written = ::write(phase.descriptor, line, length);
}

inline void write_note(std::string_view key, std::string_view value) noexcept {
  write_line({"{\"ev\":\"note\",\"key\":\"", key, "\",\"value\":\"", value, "\"}\n"});
}

// The outermost function of MPI's interface that the interrupted thread is in; none outside of MPI.
// dladdr and backtrace are no functions for a signal handler by the letter: the lines that matter
// more are written before, and the process is about to end.
inline std::string_view mpi_call() noexcept {
  void* frames[64];
  const int depth = backtrace(frames, 64);
  for (int i = depth - 1; i >= 0; --i) {
    Dl_info found{};
    if (dladdr(frames[i], &found) == 0 || found.dli_sname == nullptr)
      continue;
    std::string_view name = found.dli_sname;
    if (name.starts_with("PMPI_"))
      name.remove_prefix(1);
    if (name.starts_with("MPI_"))
      return name;
  }
  return {};
}

inline void write_phase() noexcept {
  write_note("ended_in", phase.text);
}

// Launchers kill all other ranks when they see the end of one: it waits until these have spoken.
inline void when_told_to_end(int) noexcept {
  write_phase();
  write_note("in_call", mpi_call());
  timespec pause{0, 500'000'000};
  nanosleep(&pause, nullptr);
  _exit(128 + SIGTERM);
}

struct Fault {
  int signal;
  std::string_view name;
  struct sigaction before {};
};

inline std::array<Fault, 5> faults = {{{SIGSEGV, "SIGSEGV", {}},
                                       {SIGBUS, "SIGBUS", {}},
                                       {SIGFPE, "SIGFPE", {}},
                                       {SIGILL, "SIGILL", {}},
                                       {SIGABRT, "SIGABRT", {}}}};

// Whoever watched for the fault before (MPI libraries print where it was) has the next word.
inline void when_it_fails(int signal) noexcept {
  for (const auto& fault : faults)
    if (fault.signal == signal) {
      write_note("died", fault.name);
      write_phase();
      write_note("in_call", mpi_call());
      phase.descriptor = -1;
      ::sigaction(signal, &fault.before, nullptr);
      ::raise(signal); // taken when this handler returns
    }
}

inline void when_it_exits() noexcept {
  if (phase.descriptor >= 0) {
    write_note("died", "exit");
    write_phase();
  }
}

// After MPI_Init, whose own handlers would take the place of ours.
inline void watch_ends(int record) {
  phase.descriptor = ::fcntl(record, F_DUPFD_CLOEXEC, 0); // the record may be closed before
  void* frame = nullptr;
  backtrace(&frame, 1); // what it loads at its first call cannot be loaded in a handler
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = when_told_to_end;
  ::sigaction(SIGTERM, &action, nullptr);
  static std::array<std::byte, 64 << 10> stack; // a rank may die of having none left
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  ::sigaltstack(&other, nullptr);
  action.sa_handler = when_it_fails;
  action.sa_flags = SA_ONSTACK;
  for (auto& fault : faults)
    ::sigaction(fault.signal, &action, &fault.before);
  std::atexit(when_it_exits);
}

inline void watch_no_more() noexcept {
  const int descriptor = phase.descriptor;
  phase.descriptor = -1;
  if (descriptor >= 0)
    ::close(descriptor);
  std::signal(SIGTERM, SIG_DFL);
}

// Why this rank ends all others, in its own file.
inline void write_reason(std::string_view why) {
  write_line({note_event("died", why.substr(0, 200)).text(), "\n"});
  write_phase();
  watch_no_more();
}

} // namespace detail

// Events are rank 0's to write: it alone keeps what is added, so all ranks may call the same
// functions. What belongs to other ranks is gathered first, after the timed region.
class Program {
public:
  Program(std::string_view name, const CommonArguments& arguments, int rank)
      : rank(rank), ranks(arguments.ranks), slice_s(arguments.slice_s), name_(name),
        record_(arguments.record, rank) {
    detail::watch_ends(record_.descriptor());
  }

  // Collective. Each rank says at once that it lives; a second line of rank 0 holds the masks of
  // all, as they are after MPI_Init, which may move ranks.
  void hello() {
    const auto mine = bound_cpus();
    record_.add(hello_event(name_, {mine}, rank, ranks));
    record_.flush();
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

  void add(const json::Object& event) {
    if (rank == 0)
      record_.add(event);
  }

  // `value` is what rank 0 knows: reduce it first.
  void check(std::string_view name, double value) { add(check_event(name, value)); }

  template <class Value>
  void note(std::string_view key, const Value& value) {
    add(note_event(key, value));
  }

  // Collective: all ranks skip, or none.
  void skip(std::string_view reason) { finish(skip_event(reason)); }

  // Collective.
  void end() { finish(end_event()); }

  const int rank;
  const int ranks;
  const double slice_s;

private:
  // The other ranks' files remain only where a run died.
  void finish(const json::Object& last) {
    at("the end");
    MPI_Barrier(MPI_COMM_WORLD);
    detail::watch_no_more();
    if (rank != 0) {
      record_.remove();
    } else {
      record_.add(last);
      record_.close();
    }
  }

  std::string name_;
  Record record_;
};

namespace detail {

// One rank that gives up takes all with it: the others would wait for it for ever.
[[nodiscard]] inline int give_up(const char* name, int rank, const char* why,
                                 Exit status) noexcept {
  std::fprintf(stderr, "%s: rank %d: %s\n", name, rank, why);
  std::fflush(stderr);
  write_reason(why);
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
  const double started_s = wall_clock_s();
  std::signal(SIGXFSZ, SIG_IGN);
  int rank = 0;
  try {
    if (const auto status = described(name, argc, argv))
      return *status;
    Arguments arguments(argc, argv);
    const auto settings = prepare(arguments);
    const CommonArguments common(arguments);
    arguments.finish();
    std::optional<double> init_s;
    if (int is_up = 0; MPI_Initialized(&is_up), is_up == 0) // mpi.init has timed it already
      init_s = timed([] { MPI_Init(nullptr, nullptr); }).elapsed_s();
    rank = world_rank();
    const int found = world_size();
    if (found != common.ranks)
      throw Failure(Exit::launcher, "each rank is in a world of " + std::to_string(found) +
                                        " where " + std::to_string(common.ranks) +
                                        " ranks were started: the launcher is not that of " +
                                        library_version());
    Program program(name, common, rank);
    program.hello();
    program.note("started_at_s", started_s);
    if (init_s)
      program.note("mpi_init_s", *init_s);
    try {
      measure(program, settings);
      report_settings(program);
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
