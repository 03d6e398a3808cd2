// Whether the process that started us still runs: directly, or through its guard.
#pragma once

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <unistd.h>

namespace seatrial {

// From /proc/PID/stat (proc(5)): the name in it is in parentheses and may contain anything.
[[nodiscard]] inline std::optional<pid_t> parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line))
    return std::nullopt;
  const auto bracket = line.rfind(')');
  if (bracket == std::string::npos || bracket + 4 >= line.size())
    return std::nullopt;
  pid_t parent = 0;
  if (std::from_chars(line.data() + bracket + 4, line.data() + line.size(), parent).ec !=
      std::errc{})
    return std::nullopt;
  return parent;
}

// seatrial starts programs itself or through its guard, whose parent it is until it ends.
[[nodiscard]] inline bool is_started_by(pid_t seatrial) {
  const auto parent = ::getppid();
  return parent == seatrial || parent_of(parent) == seatrial;
}

} // namespace seatrial
