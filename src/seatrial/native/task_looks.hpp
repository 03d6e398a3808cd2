// Looks at the threads of a running process and its descendants: the CPU time that they had, the
// time that they were ready to run without running, and what they wait for in the kernel.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
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
#include "mapped_files.hpp"
#include "process_waits.hpp"
#include "system_calls.hpp"
#include "task_sums.hpp"
#include "thread_masks.hpp"

namespace seatrial {

// The threads are counted until they are last seen: what ends between two looks is missing, so the
// CPU time that was counted comes with the rest.
class TaskLooks : public TaskSums {
public:
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

private:
  static constexpr std::size_t most_tasks = 1024;
  static constexpr std::size_t most_known = 4096; // processes
  static constexpr std::size_t most_places = 256;
  static constexpr double settled_s = 0.1;      // at its start, a program opens libraries and input
  static constexpr std::size_t most_files = 32; // open in a process, of those that are looked at

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

  // Of this look:
  double since_s_ = 0.0;
  std::vector<Place> waiting_;
  std::vector<SeenProcess> seen_;
  ThreadMask running_;
  bool is_running_ = false;
};

} // namespace seatrial
