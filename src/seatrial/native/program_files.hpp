// The files of a program that can be told without running it: its interpreter, and the libraries
// that the loader maps before it starts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "child.hpp"
#include "elf_file.hpp"
#include "file_identity.hpp"
#include "mapped_files.hpp"

namespace seatrial {

namespace detail {

[[nodiscard]] inline std::optional<ElfFile> elf_at(const std::string& path) {
  const OpenFile file(path);
  return file.get() < 0 ? std::nullopt : read_elf_file(file.get());
}

// Whether a loader supports `--list`, which prints the libraries it would load and runs nothing.
[[nodiscard]] inline bool can_list(const std::string& loader) {
  const auto name = file_name(loader);
  return name.starts_with("ld-linux") || name.starts_with("ld64.so") || name.starts_with("ld-musl");
}

// The standard output of a short command; none on failure.
[[nodiscard]] inline std::optional<std::string> output_of(const std::string& path,
                                                          const std::vector<std::string>& words) {
  const int output = ::memfd_create("output", MFD_CLOEXEC);
  if (output < 0)
    return std::nullopt;
  std::optional<std::string> text;
  try {
    if (Child(path, words).run([](pid_t) {}, output).failure_text().empty())
      text = all_of("/proc/self/fd/" + std::to_string(output), 1 << 20);
  } catch (const Failure&) { // the measurement itself is not affected
  }
  ::close(output);
  return text;
}

} // namespace detail

// The program that is actually run: for a script, its interpreter.
[[nodiscard]] inline std::string interpreter_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(256, '\0'); // Linux reads this much
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (!line.starts_with("#!"))
    return path;
  std::istringstream words(line.substr(2, line.find('\n') - 2));
  std::string interpreter;
  words >> interpreter;
  return interpreter.starts_with('/') ? interpreter : path;
}

// Adds the libraries that the loader maps before the program starts, found by repeating its search:
// `     libm.so.6 => /lib/libm.so.6 (0x7f10c0)`. Returns whether they are known, also for a static
// program. They are found however short the run is.
[[nodiscard]] inline bool add_listed(const std::string& program, MappedFiles& files) {
  const auto elf = detail::elf_at(program);
  if (!elf)
    return false;
  if (elf->interpreter.empty())
    return true;
  if (!detail::can_list(elf->interpreter))
    return false;
  const auto text = detail::output_of(elf->interpreter, {elf->interpreter, "--list", program});
  if (!text)
    return false;
  detail::for_each_line(*text, [&](std::string_view line) {
    const auto begin = line.find('/');
    const auto stop = line.rfind(" (0x");
    if (begin != line.npos && stop != line.npos && stop > begin)
      files.add(std::string(line.substr(begin, stop - begin)), false);
  });
  return true;
}

} // namespace seatrial
