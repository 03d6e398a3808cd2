#include "device/kernel.hpp"

namespace seatrial::device {

std::string pointer_name(std::string_view pointed, bool is_const) {
  return (is_const ? "const " : "") + std::string(pointed) + "*";
}

void throw_launch_failed(const std::string& kernel, const Grid& grid, const CallFailed& failed) {
  throw CallFailed("kernel " + kernel + ", " + std::to_string(grid.groups) + " x " +
                       std::to_string(grid.groups_y) + " groups of " + std::to_string(grid.items) +
                       " x " + std::to_string(grid.items_y) + ": " + failed.what(),
                   failed.code());
}

} // namespace seatrial::device
