// What was counted of the threads of a process and its descendants (task_looks.hpp), added up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "code_looks.hpp"
#include "process_waits.hpp"

namespace seatrial {

class TaskSums {
public:
  struct Counted {
    double cpu_s = 0.0;
    double delay_s = 0.0; // ready to run, but no CPU
  };

  // Threads that may run on the same CPUs, where a mask was seen.
  struct Bound {
    Counted counted;
    std::size_t threads = 0;
  };

  struct Wait {
    std::string kind; // "read", "write", "sync", "open", "fault"
    std::string path; // of the file, if a descriptor says which
    double seconds = 0.0;
  };

  // Something that was seen: how often, and the seconds that these looks stand for.
  struct Span {
    double seconds = 0.0;
    std::size_t looks = 0;
    void add(double since_s) noexcept {
      seconds += since_s;
      ++looks;
    }
  };

  // The threads that waited for a mutex when they were looked at.
  struct Locks {
    Span wait; // all threads together
    std::size_t threads = 0;
    std::size_t blocked_looks = 0; // those in which a thread was blocked for any reason
    double blocked_s = 0.0;        // as the kernel counts: it neither ran nor was ready to run
    double turns = 0.0;            // how often it got a CPU
  };

  // Looks at a process that found a file open which it had open neither at the look before nor
  // at the next.
  struct Openings {
    std::size_t looks = 0;
    std::string path; // the last of these files
  };

  // Waiting for another process, of the same or another program: for its data, until it reads, or
  // for a lock that it holds.
  struct OtherWait {
    ProcessWait::For what = ProcessWait::For::data;
    std::string name = {}; // of the process; empty: not known
    std::string path = {}; // of the file that is locked
    bool is_child = false;
    auto operator<=>(const OtherWait&) const = default;
  };

  struct OtherSpan {
    Span span;
    std::size_t ran = 0; // looks in which the other process ran
  };

  // Processes of one name.
  struct Process {
    std::size_t processes = 0;
    double seen_s = 0.0;
    double cpu_s = 0.0;
    double system_s = 0.0; // the part of it in the kernel
    double minor_faults = 0.0;
    std::map<std::string, Span> children = {};  // that it waited for while none of its threads ran
    std::map<OtherWait, OtherSpan> others = {}; // in the same way
  };

  [[nodiscard]] const CodeLooks& code() const noexcept { return code_; }

  // Seconds from the first to the last look.
  [[nodiscard]] double covered_s() const noexcept { return covered_s_; }

  [[nodiscard]] std::size_t looks() const noexcept { return looks_; }

  [[nodiscard]] std::size_t threads() const noexcept { return tasks_.size(); }

  // The most that were there at one look.
  [[nodiscard]] std::size_t most_threads() const noexcept { return most_threads_; }
  [[nodiscard]] std::size_t most_processes() const noexcept { return most_processes_; }

  [[nodiscard]] const Openings& openings() const noexcept { return openings_; }

  // Whether one of the processes has a handler for SIGSEGV: page faults that end in one are in no
  // counter of a process.
  [[nodiscard]] bool catches_faults() const noexcept {
    return std::ranges::any_of(processes_,
                               [](const auto& one) { return one.second.catches_faults; });
  }

  // Threads that waited for others of their process, which ran: all threads together.
  [[nodiscard]] const Span& thread_waits() const noexcept { return thread_waits_; }

  // CPU time of each thread, the longest first; empty if threads came and went.
  [[nodiscard]] std::vector<double> thread_cpu_s() const {
    std::vector<double> all;
    if (tasks_.size() > most_threads_)
      return all;
    all.reserve(tasks_.size());
    for (const auto& [name, task] : tasks_)
      all.push_back(task.counted.cpu_s);
    std::ranges::sort(all, std::greater{});
    all.resize(std::min(all.size(), most_listed));
    return all;
  }

  // All threads together.
  [[nodiscard]] Counted counted() const noexcept {
    Counted sum;
    for (const auto& [name, task] : tasks_) {
      sum.cpu_s += task.counted.cpu_s;
      sum.delay_s += task.counted.delay_s;
    }
    return sum;
  }

  // By the CPUs that the threads might use when they were last seen running.
  [[nodiscard]] std::map<std::string, Bound> bound() const {
    std::map<std::string, Bound> all;
    for (const auto& [name, task] : tasks_) {
      if (task.allowed.empty() || (all.size() == most_masks && !all.contains(task.allowed)))
        continue;
      auto& one = all[task.allowed];
      one.counted.cpu_s += task.counted.cpu_s;
      one.counted.delay_s += task.counted.delay_s;
      ++one.threads;
    }
    return all;
  }

  // No thread ran or could run, and one slept.
  [[nodiscard]] const Span& sleep() const noexcept { return sleep_; }

  [[nodiscard]] Locks locks() const noexcept {
    Locks sum;
    for (const auto& [name, task] : tasks_) {
      if (task.lock.looks == 0)
        continue;
      sum.wait.seconds += task.lock.seconds;
      sum.wait.looks += task.lock.looks;
      ++sum.threads;
      sum.blocked_looks += task.blocked_looks;
      sum.blocked_s += std::max(0.0, task.seen_s - task.counted.cpu_s - task.counted.delay_s);
      sum.turns += task.turns;
    }
    return sum;
  }

  // By name, the one with the most CPU time first.
  [[nodiscard]] std::vector<std::pair<std::string, Process>> processes() const {
    std::map<std::string, Process> by_name;
    for (const auto& [id, one] : processes_) {
      auto& sum = by_name[one.name];
      ++sum.processes;
      sum.seen_s += one.sum.seen_s;
      sum.cpu_s += one.sum.cpu_s;
      sum.system_s += one.sum.system_s;
      sum.minor_faults += one.sum.minor_faults;
      for (const auto& [child, span] : one.sum.children) {
        sum.children[child].seconds += span.seconds;
        sum.children[child].looks += span.looks;
      }
      for (const auto& [other, span] : one.sum.others) {
        auto& all = sum.others[other];
        all.span.seconds += span.span.seconds;
        all.span.looks += span.span.looks;
        all.ran += span.ran;
      }
    }
    std::vector<std::pair<std::string, Process>> all(by_name.begin(), by_name.end());
    std::ranges::stable_sort(all, std::greater{},
                             [](const auto& entry) { return entry.second.cpu_s; });
    all.resize(std::min(all.size(), most_names));
    return all;
  }

  // What threads waited for, the longest first.
  [[nodiscard]] std::vector<Wait> waits() const {
    std::vector<Wait> all;
    for (const auto& [place, seconds] : waits_)
      all.push_back({.kind = place.first, .path = place.second, .seconds = seconds});
    std::ranges::sort(all, std::greater{}, &Wait::seconds);
    all.resize(std::min(all.size(), most_waits));
    return all;
  }

  // The CPUs that the threads which ran when they were last seen running might use, as the kernel
  // lists them: `0-1,3`. A wrapper such as taskset changes them after its start.
  [[nodiscard]] const std::string& allowed() const noexcept { return allowed_; }

protected:
  TaskSums() = default;

  static constexpr std::size_t most_masks = 64;
  static constexpr std::size_t most_names = 8;
  static constexpr std::size_t most_waits = 4;
  static constexpr std::size_t most_listed = 64;

  using Place = std::pair<std::string, std::string>;

  struct Task {
    Counted counted;
    double seen_s = 0.0;
    double turns = 0.0;
    Span lock;
    std::size_t blocked_looks = 0;
    std::string allowed;
  };

  struct KnownProcess {
    std::string name;
    Process sum;
    std::vector<std::string> files = {};  // open at the last look, ...
    std::vector<std::string> opened = {}; // ... those of them that were not open before
    bool is_known = false;                // whether they were looked at before
    bool catches_faults = false;          // it has a handler for SIGSEGV
  };

  std::map<std::string, Task, std::less<>> tasks_; // by thread
  std::map<pid_t, KnownProcess> processes_;
  CodeLooks code_;
  std::map<Place, double> waits_;
  Span sleep_;
  Span thread_waits_;
  Openings openings_;
  std::size_t most_threads_ = 0;
  std::size_t most_processes_ = 0;
  std::string allowed_;
  double covered_s_ = 0.0;
  std::size_t looks_ = 0;
};

} // namespace seatrial
