// The frame of every measuring program: the protocol of CONTRACT.md.
#pragma once

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "arguments.hpp"
#include "events.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "isa.hpp"
#include "phase.hpp"
#include "record.hpp"
#include "team.hpp"
#include "turns.hpp"
#include "unsupported.hpp"

namespace seatrial {

namespace detail {

// Ends this process with its parent: a hung measurement must not outlive seatrial.
void die_with_parent(long parent);

} // namespace detail

// The arguments that all programs take.
struct CommonArguments {
  explicit CommonArguments(Arguments& arguments);

  std::string record;           // the output folder
  std::vector<int> cpus;        // one thread per CPU
  double slice_s;               // time for taking samples
  long parent;                  // end when this process ends; 0: none
  Turns turns;                  // for runs interleaved with the programs it is compared with
  std::vector<std::string> own; // all other arguments
};

class Program {
public:
  Program(std::string_view name, CommonArguments& arguments);

  // Call after the threads are bound and before anything is measured. Written at once: a run that
  // dies later is still identified, and an unwritable record is found before the measurement.
  void hello(const Team& team);

  void add(const json::Object& event) { record_.add(event); }

  void check(std::string_view name, double value);

  template <class Value>
  void note(std::string_view key, const Value& value) {
    record_.add(note_event(key, value));
  }

  void skip(std::string_view reason);

  void unsupported(const Unsupported& missing);

  void end();

  const std::vector<int> cpus;
  const double slice_s;
  Turns& turns;
  SamplingPhase phase;

private:
  std::string name_;
  Record record_;
  bool is_standalone_;
  std::vector<std::string> own_;
};

// `prepare(arguments)` reads the benchmark's own arguments; `measure(program, settings)` does the
// rest. Every exit path prints a line on stderr and has its own exit status.
template <class Prepare, class Measure>
int run_program(const char* name, int argc, char** argv, Prepare prepare,
                Measure measure) noexcept {
  if (const char* feature = missing_feature()) {
    dprintf(STDERR_FILENO, "%s: built for %s, which this CPU lacks\n", name, feature);
    return static_cast<int>(Exit::wrong_cpu);
  }
  // Turns a file-size limit into an error of write(2) instead of a signal.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    if (const auto status = described(name, argc, argv))
      return *status;
    Arguments arguments(argc, argv);
    const auto settings = prepare(arguments);
    CommonArguments common(arguments);
    arguments.finish();
    detail::die_with_parent(common.parent);
    Program program(name, common);
    common.turns.await_first();
    try {
      measure(program, settings);
      program.end();
    } catch (const Skip& skip) {
      program.skip(skip.what());
    } catch (const Unsupported& missing) {
      program.unsupported(missing);
    }
    return static_cast<int>(Exit::ok);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", name, failure.what());
    return static_cast<int>(failure.status());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: out of memory (ulimit -v?)\n", name);
    return static_cast<int>(Exit::system);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: unexpected: %s\n", name, error.what());
    return static_cast<int>(Exit::software);
  }
}

} // namespace seatrial
