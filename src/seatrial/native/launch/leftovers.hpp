// Files that MPI libraries create, and leave behind if their processes are killed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace seatrial {

// Shared memory (shm_open(3)) under the names that libraries use, and Open MPI's session folders,
// named after the process id of mpirun. Nothing else is touched: a file must be ours, must not have
// existed when we started, and must not be mapped by any process.
class Leftovers {
public:
  Leftovers() : before_(segments()) {}

  // Call after `launcher` and all its descendants have ended. Removed files are reported on stderr.
  void clear(pid_t launcher) const {
    for (const auto& name : segments())
      if (!before_.contains(name) && is_ours(memory / name) && !is_mapped(name))
        remove(memory / name);
    std::error_code unknown;
    const auto folder = std::filesystem::temp_directory_path(unknown);
    if (unknown)
      return;
    const auto pid = std::to_string(launcher);
    for (const auto& path :
         {folder / ("ompi." + pid),                                                       // 5
          folder / ("ompi." + host() + "." + std::to_string(getuid())) / ("pid." + pid)}) // 4
      if (is_ours(path))
        remove(path);
  }

private:
  static inline const std::filesystem::path memory = "/dev/shm";
  static constexpr std::array<std::string_view, 8> prefixes = {
      "vader_segment.", "sm_segment.", "mpich_shm_", "ucx_shm_",
      "psm2_shm.",      "psm3_shm.",   "impi_shm_",  "mv2_"};

  [[nodiscard]] static std::set<std::string> segments() {
    std::set<std::string> found;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(memory, unreadable)) {
      const auto name = entry.path().filename().string();
      if (std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); }))
        found.insert(name);
    }
    return found;
  }

  [[nodiscard]] static bool is_ours(const std::filesystem::path& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 && status.st_uid == getuid() &&
           (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  }

  [[nodiscard]] static bool is_mapped(const std::string& name) {
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", unreadable)) {
      std::ifstream maps(entry.path() / "maps");
      for (std::string line; std::getline(maps, line);)
        if (line.find("/dev/shm/" + name) != std::string::npos)
          return true;
    }
    return false;
  }

  [[nodiscard]] static std::string host() {
    char name[256] = {};
    gethostname(name, sizeof name - 1);
    const std::string_view all = name;
    return std::string(all.substr(0, all.find('.')));
  }

  static void remove(const std::filesystem::path& path) {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    std::fprintf(stderr, "keep: %s, left behind by the ranks, %s\n", path.c_str(),
                 error ? "could not be removed" : "was removed");
  }

  std::set<std::string> before_;
};

} // namespace seatrial
