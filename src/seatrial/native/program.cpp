// untimed: -O1
#include "program.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include "hello.hpp"
#include "parent.hpp"
#include "thread_time.hpp"

namespace seatrial {

namespace detail {

// Linux sends the signal when the *thread* that started this process ends (prctl(2)); that is
// seatrial's guard, which ends with seatrial. The check afterwards covers an end before the call.
void die_with_parent(long parent) {
  if (parent == 0)
    return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!is_started_by(static_cast<pid_t>(parent)))
    throw Failure(Exit::parent_gone, "the parent " + std::to_string(parent) + " is gone");
}

} // namespace detail

CommonArguments::CommonArguments(Arguments& arguments)
    : record(arguments.required("--record")), cpus(arguments.cpus("--cpus")),
      slice_s(slice_of(arguments)), parent(arguments.number("--parent", 0L, 0L, 1L << 31)),
      turns(arguments, cpus.size()),
      own(arguments.words_without({"--record", "--cpus", "--parent"})) {}

Program::Program(std::string_view name, CommonArguments& arguments)
    : cpus(arguments.cpus), slice_s(arguments.slice_s), turns(arguments.turns), name_(name),
      record_(arguments.record), is_standalone_(arguments.parent == 0), own_(arguments.own) {}

void Program::hello(const Team& team) {
  record_.add(hello_event(name_, team.bound()));
  if (is_standalone_) // seatrial knows the arguments; readers of a stand-alone record do not
    note("arguments", own_);
  record_.flush();
}

void Program::check(std::string_view name, double value) {
  record_.add(check_event(name, value));
}

void Program::skip(std::string_view reason) {
  record_.add(skip_event(reason));
  record_.close();
}

void Program::unsupported(const Unsupported& missing) {
  record_.add(unsupported_event(missing.need(), missing.what()));
  record_.close();
}

void Program::end() {
  if (const auto taken = turns.taken())
    note("turns", *taken);
  if (const auto sampled = phase.note())
    note("sampled", *sampled);
  if (const auto time = counted_threads(); time.threads > 0)
    note("looks", json::Object()
                      .add("threads", time.threads)
                      .add("cpu_s", time.cpu_s)
                      .add("delay_s", time.delay_s));
  record_.add(end_event());
  record_.close();
}

} // namespace seatrial
