// What a process waits for that another process does: data in a pipe or socket, room in a pipe, a
// lock on a file. And which process has the other end, or holds the lock.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "blocked_calls.hpp"
#include "mapped_files.hpp"

namespace seatrial {

struct ProcessWait {
  enum class For { data, room, lock, socket }; // data in a pipe, and room in it
  For what = For::data;
  std::string file; // `pipe:[4711]`, or a path
};

namespace detail {

[[nodiscard]] inline std::string link_of(const std::string& link) {
  std::array<char, 300> path{};
  const auto length = ::readlink(link.c_str(), path.data(), path.size());
  return {path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

// What the kernel says of a descriptor (proc_pid_fdinfo).
[[nodiscard]] inline std::string descriptor_text(const std::string& process,
                                                 std::string_view descriptor) {
  return all_of(process + "/fdinfo/" + std::string(descriptor), std::size_t{1} << 12);
}

// How a descriptor was opened, O_RDONLY and so on: `flags:` in octal digits.
[[nodiscard]] inline unsigned open_flags(std::string_view text) {
  constexpr std::string_view key = "flags:";
  const auto at = text.find(key);
  unsigned flags = 0;
  if (at == text.npos)
    return flags;
  const auto digits = text.find_first_not_of("\t ", at + key.size());
  if (digits != text.npos)
    std::from_chars(text.data() + digits, text.data() + text.size(), flags, 8);
  return flags;
}

// Whether a process has a handler for a signal (proc_pid_status: `SigCgt:` in hexadecimal digits).
[[nodiscard]] inline bool catches(const std::string& process, int signal) {
  constexpr std::string_view key = "SigCgt:\t";
  const auto text = all_of(process + "/status", std::size_t{1} << 12);
  const auto at = text.find(key);
  std::uint64_t mask = 0;
  if (at != text.npos)
    std::from_chars(text.data() + at + key.size(), text.data() + text.size(), mask, 16);
  return ((mask >> (signal - 1)) & 1) != 0;
}

[[nodiscard]] constexpr bool receives(std::int64_t number) noexcept {
  return number == SYS_recvfrom || number == SYS_recvmsg || number == SYS_read ||
         number == SYS_readv;
}

} // namespace detail

[[nodiscard]] constexpr std::string_view name_of(ProcessWait::For what) noexcept {
  constexpr std::array<std::string_view, 4> names{"pipe", "full pipe", "file lock", "socket"};
  return names[static_cast<std::size_t>(what)];
}

// What a thread of `process` (`/proc/PID`) waits for in this call; nothing if it is something else.
[[nodiscard]] inline std::optional<ProcessWait> process_wait(const std::string& process,
                                                             const CallLine& call) {
  const auto file = [&] {
    return detail::link_of(process + "/fd/" +
                           std::to_string(static_cast<unsigned>(call.arguments[0])));
  };
  const bool is_lock = call.number == SYS_flock ||
                       (call.number == SYS_fcntl &&
                        (call.arguments[1] == F_SETLKW || call.arguments[1] == F_OFD_SETLKW));
  if (is_lock)
    return ProcessWait{.what = ProcessWait::For::lock, .file = file()};
  const bool writes = call.number == SYS_write || call.number == SYS_writev;
  if (!writes && !detail::receives(call.number))
    return std::nullopt;
  auto link = file();
  if (link.starts_with("socket:") && !writes)
    return ProcessWait{.what = ProcessWait::For::socket, .file = std::move(link)};
  if (!link.starts_with("pipe:"))
    return std::nullopt;
  return ProcessWait{.what = writes ? ProcessWait::For::room : ProcessWait::For::data,
                     .file = std::move(link)};
}

// Whether a process (`/proc/PID`) has the other end of the pipe, or the lock, that is waited for.
// /proc/locks would name each holder, but whoever reads it stops all who lock files.
[[nodiscard]] inline bool has_other_side(const std::string& process, const ProcessWait& wait) {
  constexpr unsigned most_descriptors = 16;
  const auto folder = process + "/fd";
  DIR* const descriptors = ::opendir(folder.c_str());
  if (descriptors == nullptr)
    return false;
  const auto is_other = [&](std::string_view text) {
    switch (wait.what) {
    case ProcessWait::For::data:
      return (detail::open_flags(text) & O_ACCMODE) != O_RDONLY;
    case ProcessWait::For::room:
      return (detail::open_flags(text) & O_ACCMODE) != O_WRONLY;
    case ProcessWait::For::lock:
      return text.find("\nlock:") != text.npos;
    default:
      return false;
    }
  };
  bool found = false;
  unsigned seen = 0;
  while (const dirent* const entry = found ? nullptr : ::readdir(descriptors)) {
    if (entry->d_name[0] == '.' || detail::link_of(folder + "/" + entry->d_name) != wait.file)
      continue;
    found = is_other(detail::descriptor_text(process, entry->d_name));
    if (++seen == most_descriptors)
      break;
  }
  ::closedir(descriptors);
  return found;
}

} // namespace seatrial
