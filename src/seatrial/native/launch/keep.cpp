// keep: runs a launcher and leaves none of its processes running, whatever happens to seatrial.
//
//   keep --parent PID --grace SECONDS -- COMMAND [arguments]
// It adopts every descendant that loses its parent (PR_SET_CHILD_SUBREAPER, prctl(2)), so neither a
// new session nor a double fork lets one escape. All of them are terminated when the command has
// ended, when the process that started us has ended (the kernel then sends SIGTERM; that is
// seatrial's guard, which ends with seatrial), and on SIGTERM, SIGINT, SIGHUP and SIGQUIT: first
// the leaves, which are the ranks, so that they can still report what they were
// doing; then the launcher and its daemons; after the grace period with SIGKILL. It exits as the
// command did. Files that MPI libraries leave behind after a failed run are removed.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arguments.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "hello.hpp"
#include "launch/helper_main.hpp"
#include "launch/leftovers.hpp"
#include "parent.hpp"

namespace {

using namespace seatrial;

constexpr std::array ends = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
constexpr double for_the_leaves_s = 1.0;
constexpr double poll_s = 0.02;

// A process and its parent, from /proc/PID/stat (proc(5)): the name in it is in parentheses and may
// contain anything.
struct Process {
  pid_t pid;
  pid_t parent;
  bool runs;
};

[[nodiscard]] std::optional<Process> process_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line))
    return std::nullopt;
  const auto bracket = line.rfind(')');
  if (bracket == std::string::npos || bracket + 4 >= line.size())
    return std::nullopt;
  const char state = line[bracket + 2];
  pid_t parent = 0;
  const char* const first = line.data() + bracket + 4;
  if (std::from_chars(first, line.data() + line.size(), parent).ec != std::errc{})
    return std::nullopt;
  return Process{pid, parent, state != 'Z' && state != 'X'};
}

// All running descendants of this process, the nearest first.
[[nodiscard]] std::vector<Process> descendants() {
  std::multimap<pid_t, Process> by_parent;
  if (DIR* folder = ::opendir("/proc")) {
    while (const dirent* entry = ::readdir(folder)) {
      const std::string_view name = entry->d_name;
      pid_t pid = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
      if (error != std::errc{} || end != name.data() + name.size())
        continue;
      if (const auto process = process_of(pid))
        by_parent.emplace(process->parent, *process);
    }
    ::closedir(folder);
  }
  std::vector<Process> found;
  std::vector<pid_t> parents = {::getpid()};
  for (std::size_t at = 0; at < parents.size(); ++at) {
    const auto [begin, end] = by_parent.equal_range(parents[at]);
    for (auto child = begin; child != end; ++child) {
      parents.push_back(child->first == 0 ? 0 : child->second.pid);
      if (child->second.runs)
        found.push_back(child->second);
    }
  }
  return found;
}

[[nodiscard]] bool has_child(const Process& process, const std::vector<Process>& all) {
  return std::ranges::any_of(all, [&](const Process& one) { return one.parent == process.pid; });
}

void send_signal(const std::vector<Process>& processes, int signal) {
  for (const auto& process : processes) {
    ::kill(process.pid, signal);
    if (signal == SIGTERM)
      ::kill(process.pid, SIGCONT); // a stopped process would not handle it
  }
}

class Keeper {
public:
  Keeper(char** command, double grace_s) : command_(command), grace_s_(grace_s) {
    sigemptyset(&watched_);
    sigaddset(&watched_, SIGCHLD);
    for (const int signal : ends)
      sigaddset(&watched_, signal);
  }

  // Runs the command; returns its status as from wait(2).
  [[nodiscard]] int run(pid_t parent) {
    sigset_t before;
    sigprocmask(SIG_BLOCK, &watched_, &before);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (parent != 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (!is_started_by(parent))
        throw Failure(Exit::parent_gone, "the parent " + std::to_string(parent) + " is gone");
    }
    start(before);
    while (!status_) {
      int signal = 0;
      sigwait(&watched_, &signal);
      if (signal != SIGCHLD)
        break;
      collect();
    }
    end_all();
    return *status_;
  }

private:
  void start(const sigset_t& before) {
    std::array<int, 2> error_pipe{};
    if (::pipe2(error_pipe.data(), O_CLOEXEC) != 0)
      throw Failure(Exit::system, std::string("pipe: ") + std::strerror(errno));
    const auto self = ::getpid();
    child_ = ::fork();
    if (child_ == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM); // if this process is killed, the launcher ends its ranks
      // Ranks that take turns open pipes of this process (mpi/turns.hpp).
      ::setenv("SEATRIAL_KEEP", std::to_string(self).c_str(), 1);
      if (::getppid() == self)
        ::execvp(command_[0], command_);
      const int error = errno;
      [[maybe_unused]] const auto written = ::write(error_pipe[1], &error, sizeof error);
      ::_exit(127);
    }
    ::close(error_pipe[1]);
    int error = child_ < 0 ? errno : 0;
    while (child_ > 0 && ::read(error_pipe[0], &error, sizeof error) < 0 && errno == EINTR) {
    }
    ::close(error_pipe[0]);
    if (error != 0)
      throw Failure(Exit::launcher,
                    std::string(command_[0]) + " cannot be started: " + std::strerror(error));
  }

  // Reaps all processes that ended; the command may be among them.
  void collect() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == child_)
        status_ = status;
  }

  // Waits until nothing is running, for at most `limit_s`; false if something still is.
  [[nodiscard]] bool wait_for(double limit_s, bool only_leaves) {
    const auto begin = Clock::now();
    for (;;) {
      collect();
      const auto all = descendants();
      if (all.empty() || (only_leaves && std::ranges::none_of(all, [&](const Process& one) {
                            return !has_child(one, all) && one.pid != child_;
                          })))
        return all.empty();
      if (seconds(Clock::now() - begin) >= limit_s)
        return false;
      const timespec pause{0, static_cast<long>(poll_s * 1e9)};
      sigtimedwait(&watched_, nullptr, &pause);
    }
  }

  // Orphans become our children: without children nothing is left.
  [[nodiscard]] bool has_children() const {
    siginfo_t found{};
    return ::waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) == 0;
  }

  void end_all() {
    if (!has_children())
      return finish();
    auto all = descendants();
    if (!status_ && !all.empty()) {
      std::vector<Process> leaves;
      std::ranges::copy_if(all, std::back_inserter(leaves),
                           [&](const Process& one) { return !has_child(one, all); });
      send_signal(leaves, SIGTERM);
      if (wait_for(for_the_leaves_s, true))
        return finish();
      all = descendants();
    }
    send_signal(all, SIGTERM);
    if (!wait_for(grace_s_, false)) {
      do // also processes that were started meanwhile
        send_signal(descendants(), SIGKILL);
      while (!wait_for(1.0, false));
    }
    finish();
  }

  void finish() {
    collect();
    if (!status_)
      status_ = SIGKILL;
    if (*status_ != 0)
      leftovers_.clear(child_);
  }

  Leftovers leftovers_;
  char** command_;
  double grace_s_;
  sigset_t watched_{};
  pid_t child_ = -1;
  std::optional<int> status_;
};

// Exits as the command did, also by the same signal.
[[nodiscard]] int exit_like(int status) {
  if (!WIFSIGNALED(status))
    return WEXITSTATUS(status);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  sigset_t all;
  sigfillset(&all);
  std::signal(WTERMSIG(status), SIG_DFL);
  ::raise(WTERMSIG(status));
  sigprocmask(SIG_UNBLOCK, &all, nullptr);
  return 128 + WTERMSIG(status);
}

[[nodiscard]] int run(int argc, char** argv) {
  if (const auto status = described("keep", argc, argv))
    return *status;
  int split = 1;
  while (split < argc && std::string_view(argv[split]) != "--")
    ++split;
  if (split + 1 >= argc)
    throw Failure(Exit::usage, "the command is missing: keep [arguments] -- COMMAND");
  Arguments arguments(split, argv);
  const auto parent = arguments.number("--parent", 0, 0, 1 << 30);
  const auto grace_s = arguments.number("--grace", 5.0, 0.0, 600.0);
  arguments.finish();
  return exit_like(Keeper(argv + split + 1, grace_s).run(parent));
}

} // namespace

int main(int argc, char** argv) {
  return helper_main("keep", run, argc, argv);
}
