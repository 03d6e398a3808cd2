// keep: runs a launcher, and leaves nothing of it running, whatever happens to the lab.
//
//   keep --parent PID --grace SECONDS -- COMMAND [arguments]
// It adopts every descendant that loses its parent (PR_SET_CHILD_SUBREAPER, prctl(2)), so neither a
// session of its own nor a double fork lets one escape. All of them are ended when the command has
// ended, when the lab is gone (the kernel then sends SIGTERM), and on SIGTERM, SIGINT and SIGHUP:
// first those at the leaves, which are the ranks, so that they can still say what they were doing;
// a little later the launcher and its daemons; after the grace by SIGKILL. Its end is the
// command's. What MPI libraries leave of a run that did not end well is removed.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
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
#include "launch/leftovers.hpp"

namespace {

using namespace seatrial;

constexpr std::array ends = {SIGTERM, SIGINT, SIGHUP};
constexpr double for_the_leaves_s = 1.0;
constexpr double poll_s = 0.02;

// A process and who started it, as /proc/PID/stat tells (proc(5)): the name in it is in brackets
// and may hold anything.
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

// All that come from this process, those that run, the nearest first.
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

void tell(const std::vector<Process>& processes, int signal) {
  for (const auto& process : processes) {
    ::kill(process.pid, signal);
    if (signal == SIGTERM)
      ::kill(process.pid, SIGCONT); // a stopped one would never get it
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

  // How the command ended, as wait(2) gives it.
  [[nodiscard]] int run(pid_t parent) {
    sigset_t before;
    sigprocmask(SIG_BLOCK, &watched_, &before);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (parent != 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::getppid() != parent)
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
    std::array<int, 2> told{};
    if (::pipe2(told.data(), O_CLOEXEC) != 0)
      throw Failure(Exit::system, std::string("pipe: ") + std::strerror(errno));
    const auto self = ::getpid();
    child_ = ::fork();
    if (child_ == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      ::prctl(PR_SET_PDEATHSIG, SIGTERM); // were this process killed, the launcher ends its ranks
      if (::getppid() == self)
        ::execvp(command_[0], command_);
      const int error = errno;
      [[maybe_unused]] const auto written = ::write(told[1], &error, sizeof error);
      ::_exit(127);
    }
    ::close(told[1]);
    int error = child_ < 0 ? errno : 0;
    while (child_ > 0 && ::read(told[0], &error, sizeof error) < 0 && errno == EINTR) {
    }
    ::close(told[0]);
    if (error != 0)
      throw Failure(Exit::launcher,
                    std::string(command_[0]) + " cannot be started: " + std::strerror(error));
  }

  // All that ended; among them may be the command.
  void collect() {
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (pid == child_)
        status_ = status;
  }

  // Whether nothing runs any more; waits for it at most so long.
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

  // Orphans are our children: where there is none, nothing is left.
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
      tell(leaves, SIGTERM);
      if (wait_for(for_the_leaves_s, true))
        return finish();
      all = descendants();
    }
    tell(all, SIGTERM);
    if (!wait_for(grace_s_, false)) {
      do // what they started meanwhile, too
        tell(descendants(), SIGKILL);
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

// The same end as the command's: a signal is one here, too.
[[nodiscard]] int end_as(int status) {
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
  return end_as(Keeper(argv + split + 1, grace_s).run(parent));
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "keep: %s\n", failure.what());
    return static_cast<int>(failure.status());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "keep: %s\n", error.what());
    return static_cast<int>(Exit::software);
  }
}
