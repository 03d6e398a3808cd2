// NUMA nodes by raw system calls: no library has to be there, and where the kernel or a container
// refuses a call the program says so.
#pragma once

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace seatrial {

// The node of the CPU that the calling thread runs on; none where the kernel does not tell.
[[nodiscard]] inline std::optional<int> own_node() noexcept {
  unsigned cpu = 0;
  unsigned node = 0;
  if (syscall(SYS_getcpu, &cpu, &node, nullptr) != 0)
    return std::nullopt;
  return static_cast<int>(node);
}

// Memory of a node that can be had without waiting for a disk: free, or clean page cache (Linux,
// Documentation/ABI/stable/sysfs-devices-node). None where the kernel does not tell.
[[nodiscard]] std::optional<std::uint64_t> available_on_node(int node);

namespace detail {

inline constexpr std::size_t mask_bits = 1024; // Linux knows 1024 nodes at most
inline constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, mask_bits / word_bits>;

} // namespace detail

// From now on pages of this range come from this node and from no other. Call before the pages are
// touched. Skips the benchmark where that cannot be had.
void bind_to_node(void* begin, std::size_t bytes, int node);

// As long as this lives, what the calling thread touches first comes from this node and from no
// other: for memory that a driver maps. Skips the benchmark where that cannot be had.
class TouchedOnNode {
public:
  explicit TouchedOnNode(int node);
  ~TouchedOnNode();
  TouchedOnNode(const TouchedOnNode&) = delete;
  TouchedOnNode& operator=(const TouchedOnNode&) = delete;

private:
  int mode_; // of the thread before
  detail::NodeMask before_{};
};

// Where pages really lie.
struct PageNodes {
  std::size_t looked_at = 0; // touched pages of which the kernel told the node
  std::size_t astray = 0;    // of those: on a node that they should not be on
  int error = 0;             // why it told none, as errno
};

// Looks up the nodes of the pages at these addresses; `belongs(i, node)` tells whether the i-th of
// them should be on that node. Pages that were never touched have none.
template <class Belongs>
[[nodiscard]] PageNodes look_up_nodes(std::span<void* const> addresses, Belongs belongs) {
  PageNodes found;
  std::vector<void*> pages(addresses.begin(), addresses.end());
  std::vector<int> status(pages.size(), -ENOENT);
  // Without target nodes nothing is moved: the call then only tells (move_pages(2)).
  if (syscall(SYS_move_pages, 0, pages.size(), pages.data(), nullptr, status.data(), 0) != 0) {
    found.error = errno;
    return found;
  }
  for (std::size_t i = 0; i < status.size(); ++i)
    if (status[i] >= 0) {
      ++found.looked_at;
      found.astray += !belongs(i, status[i]);
    }
  return found;
}

} // namespace seatrial
