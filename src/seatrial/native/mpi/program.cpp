#include "mpi/program.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
#include <set>

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <unistd.h>

#include "affinity.hpp"
#include "hello.hpp"

namespace seatrial::mpi {

namespace {

// The current phase of this rank, in case it does not finish: it distinguishes a rank that hangs
// from those that wait for it, and a rank that died from those that the launcher ended.
struct Phase {
  char text[200] = "start";
  volatile std::sig_atomic_t descriptor = -1;
};

Phase current_phase;

// Writes the parts as one line of the record; only calls what a signal handler may call
// (signal-safety(7)).
void write_line(std::initializer_list<std::string_view> parts) noexcept {
  char line[512];
  std::size_t length = 0;
  for (const auto part : parts)
    for (const char letter : part)
      if (length < sizeof line)
        line[length++] = letter;
  if (current_phase.descriptor >= 0) [[maybe_unused]]
    const auto written = ::write(current_phase.descriptor, line, length);
}

void write_note(std::string_view key, std::string_view value) noexcept {
  write_line({"{\"ev\":\"note\",\"key\":\"", key, "\",\"value\":\"", value, "\"}\n"});
}

// The outermost MPI function that the interrupted thread is in; empty outside MPI. Strictly, dladdr
// and backtrace are not async-signal-safe: the more important lines are written before, and the
// process is about to end.
std::string_view mpi_call() noexcept {
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

void write_phase() noexcept {
  write_note("ended_in", current_phase.text);
}

// Launchers kill all other ranks when one of them ends, so wait until these have written their
// notes.
void on_termination(int) noexcept {
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

std::array<Fault, 5> faults = {{{SIGSEGV, "SIGSEGV", {}},
                                {SIGBUS, "SIGBUS", {}},
                                {SIGFPE, "SIGFPE", {}},
                                {SIGILL, "SIGILL", {}},
                                {SIGABRT, "SIGABRT", {}}}};

// The previous handler of the fault (MPI libraries print a backtrace) runs afterwards.
void on_fault(int signal) noexcept {
  for (const auto& fault : faults)
    if (fault.signal == signal) {
      write_note("died", fault.name);
      write_phase();
      write_note("in_call", mpi_call());
      current_phase.descriptor = -1;
      ::sigaction(signal, &fault.before, nullptr);
      ::raise(signal); // delivered when this handler returns
    }
}

void at_process_exit() noexcept {
  if (current_phase.descriptor >= 0) {
    write_note("died", "exit");
    write_phase();
  }
}

// Call after MPI_Init, whose handlers would otherwise replace ours.
void install_handlers(int record) {
  current_phase.descriptor =
      ::fcntl(record, F_DUPFD_CLOEXEC, 0); // the record may be closed earlier
  void* frame = nullptr;
  backtrace(&frame, 1); // its first call loads a library, which a handler must not do
  struct sigaction action {};
  sigemptyset(&action.sa_mask);
  action.sa_handler = on_termination;
  ::sigaction(SIGTERM, &action, nullptr);
  static std::array<std::byte, 64 << 10> stack; // a rank may die of stack overflow
  stack_t other{};
  other.ss_sp = stack.data();
  other.ss_size = stack.size();
  ::sigaltstack(&other, nullptr);
  action.sa_handler = on_fault;
  action.sa_flags = SA_ONSTACK;
  for (auto& fault : faults)
    ::sigaction(fault.signal, &action, &fault.before);
  std::atexit(at_process_exit);
}

// MPICH 4.0.2 with UCX 1.13 can hang in MPI_Finalize over TCP if messages were under way just
// before; it did not in runs that paused for this long.
void let_messages_settle() {
#ifdef MPICH
  const timespec pause{0, 300'000'000};
  nanosleep(&pause, nullptr);
#endif
}

void watch_no_more() noexcept {
  const int descriptor = current_phase.descriptor;
  current_phase.descriptor = -1;
  if (descriptor >= 0)
    ::close(descriptor);
  std::signal(SIGTERM, SIG_DFL);
}

// Records in this rank's file why it ends all others.
void write_reason(std::string_view why) {
  write_line({note_event("died", why.substr(0, 200)).text(), "\n"});
  write_phase();
  watch_no_more();
}

// An error of MPI, which by default ends the program with nothing but the library's own message.
void on_mpi_error(MPI_Comm* communicator, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(*code, text, &length);
  if (const auto call = mpi_call(); !call.empty()) // a library may have left its function already
    write_note("in_call", call);
  write_reason(text);
  std::fprintf(stderr, "%s\n", text);
  MPI_Abort(*communicator, 1);
}

void report_mpi_errors() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(on_mpi_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  MPI_Errhandler_free(&handler);
}

} // namespace

CommonArguments::CommonArguments(Arguments& arguments)
    : record(arguments.required("--record")), ranks(arguments.number("--ranks", 0, 1, max_ranks)),
      slice_s(slice_of(arguments)), turns(arguments) {
  if (ranks == 0)
    throw Failure(Exit::usage, "--ranks is missing");
}

Program::Program(std::string_view name, CommonArguments& arguments, int rank)
    : rank(rank), ranks(arguments.ranks), slice_s(arguments.slice_s), turns(arguments.turns),
      name_(name), record_(arguments.record, rank) {
  install_handlers(record_.descriptor());
  report_mpi_errors();
}

void Program::hello() {
  const auto mine = bound_cpus();
  record_.add(hello_event(name_, {mine}, rank, ranks));
  record_.flush();
  const auto masks = gather_lists(mine);
  hosts_ = gather_hosts();
  nodes_ = of_first(static_cast<double>(std::set(hosts_.begin(), hosts_.end()).size()));
  if (nodes_ > 1) {
    choose_counting_ranks();
    before_ = link_bytes();
    if (reads_counters_)
      counters_before_ = link_counters();
    MPI_Barrier(MPI_COMM_WORLD); // no node sends its first message before all have counted
  }
  if (rank == 0) {
    record_.add(hello_event(name_, masks, rank, ranks).add("hosts", hosts_));
    record_.flush();
  }
  note("mpi_version", library_version());
}

void Program::at(std::string_view words) noexcept {
  const auto length = std::min(words.size(), sizeof current_phase.text - 1);
  std::memcpy(current_phase.text, words.data(), length);
  current_phase.text[length] = '\0';
}

void Program::add(const json::Object& event) {
  if (rank == 0)
    record_.add(event);
}

void Program::check(std::string_view name, double value) {
  add(check_event(name, value));
}

void Program::skip(std::string_view reason) {
  finish(skip_event(reason));
}

void Program::unsupported(std::string_view need, std::string_view reason) {
  finish(unsupported_event(need, reason));
}

void Program::end() {
  if (const auto taken = turns.taken())
    note("turns", *taken);
  if (const auto sampled = phase.note())
    note("sampled", *sampled);
  report_traffic();
  report_counters();
  finish(end_event());
}

// Collective: only rank 0 knows which ranks share a node.
void Program::choose_counting_ranks() {
  std::vector<int> chosen(hosts_.size());
  std::set<std::string> seen;
  for (std::size_t r = 0; r < hosts_.size(); ++r)
    chosen[r] = seen.insert(hosts_[r]).second ? 1 : 0;
  int mine = 0;
  MPI_Scatter(chosen.data(), 1, MPI_INT, &mine, 1, MPI_INT, 0, MPI_COMM_WORLD);
  reads_counters_ = mine != 0;
}

// Collective, after the last message: what has passed the links of each node since the hello, as
// its first rank counted it. All ranks count, since only rank 0 knows which ranks share a node.
void Program::report_traffic() {
  if (nodes_ < 2)
    return;
  MPI_Barrier(MPI_COMM_WORLD);
  const auto now = link_bytes();
  const auto unknown = before_.unknown.empty() ? now.unknown : before_.unknown;
  const auto all = gather(
      {now.sent - before_.sent, now.received - before_.received, unknown.empty() ? 0.0 : 1.0});
  std::set<std::string> counted;
  std::vector<json::Object> nodes;
  for (std::size_t r = 0; r < hosts_.size(); ++r)
    if (counted.insert(hosts_[r]).second) {
      auto node = json::Object().add("host", hosts_[r]);
      if (all[3 * r + 2] == 0)
        node.add("sent_B", all[3 * r]).add("received_B", all[3 * r + 1]);
      nodes.push_back(node);
    }
  note("traffic", nodes);
  if (!unknown.empty())
    note("traffic_unknown", unknown);
}

// Collective: which counters of links grew on each of several nodes.
void Program::report_counters() {
  if (nodes_ < 2)
    return;
  const auto mine = reads_counters_ ? lines(grown(counters_before_, link_counters())) : "";
  const auto all = gather_lists(std::vector<char>(mine.begin(), mine.end()));
  std::vector<json::Object> found;
  for (std::size_t r = 0; r < all.size(); ++r)
    for (const auto& [port, counter, grew_by] : growths({all[r].begin(), all[r].end()})) {
      auto own = json::Object().add("host", hosts_[r]).add("port", port).add("counter", counter);
      if (grew_by >= 0)
        own.add("grew_by", grew_by);
      found.push_back(own);
    }
  note("links", found);
}

// The other ranks' files remain only if a run died.
void Program::finish(const json::Object& last) {
  at("the end");
  MPI_Barrier(MPI_COMM_WORLD);
  watch_no_more();
  if (rank != 0) {
    record_.remove();
  } else {
    record_.add(last);
    record_.close();
  }
  if (nodes_ > 1)
    let_messages_settle();
}

namespace detail {

int give_up(const char* name, int rank, const char* why, Exit status) noexcept {
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

} // namespace seatrial::mpi
