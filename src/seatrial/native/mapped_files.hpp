// The programs and shared objects mapped by a process and its descendants, read from /proc
// (proc(5), "maps").
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "elf_file.hpp"
#include "file_identity.hpp"

namespace seatrial {

// A file as it was when first seen. `id` is empty if it cannot be identified; `code` is the hash of
// a program's machine code.
struct SeenFile {
  std::string path;
  std::string name; // SONAME, else the file name
  std::string id;
  bool is_program = false;
  dev_t device = 0;
  ino_t number = 0;
  std::string code = {};
};

namespace detail {

[[nodiscard]] inline std::string all_of(const std::string& path, std::size_t most) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return {};
  std::string text;
  std::array<char, 1 << 14> part;
  for (ssize_t got = 0; text.size() < most && (got = ::read(file, part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  ::close(file);
  return text;
}

template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

[[nodiscard]] inline std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

} // namespace detail

class MappedFiles {
public:
  // A process and its descendants.
  [[nodiscard]] static std::vector<pid_t> with_descendants(pid_t root) {
    std::vector<pid_t> processes{root};
    for (std::size_t i = 0; i < processes.size() && processes.size() < max_processes; ++i)
      add_children(processes[i], processes);
    return processes;
  }

  // Scans processes once. Those that end meanwhile are missed.
  void scan(const std::vector<pid_t>& processes) {
    for (const auto process : processes)
      scan_process(process);
  }

  // Adds a file named by the loader, or the executable. Does nothing if it cannot be opened.
  void add(const std::string& path, bool is_program) {
    struct stat status {};
    const OpenFile file(path);
    if (file.is_regular(status))
      insert(path, file, status, is_program);
  }

  // Adds the files of another scan that are not known yet.
  void absorb(const MappedFiles& other) {
    for (const auto& file : other.files_)
      if (!has(file.device, file.number))
        files_.push_back(file);
  }

  // Identifies files without a build-id by content, and programs by their code as well, which takes
  // too long during a run. A file that has been replaced meanwhile gets no identity.
  void complete() {
    for (auto& file : files_) {
      if (!file.id.empty() && !file.is_program)
        continue;
      struct stat status {};
      const OpenFile now(file.path);
      if (!now.is_regular(status) || status.st_dev != file.device || status.st_ino != file.number)
        continue;
      if (file.id.empty())
        file.id = content_identity(now.get(), status, largest_hashed);
      if (const auto elf = file.is_program ? read_elf_file(now.get()) : std::nullopt)
        file.code = code_identity(now.get(), elf->code, largest_code);
    }
  }

  [[nodiscard]] const std::vector<SeenFile>& files() const noexcept { return files_; }

private:
  static constexpr off_t largest_hashed = 64 << 20;       // about 70 ms
  static constexpr std::uint64_t largest_code = 16 << 20; // about 5 ms
  static constexpr std::size_t max_processes = 256;
  static constexpr std::size_t max_files = 4096;
  static constexpr std::size_t largest_text = 8 << 20;

  // /proc/PID/task/TID/children needs CONFIG_PROC_CHILDREN, which all distributions set.
  static void add_children(pid_t process, std::vector<pid_t>& processes) {
    const auto folder = "/proc/" + std::to_string(process) + "/task/";
    // Children belong to the thread that created them, in most programs the main thread.
    const auto text = detail::all_of(folder + std::to_string(process) + "/children", largest_text);
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at < end && processes.size() < max_processes;) {
      pid_t child = 0;
      const auto [next, error] = std::from_chars(at, end, child);
      if (error == std::errc{})
        processes.push_back(child);
      at = next + 1;
    }
  }

  void scan_process(pid_t process) {
    const auto folder = "/proc/" + std::to_string(process);
    std::array<char, 4096> link{};
    const auto length = ::readlink((folder + "/exe").c_str(), link.data(), link.size());
    const std::string program(link.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    detail::for_each_line(detail::all_of(folder + "/maps", largest_text),
                          [&](std::string_view line) { add_line(line, folder, program); });
  }

  // `7f10c0-7f10d0 r-xp 00000000 08:01 4711      /usr/lib/libm.so.6`. Only executable mappings are
  // code.
  void add_line(std::string_view line, const std::string& folder, const std::string& program) {
    const auto mode = line.find(' ');
    const auto path_at = line.find('/');
    if (mode == line.npos || path_at == line.npos || line.size() < mode + 5 ||
        line[mode + 3] != 'x')
      return;
    const auto path = line.substr(path_at);
    if (path.starts_with("/memfd:") || path.starts_with("/dev/") || path.starts_with("/SYSV") ||
        path.ends_with(" (deleted)"))
      return;
    if (known_.contains(path) || files_.size() >= max_files)
      return;
    std::string found(path);
    struct stat status {};
    known_.emplace(found, true);
    // Opened through the process's root: in a container the same path is another file. If the
    // process has just ended, our own file will do if its inode is the mapped one.
    const OpenFile inside(folder + "/root" + found);
    if (inside.is_regular(status))
      return insert(found, inside, status, found == program);
    const OpenFile ours(found);
    if (ours.is_regular(status) &&
        line.substr(0, path_at).find(' ' + std::to_string(status.st_ino) + ' ') != line.npos)
      return insert(found, ours, status, found == program);
    files_.push_back({.path = found,
                      .name = detail::file_name(found),
                      .id = {},
                      .is_program = found == program});
  }

  [[nodiscard]] bool has(dev_t device, ino_t number) const noexcept {
    return number != 0 && std::ranges::any_of(files_, [&](const SeenFile& file) {
             return file.device == device && file.number == number;
           });
  }

  void insert(const std::string& path, const OpenFile& file, const struct stat& status,
              bool is_program) {
    if (has(status.st_dev, status.st_ino)) // already known by another name
      return;
    const auto elf = read_elf_file(file.get());
    files_.push_back({
        .path = path,
        .name = elf && !elf->soname.empty() ? elf->soname : detail::file_name(path),
        .id = elf ? elf->build_id : std::string(),
        .is_program = is_program,
        .device = status.st_dev,
        .number = status.st_ino,
    });
  }

  std::vector<SeenFile> files_;
  std::map<std::string, bool, std::less<>> known_; // paths that were examined already
};

} // namespace seatrial
