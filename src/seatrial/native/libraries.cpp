#include "libraries.hpp"

#include <cstdint>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

namespace seatrial {

namespace {

[[nodiscard]] std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    (text += digits[bytes[i] >> 4]) += digits[bytes[i] & 15];
  return text;
}

[[nodiscard]] std::string soname(const dl_phdr_info& object, const ElfW(Dyn) * entry) {
  ElfW(Addr) strings = 0;
  std::uint64_t offset = 0;
  bool named = false;
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB)
      strings = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SONAME) {
      offset = entry->d_un.d_val;
      named = true;
    }
  }
  if (!named || strings == 0)
    return {};
  if (strings < object.dlpi_addr) // glibc relocates this entry in place, musl does not
    strings += object.dlpi_addr;
  return reinterpret_cast<const char*>(strings + offset);
}

int add_library(dl_phdr_info* object, std::size_t, void* list) {
  // The executable has no name; the vDSO is not a file.
  if (object->dlpi_name[0] == '\0' || object->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
    return 0;
  Library library{.name = {}, .build_id = {}, .path = object->dlpi_name};
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const auto* content =
        reinterpret_cast<const unsigned char*>(object->dlpi_addr + segment.p_vaddr);
    if (segment.p_type == PT_NOTE && library.build_id.empty())
      library.build_id = build_id(content, segment.p_memsz);
    if (segment.p_type == PT_DYNAMIC)
      library.name = soname(*object, reinterpret_cast<const ElfW(Dyn)*>(content));
  }
  auto& libraries = *static_cast<std::vector<Library>*>(list);
  if (library.name.empty())
    library.name = library.path.substr(library.path.rfind('/') + 1);
  for (const auto& other : libraries)
    if (other.name == library.name) // names are keys in the record
      library.name = library.path;
  libraries.push_back(library);
  return 0;
}

} // namespace

// Notes are records {name size, content size, type, name, content}, each part padded to 4 bytes
// (System V gABI, "Note Section").
std::string build_id(const unsigned char* notes, std::size_t bytes) {
  constexpr auto padded = [](std::size_t size) { return (size + 3) & ~std::size_t{3}; };
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes, sizeof head);
    const auto content = sizeof head + padded(head.n_namesz);
    const auto next = content + padded(head.n_descsz);
    if (next > bytes)
      break;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
        std::memcmp(notes + sizeof head, "GNU", 4) == 0)
      return hexadecimal(notes + content, head.n_descsz);
    notes += next;
    bytes -= next;
  }
  return {};
}

std::vector<Library> loaded_libraries() {
  std::vector<Library> libraries;
  dl_iterate_phdr(add_library, &libraries);
  return libraries;
}

} // namespace seatrial
