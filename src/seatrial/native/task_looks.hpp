// Looks at the threads of a running process and its descendants: the CPU time that they had, the
// time that they were ready to run without running, and what they wait for in the kernel.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include "mapped_files.hpp"
#include "system_calls.hpp"

namespace seatrial {

// The threads are counted until they are last seen: what ends between two looks is missing, so the
// CPU time that was counted comes with the rest.
class TaskLooks {
public:
  struct Counted {
    double cpu_s = 0.0;
    double delay_s = 0.0; // ready to run, but no CPU
  };

  struct Wait {
    std::string kind; // "read", "write", "sync", "open", "fault"
    std::string path; // of the file, if a descriptor says which
    double seconds = 0.0;
  };

  // Looks at these processes once. `since_s`: the seconds since the last look, which this one
  // stands for. Waiting counts only where no thread runs or could run.
  void look(const std::vector<pid_t>& processes, double since_s) {
    covered_s_ += since_s;
    is_running_ = false;
    waiting_.clear();
    masks_.clear();
    std::size_t left = most_tasks;
    for (const auto process : processes)
      look_at(process, left);
    if (!masks_.empty())
      allowed_ = joined(masks_);
    if (is_running_ || left == 0)
      return;
    for (auto& place : waiting_)
      if (waits_.size() < most_places || waits_.contains(place))
        waits_[std::move(place)] += since_s / static_cast<double>(waiting_.size());
  }

  // Seconds from the first to the last look.
  [[nodiscard]] double covered_s() const noexcept { return covered_s_; }

  [[nodiscard]] std::size_t threads() const noexcept { return counted_.size(); }

  // All threads together.
  [[nodiscard]] Counted counted() const noexcept {
    Counted sum;
    for (const auto& [task, one] : counted_) {
      sum.cpu_s += one.cpu_s;
      sum.delay_s += one.delay_s;
    }
    return sum;
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

  // The CPUs that the processes which ran when they were last seen running might use, as the
  // kernel lists them: `0-1,3`. A wrapper such as taskset changes them after its start.
  [[nodiscard]] const std::string& allowed() const noexcept { return allowed_; }

private:
  static constexpr std::size_t most_tasks = 1024;
  static constexpr std::size_t most_places = 256;
  static constexpr std::size_t most_masks = 64;
  static constexpr std::size_t most_waits = 4;
  static constexpr std::size_t longest_path = 300;

  using Place = std::pair<std::string, std::string>;

  void look_at(pid_t process, std::size_t& left) {
    const auto folder = "/proc/" + std::to_string(process);
    DIR* const tasks = ::opendir((folder + "/task").c_str());
    if (tasks == nullptr)
      return;
    if (allowed_.empty())
      allowed_ = allowed_of(folder);
    const bool others_run = std::exchange(is_running_, false);
    while (const dirent* const entry = ::readdir(tasks)) {
      if (entry->d_name[0] == '.')
        continue;
      if (left == 0)
        break;
      --left;
      look_at_task(folder, folder + "/task/" + entry->d_name + "/", entry->d_name);
    }
    ::closedir(tasks);
    if (is_running_ && masks_.size() < most_masks)
      masks_.insert(allowed_of(folder));
    is_running_ = is_running_ || others_run;
  }

  [[nodiscard]] static std::string joined(const std::set<std::string>& masks) {
    std::string all;
    for (const auto& mask : masks)
      if (!mask.empty())
        all += (all.empty() ? "" : ",") + mask;
    return all;
  }

  void look_at_task(const std::string& process, const std::string& task, const char* name) {
    // "CPU time, time ready to run, number of times", in ns (proc_pid_schedstat).
    const auto text = detail::all_of(task + "schedstat", 128);
    if (!text.empty()) {
      const auto [cpu_ns, delay_ns] = two_numbers(text);
      counted_[name] = {.cpu_s = 1e-9 * cpu_ns, .delay_s = 1e-9 * delay_ns};
    }
    const auto state = state_of(task);
    if (state == 'R')
      is_running_ = true;
    else if (state == 'S' || state == 'D')
      look_at_wait(process, detail::all_of(task + "syscall", 256));
  }

  // `1 0x3 0x7f...`: the system call's number and arguments; `-1 ...` outside of one, where a
  // thread waits for a page to be read (proc_pid_syscall).
  void look_at_wait(const std::string& process, std::string_view call) {
    if (call.starts_with("-1 "))
      waiting_.emplace_back("fault", "");
    std::int64_t number = -1;
    const char* const end = call.data() + call.size();
    const auto [at, error] = std::from_chars(call.data(), end, number);
    if (error != std::errc{} || number < 0)
      return;
    const auto kind = kind_of_system_call(number);
    if (kind.name.empty())
      return;
    std::string path;
    if (kind.has_descriptor) {
      unsigned descriptor = 0;
      if (end - at <= 3 || std::from_chars(at + 3, end, descriptor, 16).ec != std::errc{})
        return;
      path = path_of(process + "/fd/" + std::to_string(descriptor));
      if (!path.starts_with('/') || path.starts_with("/dev/")) // a pipe, a socket, a terminal
        return;
      if (kind.name == "write" && is_synchronous(process, descriptor))
        return void(waiting_.emplace_back("sync", std::move(path)));
    }
    waiting_.emplace_back(std::string(kind.name), std::move(path));
  }

  // The letter behind the name in parentheses (proc_pid_stat); '?' if the thread has ended.
  [[nodiscard]] static char state_of(const std::string& task) {
    const auto text = detail::all_of(task + "stat", 512);
    const auto end = text.rfind(") ");
    return end == text.npos || end + 2 >= text.size() ? '?' : text[end + 2];
  }

  // Whether each write to a file waits for its device: opened with O_DSYNC or O_SYNC
  // (proc_pid_fdinfo: `flags:` in octal digits).
  [[nodiscard]] static bool is_synchronous(const std::string& process, unsigned descriptor) {
    constexpr std::string_view key = "flags:";
    const auto text =
        detail::all_of(process + "/fdinfo/" + std::to_string(descriptor), std::size_t{1} << 12);
    const auto at = text.find(key);
    if (at == text.npos)
      return false;
    const auto digits = text.find_first_not_of("\t ", at + key.size());
    unsigned flags = 0;
    if (digits != text.npos)
      std::from_chars(text.data() + digits, text.data() + text.size(), flags, 8);
    return (flags & O_DSYNC) != 0;
  }

  [[nodiscard]] static std::string path_of(const std::string& link) {
    std::array<char, longest_path> path{};
    const auto length = ::readlink(link.c_str(), path.data(), path.size());
    return {path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
  }

  [[nodiscard]] static std::pair<double, double> two_numbers(std::string_view text) {
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, first);
    if (error == std::errc{} && at < end)
      std::from_chars(at + 1, end, second);
    return {static_cast<double>(first), static_cast<double>(second)};
  }

  [[nodiscard]] static std::string allowed_of(const std::string& folder) {
    constexpr std::string_view key = "Cpus_allowed_list:";
    std::string allowed;
    detail::for_each_line(detail::all_of(folder + "/status", 1 << 14), [&](std::string_view line) {
      if (line.starts_with(key))
        allowed = line.substr(std::min(line.find_first_not_of("\t ", key.size()), line.size()));
    });
    return allowed;
  }

  std::map<std::string, Counted, std::less<>> counted_; // by thread
  std::map<Place, double> waits_;
  std::vector<Place> waiting_;  // in this look
  std::set<std::string> masks_; // of processes that run in this look
  std::string allowed_;
  bool is_running_ = false;
  double covered_s_ = 0.0;
};

} // namespace seatrial
