// The shared objects mapped into this process, with name, GNU build-id and path.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace seatrial {

struct Library {
  std::string name;     // its SONAME, else the file name
  std::string build_id; // hexadecimal; empty if the linker wrote none
  std::string path;     // as the loader found it
};

[[nodiscard]] std::vector<Library> loaded_libraries();

// In hexadecimal, from the ELF notes of an object; empty if it is missing.
[[nodiscard]] std::string build_id(const unsigned char* notes, std::size_t bytes);

} // namespace seatrial
