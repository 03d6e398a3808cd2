// The pages of files in memory: dropped, so that the next reader waits for the disk, and counted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_identity.hpp"

namespace seatrial {

// The regular files at or below a path, without following links; folders that this user may not
// read are left out.
[[nodiscard]] inline std::vector<std::string> files_below(const std::string& path) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  if (!fs::is_directory(path, error))
    return {path};
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    if (std::error_code ignored; entry->symlink_status(ignored).type() == fs::file_type::regular)
      found.push_back(entry->path().string());
  return found;
}

struct Pages {
  std::size_t resident = 0;
  std::size_t all = 0;

  [[nodiscard]] double share_resident() const noexcept {
    return all == 0 ? 0.0 : static_cast<double>(resident) / static_cast<double>(all);
  }
};

// Adds the pages of an open file, as mincore(2) reports them.
inline void count_pages(int file, std::size_t bytes, Pages& pages) {
  if (bytes == 0)
    return;
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED)
    return;
  std::vector<unsigned char> there((bytes + page_bytes - 1) / page_bytes);
  if (::mincore(mapped, bytes, there.data()) == 0) {
    pages.all += there.size();
    for (const auto flags : there)
      pages.resident += flags & 1;
  }
  ::munmap(mapped, bytes);
}

// Drops the pages of these files that are neither mapped nor unwritten (posix_fadvise(2)), and
// counts what stays. `writes_first`: what is unwritten is written before.
inline Pages drop_pages(const std::vector<std::string>& files, bool writes_first = false) {
  Pages pages;
  for (const auto& path : files) {
    struct stat status {};
    const OpenFile file(path);
    if (!file.is_regular(status))
      continue;
    if (writes_first)
      ::fdatasync(file.get());
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    count_pages(file.get(), static_cast<std::size_t>(status.st_size), pages);
  }
  return pages;
}

} // namespace seatrial
