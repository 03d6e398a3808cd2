// Where a program is in the container that this process runs in, and what starts it.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include "json.hpp"

namespace seatrial {

[[nodiscard]] inline bool is_program(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

// The path of a program, or of a command on PATH; "" if there is none.
[[nodiscard]] inline std::string path_of(const std::string& name) {
  if (name.find('/') != std::string::npos)
    return is_program(name) ? name : "";
  const char* given = std::getenv("PATH");
  std::string_view left = given != nullptr ? given : "";
  while (!left.empty()) {
    const auto colon = left.find(':');
    const std::string folder(left.substr(0, colon));
    if (folder.starts_with('/') && is_program(folder + "/" + name))
      return folder + "/" + name;
    left = colon == std::string_view::npos ? "" : left.substr(colon + 1);
  }
  return "";
}

// The loader that a 64-bit ELF program names (PT_INTERP); "" for static programs and scripts.
[[nodiscard]] inline std::string loader_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::string_view(reinterpret_cast<const char*>(header.e_ident), SELFMAG) != ELFMAG ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return "";
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  Elf64_Phdr segment{};
  for (int number = 0; number < header.e_phnum; ++number) {
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment))
      return "";
    if (segment.p_type != PT_INTERP)
      continue;
    constexpr Elf64_Xword longest = 4096;
    if (segment.p_filesz < 2 || segment.p_filesz > longest)
      return "";
    std::string text(segment.p_filesz, '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    return text.substr(0, text.find('\0'));
  }
  return "";
}

[[nodiscard]] inline json::Object found_program(const std::string& name) {
  const auto path = path_of(name);
  json::Object found;
  found.add("path", path);
  found.add("loader", path.empty() ? "" : loader_of(path));
  return found;
}

} // namespace seatrial
