// Threads of this process created by a library: finds them, binds them, and reads their CPU time.
#pragma once

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include "affinity.hpp"
#include "failure.hpp"

namespace seatrial {

// The ids of all threads of this process, in ascending order.
[[nodiscard]] inline std::vector<pid_t> tasks() {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const auto name = entry.path().filename().string();
    pid_t task = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), task).ec == std::errc{})
      found.push_back(task);
  }
  std::ranges::sort(found);
  return found;
}

// The CPUs that a thread of this process may run on, from the kernel (`Cpus_allowed_list: 0-3,8` in
// proc(5)); empty once it has ended.
[[nodiscard]] inline std::vector<int> allowed_cpus(pid_t task) {
  constexpr std::string_view key = "Cpus_allowed_list:";
  std::vector<int> cpus;
  std::ifstream lines("/proc/self/task/" + std::to_string(task) + "/status");
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key))
      continue;
    std::istringstream list(line.substr(key.size()));
    int first = 0;
    while (list >> first) {
      int last = first;
      if (list.peek() == '-')
        list.ignore() >> last;
      for (int cpu = first; cpu <= last; ++cpu)
        cpus.push_back(cpu);
      list.ignore(); // skip the comma
    }
  }
  return cpus;
}

// The CPU time of a thread of this process, in seconds; 0 once it has ended. Computes the clock id
// as pthread_getcpuclockid does (Linux, include/linux/posix-timers_types.h).
[[nodiscard]] inline double cpu_time_s(pid_t task) noexcept {
  constexpr clockid_t per_thread = 4;
  constexpr clockid_t by_scheduler = 2;
  timespec time{};
  const auto clock =
      static_cast<clockid_t>(~static_cast<unsigned>(task) << 3) | per_thread | by_scheduler;
  if (clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// The same for all threads together, including those that have ended.
[[nodiscard]] inline double process_cpu_time_s() noexcept {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Restricts a thread to these CPUs; 0 is the calling thread. False if it has ended.
inline bool allow_cpus(pid_t task, const std::vector<int>& cpus) {
  detail::CpuSet set(*std::ranges::max_element(cpus) + 1);
  for (const int cpu : cpus)
    set.add(cpu);
  if (sched_setaffinity(task, set.bytes(), set.get()) == 0)
    return true;
  if (errno == ESRCH)
    return false;
  throw Failure(Exit::system,
                "cannot bind thread " + std::to_string(task) + ": " + std::strerror(errno));
}

} // namespace seatrial
