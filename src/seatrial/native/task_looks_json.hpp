// What was seen of the threads of a program that ran, as the record of a command states it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "child.hpp"
#include "clock.hpp"
#include "json.hpp"
#include "task_looks.hpp"

namespace seatrial {

namespace detail {

// Threads by the CPUs that they may use.
[[nodiscard]] inline std::vector<json::Object> bound(const TaskLooks& tasks) {
  std::vector<json::Object> all;
  for (const auto& [cpus, one] : tasks.bound())
    all.push_back(json::Object()
                      .add("cpus", cpus)
                      .add("threads", one.threads)
                      .add("cpu_s", one.counted.cpu_s)
                      .add("delay_s", one.counted.delay_s));
  return all;
}

[[nodiscard]] inline json::Object locks(const TaskLooks& tasks) {
  const auto all = tasks.locks();
  return json::Object()
      .add("threads", all.threads)
      .add("looks", all.wait.looks)
      .add("wait_s", all.wait.seconds)
      .add("blocked_looks", all.blocked_looks)
      .add("blocked_s", all.blocked_s)
      .add("turns", all.turns);
}

// The processes with the most CPU time, and the children and other processes that they waited for.
[[nodiscard]] inline std::vector<json::Object> processes(const TaskLooks& tasks) {
  std::vector<json::Object> all;
  for (const auto& [name, one] : tasks.processes()) {
    std::vector<json::Object> children;
    for (const auto& [child, span] : one.children)
      children.push_back(
          json::Object().add("name", child).add("looks", span.looks).add("wait_s", span.seconds));
    std::vector<json::Object> others;
    for (const auto& [other, sum] : one.others)
      others.push_back(json::Object()
                           .add("in", name_of(other.what))
                           .add("name", other.name)
                           .add("path", other.path)
                           .add("is_child", other.is_child)
                           .add("looks", sum.span.looks)
                           .add("ran", sum.ran)
                           .add("wait_s", sum.span.seconds));
    all.push_back(json::Object()
                      .add("name", name)
                      .add("processes", one.processes)
                      .add("seen_s", one.seen_s)
                      .add("cpu_s", one.cpu_s)
                      .add("system_s", one.system_s)
                      .add("minor_faults", one.minor_faults)
                      .add("waits_for", children)
                      .add("waits_on", others));
  }
  return all;
}

[[nodiscard]] inline std::vector<json::Object>
as_places(const std::vector<std::pair<CodeLooks::Place, CodeLooks::Seen>>& places,
          std::uint64_t least) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::vector<json::Object> all;
  for (const auto& [place, seen] : places) {
    if (seen.samples < least)
      continue;
    std::string code;
    for (const auto byte : seen.code) {
      code += digits[byte >> 4];
      code += digits[byte & 15];
    }
    all.push_back(json::Object()
                      .add("file", place.file)
                      .add("offset", place.offset)
                      .add("samples", seen.samples)
                      .add("code", code));
  }
  return all;
}

// Where the threads executed in user code.
[[nodiscard]] inline json::Object code(const TaskLooks& tasks) {
  return json::Object()
      .add("samples", tasks.code().samples())
      .add("period_s", 1e-9 * static_cast<double>(SEATRIAL_CODE_PERIOD_NS))
      .add("spots", as_places(tasks.code().spots(), tasks.code().samples() / 100))
      .add("returns", as_places(tasks.code().returns(), 1));
}

} // namespace detail

// What the threads did while they were looked at: how long they had a CPU or were ready to have
// one, and what they waited for. Beside it the time of all runs, without our own.
[[nodiscard]] inline json::Object looks(const TaskLooks& tasks, const std::vector<ChildEnd>& runs) {
  double program_s = 0.0;
  double cpu_s = 0.0;
  double system_s = 0.0;
  std::int64_t major_faults = 0;
  std::int64_t minor_faults = 0;
  std::int64_t voluntary = 0;
  std::int64_t resident_kib = 0;
  for (const auto& end : runs) {
    program_s += end.interval.elapsed_s();
    cpu_s += in_seconds(end.usage.ru_utime) + in_seconds(end.usage.ru_stime);
    system_s += in_seconds(end.usage.ru_stime);
    major_faults += end.usage.ru_majflt;
    minor_faults += end.usage.ru_minflt;
    voluntary += end.usage.ru_nvcsw;
    resident_kib = std::max(resident_kib, std::int64_t{end.usage.ru_maxrss});
  }
  const auto counted = tasks.counted();
  std::vector<json::Object> waits;
  for (const auto& wait : tasks.waits())
    waits.push_back(
        json::Object().add("in", wait.kind).add("path", wait.path).add("wait_s", wait.seconds));
  return json::Object()
      .add("program_s", program_s)
      .add("program_cpu_s", cpu_s)
      .add("program_system_s", system_s)
      .add("runs", runs.size())
      .add("major_faults", major_faults)
      .add("minor_faults", minor_faults)
      .add("voluntary", voluntary)
      .add("max_resident_B", resident_kib * 1024)
      .add("covered_s", tasks.covered_s())
      .add("looks", tasks.looks())
      .add("threads", tasks.threads())
      .add("most_threads", tasks.most_threads())
      .add("most_processes", tasks.most_processes())
      .add("thread_cpu_s", tasks.thread_cpu_s())
      .add("thread_waits", tasks.thread_waits().looks)
      .add("thread_wait_s", tasks.thread_waits().seconds)
      .add("openings", tasks.openings().looks)
      .add("opened", tasks.openings().path)
      .add("catches_faults", tasks.catches_faults())
      .add("cpu_s", counted.cpu_s)
      .add("delay_s", counted.delay_s)
      .add("allowed", tasks.allowed())
      .add("bound", detail::bound(tasks))
      .add("sleep_s", tasks.sleep().seconds)
      .add("sleep_looks", tasks.sleep().looks)
      .add("locks", detail::locks(tasks))
      .add("processes", detail::processes(tasks))
      .add("waits", waits)
      .add("code", detail::code(tasks));
}

} // namespace seatrial
