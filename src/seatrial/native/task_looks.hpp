// Looks at the threads of a running process and its descendants: the CPU time that they had, the
// time that they were ready to run without running, and what they wait for in the kernel.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <csignal>

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "blocked_calls.hpp"
#include "code_looks.hpp"
#include "mapped_files.hpp"
#include "process_waits.hpp"
#include "system_calls.hpp"
#include "thread_masks.hpp"

namespace seatrial {

// The threads are counted until they are last seen: what ends between two looks is missing, so the
// CPU time that was counted comes with the rest.
class TaskLooks {
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

  // Looks at these processes once. `since_s`: the seconds since the last look, which this one
  // stands for. Waiting for files and sleeping count only where no thread runs or could run.
  void look(const std::vector<pid_t>& processes, double since_s) {
    covered_s_ += since_s;
    ++looks_;
    since_s_ = since_s;
    is_running_ = false;
    waiting_.clear();
    running_ = {};
    seen_.clear();
    std::size_t left = most_tasks;
    for (const auto process : processes)
      look_at(process, left);
    code_.read(processes);
    most_threads_ = std::max(most_threads_, most_tasks - left);
    most_processes_ = std::max(most_processes_, seen_.size());
    note_thread_waits();
    if (is_running_)
      allowed_ = running_.text();
    note_children();
    note_others();
    if (is_running_ || left == 0)
      return;
    if (sleeps())
      sleep_.add(since_s);
    for (auto& place : waiting_)
      if (waits_.size() < most_places || waits_.contains(place))
        waits_[std::move(place)] += since_s / static_cast<double>(waiting_.size());
  }

  // After the last look.
  void finish() { code_.finish(); }

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

private:
  static constexpr std::size_t most_tasks = 1024;
  static constexpr std::size_t most_known = 4096; // processes
  static constexpr std::size_t most_places = 256;
  static constexpr std::size_t most_masks = 64;
  static constexpr std::size_t most_names = 8;
  static constexpr std::size_t most_waits = 4;
  static constexpr double settled_s = 0.1; // at its start, a program opens libraries and input
  static constexpr std::size_t most_listed = 64;
  static constexpr std::size_t most_files = 32; // open in a process, of those that are looked at

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

  // A process in this look.
  struct SeenProcess {
    pid_t id = 0;
    pid_t parent = 0;
    bool is_running = false; // one of its threads
    bool waits_for_child = false;
    bool sleeps = false;          // one of its threads
    bool waits_elsewhere = false; // one of its threads: not for time, a child or another thread
    bool leader_waits_elsewhere = false;
    bool leader_sleeps = false;
    std::size_t waiting_threads = 0;       // for others of its threads
    std::optional<ProcessWait> other = {}; // one of its threads: for another process
  };

  void look_at(pid_t process, std::size_t& left) {
    const auto id = std::to_string(process);
    const auto folder = "/proc/" + id;
    DIR* const tasks = ::opendir((folder + "/task").c_str());
    if (tasks == nullptr)
      return;
    if (allowed_.empty())
      allowed_ = ThreadMask::of(process).text();
    auto& seen = seen_.emplace_back(SeenProcess{.id = process});
    while (const dirent* const entry = ::readdir(tasks)) {
      if (entry->d_name[0] == '.')
        continue;
      if (left == 0)
        break;
      --left;
      look_at_task(folder, folder + "/task/" + entry->d_name + "/", entry->d_name,
                   id == entry->d_name, seen);
    }
    ::closedir(tasks);
    is_running_ = is_running_ || seen.is_running;
    count_process(folder, seen);
  }

  void look_at_task(const std::string& process, const std::string& folder, const char* name,
                    bool is_leader, SeenProcess& seen) {
    auto& task = tasks_[name];
    task.seen_s += since_s_;
    // "CPU time, time ready to run, number of times", in ns (proc_pid_schedstat).
    const auto text = detail::all_of(folder + "schedstat", 128);
    if (!text.empty()) {
      const auto [cpu_ns, delay_ns, turns] = three_numbers(text);
      task.counted = {.cpu_s = 1e-9 * cpu_ns, .delay_s = 1e-9 * delay_ns};
      task.turns = turns;
    }
    const auto state = state_of(folder);
    if (state == 'R') {
      seen.is_running = true;
      pid_t thread = 0;
      std::from_chars(name, name + std::string_view(name).size(), thread);
      const auto mask = ThreadMask::of(thread);
      running_.join(mask);
      task.allowed = mask.text();
      code_.see(seen.id, thread);
    } else if (state == 'S' || state == 'D') {
      look_at_wait(process, detail::all_of(folder + "syscall", 256), is_leader, task, seen);
    }
  }

  // `1 0x3 0x7f...`: the system call's number and arguments; `-1 ...` outside of one, where a
  // thread waits for a page to be read; "running" if it has got a CPU since (proc_pid_syscall).
  void look_at_wait(const std::string& process, std::string_view text, bool is_leader, Task& task,
                    SeenProcess& seen) {
    if (text.starts_with("running"))
      return void(seen.is_running = true);
    ++task.blocked_looks;
    if (text.starts_with("-1 "))
      waiting_.emplace_back("fault", "");
    const auto call = CallLine::read(text);
    const auto blocked = blocked_in(call);
    switch (blocked) {
    case Blocked::sleep:
      seen.sleeps = true;
      seen.leader_sleeps = seen.leader_sleeps || is_leader;
      break;
    case Blocked::child:
      seen.waits_for_child = true;
      break;
    case Blocked::lock:
      task.lock.add(since_s_);
      break;
    case Blocked::futex:
      ++seen.waiting_threads;
      break;
    case Blocked::other:
      seen.waits_elsewhere = true;
      seen.leader_waits_elsewhere = seen.leader_waits_elsewhere || is_leader;
      if (call.number >= 0 && !seen.other)
        seen.other = process_wait(process, call);
      if (call.number >= 0)
        look_at_file(process, call);
    }
  }

  void look_at_file(const std::string& process, const CallLine& call) {
    const auto kind = kind_of_system_call(call.number);
    if (kind.name.empty())
      return;
    std::string path;
    if (kind.has_descriptor) {
      const auto descriptor = static_cast<unsigned>(call.arguments[0]);
      path = detail::link_of(process + "/fd/" + std::to_string(descriptor));
      if (!path.starts_with('/') || path.starts_with("/dev/")) // a pipe, a socket, a terminal
        return;
      const auto flags =
          detail::open_flags(detail::descriptor_text(process, std::to_string(descriptor)));
      if (kind.name == "write" && (flags & O_DSYNC) != 0) // each write waits for its device
        return void(waiting_.emplace_back("sync", std::move(path)));
    }
    waiting_.emplace_back(std::string(kind.name), std::move(path));
  }

  // Its name, parent and totals, which include threads that have ended (proc_pid_stat):
  // `4711 (name) S parent ... minflt cminflt majflt cmajflt utime stime ...`.
  void count_process(const std::string& folder, SeenProcess& seen) {
    const auto text = detail::all_of(folder + "/stat", 1024);
    const auto first = text.find('(');
    const auto last = text.rfind(") ");
    if (first == text.npos || last == text.npos || last <= first ||
        (processes_.size() == most_known && !processes_.contains(seen.id)))
      return;
    std::array<double, 13> fields{}; // from the parent on
    const char* const end = text.data() + text.size();
    const char* at = text.data() + std::min(last + 4, text.size()); // behind the state
    for (auto& field : fields) {
      if (at == end)
        break;
      std::int64_t value = 0;
      at = std::from_chars(at, end, value).ptr;
      field = static_cast<double>(value);
      at += at < end ? 1 : 0;
    }
    seen.parent = static_cast<pid_t>(fields[0]);
    auto& known = processes_[seen.id];
    known.name = text.substr(first + 1, last - first - 1);
    known.sum.seen_s += since_s_;
    const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
    known.sum.minor_faults = fields[6];
    known.sum.cpu_s = (fields[10] + fields[11]) / ticks;
    known.sum.system_s = fields[11] / ticks;
    note_files(folder, known);
    if (!known.catches_faults)
      known.catches_faults = detail::catches(folder, SIGSEGV);
  }

  // The files in folders that are open, but for those of the kernel.
  void note_files(const std::string& folder, KnownProcess& known) {
    std::vector<std::string> files;
    DIR* const descriptors = ::opendir((folder + "/fd").c_str());
    if (descriptors == nullptr)
      return;
    while (const dirent* const entry = ::readdir(descriptors)) {
      if (files.size() == most_files)
        break;
      if (entry->d_name[0] == '.')
        continue;
      auto path = detail::link_of(folder + "/fd/" + entry->d_name);
      if (path.starts_with('/') && !path.starts_with("/dev/") && !path.starts_with("/proc/"))
        files.push_back(std::move(path));
    }
    ::closedir(descriptors);
    std::ranges::sort(files);
    const auto lacks = [](const std::vector<std::string>& all) {
      return [&all](const std::string& file) { return !std::ranges::binary_search(all, file); };
    };
    const auto closed = std::ranges::find_if(known.opened, lacks(files));
    if (closed != known.opened.end() && known.sum.seen_s >= settled_s) {
      ++openings_.looks;
      openings_.path = *closed;
    }
    known.opened.clear();
    if (known.is_known)
      std::ranges::copy_if(files, std::back_inserter(known.opened), lacks(known.files));
    known.files = std::move(files);
    known.is_known = true;
  }

  void note_thread_waits() {
    for (const auto& one : seen_)
      if (one.is_running)
        for (std::size_t i = 0; i < one.waiting_threads; ++i)
          thread_waits_.add(since_s_);
  }

  // Processes that wait for a child while none of their threads runs. The one that they wait for is
  // the last of a chain: a shell in between waits, too.
  void note_children() {
    for (const auto& one : seen_) {
      if (one.is_running || !one.waits_for_child)
        continue;
      const auto* last = child_of(one);
      for (std::size_t i = 0; last != nullptr && last->waits_for_child && i < seen_.size(); ++i) {
        const auto* const next = child_of(*last);
        if (next == nullptr)
          break;
        last = next;
      }
      if (last == nullptr || !processes_.contains(one.id) || !processes_.contains(last->id))
        continue;
      auto& children = processes_[one.id].sum.children;
      const auto& name = processes_[last->id].name;
      if (children.size() < most_names || children.contains(name))
        children[name].add(since_s_);
    }
  }

  // Processes that wait for another one while none of their threads runs.
  void note_others() {
    for (const auto& one : seen_) {
      if (one.is_running || !one.other || !processes_.contains(one.id))
        continue;
      OtherWait wait{.what = one.other->what};
      if (wait.what == ProcessWait::For::lock)
        wait.path = one.other->file;
      const auto* const other = other_of(one);
      if (other != nullptr && processes_.contains(other->id)) {
        wait.name = processes_.at(other->id).name;
        wait.is_child = other->parent == one.id;
      }
      auto& others = processes_[one.id].sum.others;
      if (others.size() == most_names && !others.contains(wait))
        continue;
      auto& sum = others[std::move(wait)];
      sum.span.add(since_s_);
      sum.ran += other != nullptr && other->is_running ? 1 : 0;
    }
  }

  // The process that another one waits for, one that runs if several may be. None: it is not one
  // of those that are looked at, or not known.
  [[nodiscard]] const SeenProcess* other_of(const SeenProcess& one) const {
    const SeenProcess* found = nullptr;
    for (const auto& other : seen_)
      if (other.id != one.id && (found == nullptr || (other.is_running && !found->is_running)) &&
          has_other_side("/proc/" + std::to_string(other.id), *one.other))
        found = &other;
    return found;
  }

  // One that runs, if there is one.
  [[nodiscard]] const SeenProcess* child_of(const SeenProcess& parent) const noexcept {
    const SeenProcess* found = nullptr;
    for (const auto& one : seen_)
      if (one.parent == parent.id && (found == nullptr || (one.is_running && !found->is_running)))
        found = &one;
    return found;
  }

  // Whether the program waits for time to pass: no thread runs, and all that is waited for is time,
  // or a process or thread that does the same. A helper thread may sleep while the main thread
  // waits for a socket: that is no sleep. Helper threads that wait for sockets are left aside if a
  // main thread sleeps.
  [[nodiscard]] bool sleeps() const noexcept {
    const auto any = [&](bool SeenProcess::*what) {
      return std::ranges::any_of(seen_, [&](const SeenProcess& one) { return one.*what; });
    };
    return any(&SeenProcess::sleeps) && waiting_.empty() &&
           !any(&SeenProcess::leader_waits_elsewhere) &&
           (any(&SeenProcess::leader_sleeps) || !any(&SeenProcess::waits_elsewhere));
  }

  // The letter behind the name in parentheses (proc_pid_stat); '?' if the thread has ended.
  [[nodiscard]] static char state_of(const std::string& task) {
    const auto text = detail::all_of(task + "stat", 512);
    const auto end = text.rfind(") ");
    return end == text.npos || end + 2 >= text.size() ? '?' : text[end + 2];
  }

  [[nodiscard]] static std::array<double, 3> three_numbers(std::string_view text) {
    std::array<double, 3> numbers{};
    const char* at = text.data();
    const char* const end = at + text.size();
    for (auto& number : numbers) {
      std::uint64_t value = 0;
      at = std::from_chars(at, end, value).ptr;
      number = static_cast<double>(value);
      at += at < end ? 1 : 0;
    }
    return numbers;
  }

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
  // Of this look:
  double since_s_ = 0.0;
  std::vector<Place> waiting_;
  std::vector<SeenProcess> seen_;
  ThreadMask running_;
  bool is_running_ = false;
};

} // namespace seatrial
