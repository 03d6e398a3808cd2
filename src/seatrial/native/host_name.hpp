// The name of the node that this process runs on.
#pragma once

#include <cstddef>
#include <string>

#include <unistd.h>

namespace seatrial {

constexpr std::size_t max_host_name = 256; // with the zero at the end; POSIX allows 255 letters

[[nodiscard]] inline std::string host_name() {
  char name[max_host_name] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

} // namespace seatrial
