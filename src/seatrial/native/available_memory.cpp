// untimed: -O1
#include "available_memory.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace seatrial {

namespace {

// The single number in a file; none for "max", which means no limit.
[[nodiscard]] std::optional<std::uint64_t> read_number(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::uint64_t value = 0;
  if (stream >> value)
    return value;
  return std::nullopt;
}

struct CgroupFiles {
  const char* type;       // of the mounted file system
  const char* controller; // its name in /proc/self/cgroup; empty for version 2
  const char* limit;
  const char* usage;
  const char*
      reclaimable; // key in memory.stat: page cache that is reclaimed before the OOM killer acts
};

constexpr CgroupFiles cgroup_limits[] = {
    {"cgroup2", "", "memory.max", "memory.current", "inactive_file"},
    {"cgroup2", "", "memory.high", "memory.current", "inactive_file"}, // throttled above this
    {"cgroup", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"},
};

[[nodiscard]] bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    if (list.substr(begin, end - begin) == word)
      return true;
    begin = end + 1;
  }
  return false;
}

// The cgroup path of this process in a hierarchy: /proc/self/cgroup has lines
// `id:controllers:path`.
[[nodiscard]] std::optional<std::string> cgroup_path(std::string_view controller) {
  std::ifstream lines("/proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const auto controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

// A limit applies to everything below it, so every level up to the mount point counts.
void restrict_to_cgroup(AvailableMemory& memory, const CgroupFiles& files,
                        const std::filesystem::path& mount, std::string_view path) {
  for (auto folder = mount / std::filesystem::path(path).relative_path();;
       folder = folder.parent_path()) {
    const auto limit = read_number(folder / files.limit);
    const auto usage = read_number(folder / files.usage);
    if (limit && usage) {
      const auto held =
          *usage -
          std::min(*usage,
                   read_value((folder / "memory.stat").string(), files.reclaimable).value_or(0));
      memory.restrict_to(*limit - std::min(*limit, held), (folder / files.limit).string());
    }
    if (folder == mount || !folder.has_relative_path())
      return;
  }
}

} // namespace

std::optional<std::uint64_t> read_value(const std::string& file, std::string_view key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    std::uint64_t value = 0;
    if (words >> word && word == key && words >> value)
      return value;
  }
  return std::nullopt;
}

AvailableMemory available_memory() {
  AvailableMemory memory;
  if (const auto kib = read_value("/proc/meminfo", "MemAvailable:"))
    memory.restrict_to(*kib * 1024, "MemAvailable");

  // mountinfo: id parent device root mount-point options [tags] - type source super-options
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string skipped, root, mount, word, type, source, options;
    words >> skipped >> skipped >> skipped >> root >> mount;
    while (words >> word && word != "-") {
    }
    words >> type >> source >> options;
    for (const auto& files : cgroup_limits) {
      if (type != files.type || (*files.controller && !has_word(options, files.controller)))
        continue;
      auto path = cgroup_path(files.controller);
      if (!path)
        continue;
      if (root != "/" && path->starts_with(root)) // a container sees only its own subtree
        path->erase(0, root.size());
      restrict_to_cgroup(memory, files, mount, *path);
    }
  }
  return memory;
}

std::string needed_of_available(double needed_bytes, double available_bytes) {
  const auto show = [](double bytes) {
    std::ostringstream text;
    text.precision(3);
    const double whole = bytes * 1e-9;
    if (whole >= 100)
      text << static_cast<std::uint64_t>(whole);
    else
      text << whole;
    return text.str() + " GB";
  };
  return show(needed_bytes) + ", " + show(available_bytes) + " available";
}

} // namespace seatrial
