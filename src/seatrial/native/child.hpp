// Starts another program and waits for it, with as little overhead between the two time stamps as
// Linux allows.
#pragma once

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.hpp"
#include "failure.hpp"

namespace seatrial {

// The file that execvp(3) would run: a name with a slash as it is, else the first executable on
// PATH. None if not found.
[[nodiscard]] inline std::optional<std::string> program_on_path(std::string_view name) {
  const auto can_be_run = [](const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string_view::npos) {
    std::string path(name);
    return can_be_run(path) ? std::optional(path) : std::nullopt;
  }
  const char* variable = std::getenv("PATH");
  const std::string_view folders = variable != nullptr ? variable : "/bin:/usr/bin";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const auto end = std::min(folders.find(':', begin), folders.size());
    std::string path(folders.substr(begin, end - begin)); // an empty entry is the current folder
    path.append(path.empty() ? "./" : "/").append(name);
    if (can_be_run(path))
      return path;
    begin = end + 1;
  }
  return std::nullopt;
}

struct ChildEnd {
  int status = 0; // as returned by wait4(2)
  rusage usage{}; // includes children that it waited for
  Interval interval;

  // A description of how it ended; empty on success.
  [[nodiscard]] std::string failure_text() const {
    if (WIFSIGNALED(status))
      return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
             ::strsignal(WTERMSIG(status)) + ")";
    if (WEXITSTATUS(status) != 0)
      return "ended with exit status " + std::to_string(WEXITSTATUS(status));
    return {};
  }

  // Its exit status as a shell reports it: 128 + n for signal n.
  [[nodiscard]] int shell_exit_status() const noexcept {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
};

// A child process that starts in a fraction of the time of fork: it shares our memory until it runs
// the other program (Linux, clone(2), CLONE_VM and CLONE_VFORK). Its standard input is a file,
// empty by default; it shares our standard output and error, and it is killed when the thread that
// started it ends. It may be run again and again.
class Child {
public:
  Child(std::string path, const std::vector<std::string>& words, std::string input = "/dev/null")
      : path_(std::move(path)), words_(words), input_path_(std::move(input)), stack_(stack_bytes),
        parent_(::getpid()) {
    for (auto& word : words_)
      argv_.push_back(word.data());
    argv_.push_back(nullptr);
  }
  ~Child() { close_input(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Starts it, calls `started` with its process id, and waits for it to end. `output` >= 0 replaces
  // its standard output. Throws Failure if it cannot be started. Everything that the child needs is
  // prepared outside the timed region.
  template <class Started>
  [[nodiscard]] ChildEnd run(Started started, int output = -1) {
    open_input();
    output_ = output;
    error_ = 0;
    ChildEnd end;
    end.interval.start = Clock::now();
    const auto pid = ::clone(&Child::become, stack_.data() + stack_.size(),
                             CLONE_VM | CLONE_VFORK | SIGCHLD, this);
    if (pid < 0)
      throw Failure(Exit::system, std::string("cannot start a process: ") + std::strerror(errno));
    started(pid);
    while (::wait4(pid, &end.status, 0, &end.usage) < 0)
      if (errno != EINTR)
        throw Failure(Exit::system, std::string("wait4: ") + std::strerror(errno));
    end.interval.end = Clock::now();
    if (error_ != 0)
      throw Failure(Exit::system, path_ + " cannot be run: " + why(error_));
    return end;
  }

private:
  static constexpr std::size_t stack_bytes = 64 << 10;

  // Each run reads its input from the beginning.
  void open_input() {
    close_input();
    input_ = ::open(input_path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (input_ < 0)
      throw Failure(Exit::system, "cannot open " + input_path_ + ": " + std::strerror(errno));
  }

  void close_input() noexcept {
    if (input_ >= 0)
      ::close(std::exchange(input_, -1));
  }

  [[nodiscard]] static std::string why(int error) {
    if (error == ENOEXEC)
      return "not an executable for this machine; a script needs a first line such as #!/bin/sh";
    if (error == ENOENT)
      return "its interpreter or dynamic loader is missing";
    return std::strerror(error);
  }

  // Runs in the child, which shares our memory: system calls only.
  static int become(void* self) {
    auto& child = *static_cast<Child*>(self);
    for (const int ignored : {SIGXFSZ, SIGPIPE}) // by us, and exec keeps ignored signals ignored
      ::signal(ignored, SIG_DFL);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == child.parent_ && ::dup2(child.input_, STDIN_FILENO) >= 0 &&
        (child.output_ < 0 || ::dup2(child.output_, STDOUT_FILENO) >= 0))
      ::execv(child.path_.c_str(), child.argv_.data());
    child.error_ = errno != 0 ? errno : ECHILD;
    ::_exit(127);
  }

  std::string path_;
  std::vector<std::string> words_;
  std::string input_path_;
  std::vector<char*> argv_;
  std::vector<std::byte> stack_; // `new` aligns it for any type
  pid_t parent_;
  int input_ = -1;
  int output_ = -1;
  volatile int error_ = 0; // written by the child into our memory
};

} // namespace seatrial
