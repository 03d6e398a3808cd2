// What a process sees of the container that it runs in: namespaces, how its root is mounted, the
// names of its variables.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "json.hpp"

extern char** environ;

namespace seatrial {

// namespaces(7): the link is such as `user:[4026531837]`.
[[nodiscard]] inline json::Object namespaces_here() {
  json::Object found;
  for (const std::string_view name : {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"}) {
    std::array<char, 64> text{};
    const auto path = "/proc/self/ns/" + std::string(name);
    const auto length = ::readlink(path.c_str(), text.data(), text.size());
    if (length > 0)
      found.add(name, std::string_view(text.data(), static_cast<std::size_t>(length)));
  }
  return found;
}

// The last line of mountinfo whose mount point is `/` (proc(5)): "" if there is none.
[[nodiscard]] inline std::string root_mount() {
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  std::string found;
  while (std::getline(mounts, line)) {
    std::size_t at = 0;
    for (int field = 0; field < 4 && at != std::string::npos; ++field)
      at = line.find(' ', at + (field > 0 ? 1 : 0));
    if (at != std::string::npos && line.compare(at, 3, " / ") == 0)
      found = line;
  }
  return found;
}

// Each variable as NAME:HASH (FNV-1a, 64 bits, of its value), so that values that differ are seen
// and none is written down.
[[nodiscard]] inline std::vector<std::string> variables_here() {
  std::vector<std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
      continue;
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char letter : text.substr(equals + 1))
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
    std::array<char, 17> digits{};
    std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
    found.push_back(std::string(text.substr(0, equals)) + ":" + digits.data());
  }
  return found;
}

} // namespace seatrial
