// The shared objects that are mapped into this process, by name, GNU build-id and path.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace seatrial {

struct Library {
  std::string name;     // its SONAME, or else the file's name
  std::string build_id; // hexadecimal; empty when the linker wrote none
  std::string path;     // as the loader found it
};

[[nodiscard]] std::vector<Library> loaded_libraries();

// In hexadecimal, from the ELF notes of an object; empty where it is not among them.
[[nodiscard]] std::string build_id(const unsigned char* notes, std::size_t bytes);

} // namespace seatrial
