// What every measuring program does around its measurement: the protocol of CONTRACT.md.
#pragma once

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

#include "arguments.hpp"
#include "describe.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "isa.hpp"
#include "record.hpp"
#include "team.hpp"
#include "turns.hpp"
#include "unsupported.hpp"

namespace seatrial {

namespace detail {

// A hung measurement must not outlive the lab. Linux sends the signal when the *thread* that
// started this process ends (prctl(2)); the check behind it closes the gap before the call.
inline void die_with(long parent) {
  if (parent == 0)
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent)
    throw Failure(Exit::parent_gone, "the parent " + std::to_string(parent) + " is gone");
}

} // namespace detail

// The arguments that all programs take.
struct CommonArguments {
  explicit CommonArguments(Arguments& arguments)
      : record(arguments.required("--record")), cpus(arguments.cpus("--cpus")),
        slice_s(arguments.number("--slice", 0.25, 0.0, 86400.0)),
        parent(arguments.number("--parent", 0L, 0L, 1L << 31)), turns(arguments, cpus.size()),
        own(arguments.words_without({"--record", "--cpus", "--parent"})) {}

  std::string record;           // the folder to write into
  std::vector<int> cpus;        // one thread on each
  double slice_s;               // how long to take samples
  long parent;                  // the process whose end is ours too; 0: none
  Turns turns;                  // with programs that this one is compared with
  std::vector<std::string> own; // all other arguments
};

class Program {
public:
  Program(std::string_view name, CommonArguments& arguments)
      : cpus(arguments.cpus), slice_s(arguments.slice_s), turns(arguments.turns), name_(name),
        record_(arguments.record), stands_alone_(arguments.parent == 0), own_(arguments.own) {}

  // After the threads bound themselves and before anything is measured, and written at once: a run
  // that dies later is still known, and a record that cannot be written costs no measurement.
  void hello(const Team& team) {
    record_.add(hello_event(name_, team.bound()));
    if (stands_alone_) // the lab knows what it asked for; who reads this file elsewhere does not
      note("arguments", own_);
    record_.flush();
  }

  void add(const json::Object& event) { record_.add(event); }

  void check(std::string_view name, double value) { record_.add(check_event(name, value)); }

  template <class Value>
  void note(std::string_view key, const Value& value) {
    record_.add(note_event(key, value));
  }

  void skip(std::string_view reason) {
    record_.add(skip_event(reason));
    record_.close();
  }

  void unsupported(const Unsupported& lack) {
    record_.add(unsupported_event(lack.need(), lack.what()));
    record_.close();
  }

  void end() {
    if (const auto taken = turns.taken())
      note("turns", *taken);
    record_.add(end_event());
    record_.close();
  }

  const std::vector<int> cpus;
  const double slice_s;
  Turns& turns;

private:
  std::string name_;
  Record record_;
  bool stands_alone_;
  std::vector<std::string> own_;
};

// `prepare(arguments)` takes the benchmark's own arguments; `measure(program, settings)` does the
// rest. Every way out has its line on stderr and its exit status.
template <class Prepare, class Measure>
int run_program(const char* name, int argc, char** argv, Prepare prepare,
                Measure measure) noexcept {
  if (const char* feature = missing_feature()) {
    dprintf(STDERR_FILENO, "%s: built for %s, which this CPU lacks\n", name, feature);
    return static_cast<int>(Exit::wrong_cpu);
  }
  // A file-size limit is to be an error of write(2), not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    if (const auto status = described(name, argc, argv))
      return *status;
    Arguments arguments(argc, argv);
    const auto settings = prepare(arguments);
    CommonArguments common(arguments);
    arguments.finish();
    detail::die_with(common.parent);
    Program program(name, common);
    common.turns.await_first();
    try {
      measure(program, settings);
      program.end();
    } catch (const Skip& skip) {
      program.skip(skip.what());
    } catch (const Unsupported& lack) {
      program.unsupported(lack);
    }
    return static_cast<int>(Exit::ok);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", name, failure.what());
    return static_cast<int>(failure.status());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: no memory for the program itself (ulimit -v?)\n", name);
    return static_cast<int>(Exit::system);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: unexpected: %s\n", name, error.what());
    return static_cast<int>(Exit::software);
  }
}

} // namespace seatrial
