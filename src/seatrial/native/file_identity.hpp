// Identifies a file: by build-id if the linker wrote one, else by content.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf_file.hpp"

namespace seatrial {

class OpenFile {
public:
  explicit OpenFile(const std::string& path, int access = O_RDONLY)
      // Non-blocking: the path may name a pipe without a writer.
      : file_(::open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~OpenFile() {
    if (file_ >= 0)
      ::close(file_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] int get() const noexcept { return file_; }

  // False if it cannot be read or is not a regular file.
  [[nodiscard]] bool is_regular(struct stat& status) const noexcept {
    return file_ >= 0 && ::fstat(file_, &status) == 0 && S_ISREG(status.st_mode);
  }

private:
  int file_;
};

namespace detail {

// Distinguishes files, without protection against forgery: FNV-1a over 64-bit words (G. Fowler, L.
// C. Noll, K.-P. Vo, "The FNV Non-Cryptographic Hash Algorithm", IETF draft), padded with zeros.
inline constexpr std::uint64_t hash_start = 0xcbf29ce484222325;

[[nodiscard]] inline bool content_hash(int file, std::uint64_t from, std::uint64_t bytes,
                                       std::uint64_t& hash) {
  std::vector<std::uint64_t> words(1 << 13);
  const auto step = words.size() * sizeof(std::uint64_t);
  for (std::uint64_t at = 0; at < bytes; at += step) {
    const auto wanted = std::min(step, static_cast<std::size_t>(bytes - at));
    std::fill(words.begin(), words.end(), 0);
    if (!read_at(file, words.data(), wanted, from + at))
      return false;
    const auto used = (wanted + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
    for (std::size_t i = 0; i < used; ++i)
      hash = (hash ^ words[i]) * 0x100000001b3;
  }
  return true;
}

[[nodiscard]] inline std::string in_hex(std::uint64_t hash) {
  std::array<char, 17> digits{};
  std::to_chars(digits.data(), digits.data() + digits.size() - 1, hash, 16);
  return digits.data();
}

} // namespace detail

// Size and content hash; size and modification time if it is too large to read; empty if it cannot
// be read.
[[nodiscard]] inline std::string content_identity(int file, const struct stat& status,
                                                  off_t largest_hashed) {
  std::uint64_t hash = detail::hash_start;
  if (status.st_size > largest_hashed)
    return "size " + std::to_string(status.st_size) + " changed " +
           std::to_string(status.st_mtim.tv_sec);
  if (!detail::content_hash(file, 0, static_cast<std::uint64_t>(status.st_size), hash))
    return {};
  return "size " + std::to_string(status.st_size) + " fnv " + detail::in_hex(hash);
}

// Hash of an ELF file's machine code, as read_elf_file found it: equal for two builds that differ
// in their build-id, names of files or time stamps only. Empty if there is none, or too much.
[[nodiscard]] inline std::string code_identity(int file, const std::vector<FilePart>& code,
                                               std::uint64_t largest_hashed) {
  std::uint64_t hash = detail::hash_start, total = 0;
  for (const auto& part : code) {
    if (part.bytes > largest_hashed - total ||
        !detail::content_hash(file, part.offset, part.bytes, hash))
      return {};
    total += part.bytes;
  }
  return total == 0 ? std::string()
                    : "size " + std::to_string(total) + " fnv " + detail::in_hex(hash);
}

} // namespace seatrial
