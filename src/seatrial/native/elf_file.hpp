// Reads an ELF file's SONAME, GNU build-id and program interpreter, and where its code is.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include "libraries.hpp"

namespace seatrial {

struct FilePart {
  std::uint64_t offset, bytes;
};

struct ElfFile {
  std::string soname;
  std::string build_id;       // hexadecimal; empty if the linker wrote none
  std::string interpreter;    // the dynamic loader; empty for static programs and most libraries
  std::vector<FilePart> code; // its executable segments, without headers and notes
};

namespace detail {

// The file is untrusted: every offset and size in it is checked against these limits.
inline constexpr std::size_t max_headers = 1024;
inline constexpr std::size_t largest_part = 1 << 20;

[[nodiscard]] inline bool read_at(int file, void* target, std::size_t bytes,
                                  std::uint64_t offset) noexcept {
  return offset <= std::uint64_t{1} << 62 &&
         ::pread(file, target, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

[[nodiscard]] inline std::vector<unsigned char> read_part(int file, std::uint64_t offset,
                                                          std::uint64_t bytes) {
  std::vector<unsigned char> part(bytes <= largest_part ? static_cast<std::size_t>(bytes) : 0);
  if (!read_at(file, part.data(), part.size(), offset))
    part.clear();
  return part;
}

// A string of at most a path's length that ends within the file.
[[nodiscard]] inline std::string read_text(int file, std::uint64_t offset) {
  std::array<char, 4096> text{};
  if (offset > std::uint64_t{1} << 62)
    return {};
  const auto got = ::pread(file, text.data(), text.size(), static_cast<off_t>(offset));
  if (got <= 0)
    return {};
  const std::string_view all(text.data(), static_cast<std::size_t>(got));
  const auto end = all.find('\0');
  return std::string(end == all.npos ? std::string_view() : all.substr(0, end));
}

// The file offset of an address in the loaded image (System V gABI, "Program Header").
[[nodiscard]] inline std::optional<std::uint64_t> offset_of(const std::vector<ElfW(Phdr)>& segments,
                                                            std::uint64_t address) {
  for (const auto& segment : segments)
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  return std::nullopt;
}

[[nodiscard]] inline std::string soname_in(int file, const std::vector<ElfW(Phdr)>& segments,
                                           const ElfW(Phdr) & dynamic) {
  const auto part = read_part(file, dynamic.p_offset, dynamic.p_filesz);
  std::optional<std::uint64_t> strings;
  std::optional<std::uint64_t> name;
  for (std::size_t at = 0; at + sizeof(ElfW(Dyn)) <= part.size(); at += sizeof(ElfW(Dyn))) {
    ElfW(Dyn) entry;
    std::memcpy(&entry, part.data() + at, sizeof entry);
    if (entry.d_tag == DT_NULL)
      break;
    if (entry.d_tag == DT_STRTAB)
      strings = offset_of(segments, entry.d_un.d_ptr);
    if (entry.d_tag == DT_SONAME)
      name = entry.d_un.d_val;
  }
  return strings && name ? read_text(file, *strings + *name) : std::string();
}

// Adds an executable segment without the headers at the start of the file and the notes: a linker
// may put these into the same segment.
inline void add_code(ElfFile& found, const ElfW(Ehdr) & head,
                     const std::vector<ElfW(Phdr)>& segments, const ElfW(Phdr) & code) {
  std::uint64_t at = code.p_offset;
  const std::uint64_t end = at + std::min<std::uint64_t>(code.p_filesz, ~at);
  const std::uint64_t headers = head.e_phoff + segments.size() * sizeof(ElfW(Phdr));
  at = std::max(at, std::min(headers, end));
  std::vector<FilePart> notes;
  for (const auto& segment : segments)
    if (segment.p_type == PT_NOTE && segment.p_filesz <= end && segment.p_offset >= at &&
        segment.p_offset <= end - segment.p_filesz)
      notes.push_back({segment.p_offset, segment.p_filesz});
  std::ranges::sort(notes, {}, &FilePart::offset);
  for (const auto& note : notes) {
    if (note.offset > at)
      found.code.push_back({at, note.offset - at});
    at = std::max(at, note.offset + note.bytes);
  }
  if (end > at)
    found.code.push_back({at, end - at});
}

} // namespace detail

// None if this is not an ELF file of this machine's word size and byte order.
[[nodiscard]] inline std::optional<ElfFile> read_elf_file(int file) {
  ElfW(Ehdr) head;
  constexpr unsigned char native_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  constexpr std::uint16_t one = 1;
  unsigned char first = 0;
  std::memcpy(&first, &one, 1);
  if (!detail::read_at(file, &head, sizeof head, 0) ||
      std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != native_class ||
      head.e_ident[EI_DATA] != (first == 1 ? ELFDATA2LSB : ELFDATA2MSB) ||
      head.e_phentsize != sizeof(ElfW(Phdr)) || head.e_phnum > detail::max_headers)
    return std::nullopt;
  std::vector<ElfW(Phdr)> segments(head.e_phnum);
  if (!detail::read_at(file, segments.data(), segments.size() * sizeof(ElfW(Phdr)), head.e_phoff))
    return std::nullopt;
  ElfFile found;
  for (const auto& segment : segments) {
    if (segment.p_type == PT_NOTE && found.build_id.empty()) {
      const auto notes = detail::read_part(file, segment.p_offset, segment.p_filesz);
      found.build_id = build_id(notes.data(), notes.size());
    }
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0)
      detail::add_code(found, head, segments, segment);
    if (segment.p_type == PT_DYNAMIC)
      found.soname = detail::soname_in(file, segments, segment);
    if (segment.p_type == PT_INTERP)
      found.interpreter = detail::read_text(file, segment.p_offset);
  }
  return found;
}

} // namespace seatrial
