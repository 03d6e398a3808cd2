// NUMA nodes by raw system calls: no library has to be there, and where the kernel or a container
// refuses a call the program says so.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.hpp"

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
[[nodiscard]] inline std::optional<std::uint64_t> available_on_node(int node) {
  std::ifstream lines("/sys/devices/system/node/node" + std::to_string(node) + "/meminfo");
  std::optional<std::uint64_t> available;
  for (std::string line; std::getline(lines, line);) { // `Node 0 MemFree: 123 kB`
    std::istringstream words(line);
    std::string word, number, key;
    std::uint64_t kib = 0;
    if (words >> word >> number >> key >> kib && (key == "MemFree:" || key == "Inactive(file):"))
      available = available.value_or(0) + kib * 1024;
  }
  return available;
}

namespace detail {

inline constexpr std::size_t mask_bits = 1024; // Linux knows 1024 nodes at most
inline constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, mask_bits / word_bits>;

[[nodiscard]] inline NodeMask mask_of(int node) {
  NodeMask mask{};
  const auto bit = static_cast<std::size_t>(node);
  if (bit >= mask_bits)
    throw Skip("there is no NUMA node " + std::to_string(node));
  mask[bit / word_bits] = 1UL << bit % word_bits;
  return mask;
}

[[noreturn]] inline void refuse_node(int node, const std::string& call, int error) {
  std::string reason = "memory cannot be bound to NUMA node " + std::to_string(node) + ": " + call +
                       ": " + std::strerror(error);
  if (error == EPERM || error == ENOSYS)
    reason += " (a container's filter of system calls?)";
  else if (error == EINVAL)
    reason += " (no such node, or one outside this cpuset)";
  throw Skip(reason);
}

} // namespace detail

// From now on pages of this range come from this node and from no other. Call before the pages are
// touched. Skips the benchmark where that cannot be had.
inline void bind_to_node(void* begin, std::size_t bytes, int node) {
  const auto mask = detail::mask_of(node);
  // The kernel reads one bit less than it is told of.
  if (syscall(SYS_mbind, begin, bytes, MPOL_BIND, mask.data(), detail::mask_bits + 1, 0U) != 0)
    detail::refuse_node(node, "mbind", errno);
}

// As long as this lives, what the calling thread touches first comes from this node and from no
// other: for memory that a driver maps. Skips the benchmark where that cannot be had.
class TouchedOnNode {
public:
  explicit TouchedOnNode(int node) {
    const auto mask = detail::mask_of(node);
    if (syscall(SYS_get_mempolicy, &mode_, before_.data(), detail::mask_bits, nullptr, 0UL) != 0)
      mode_ = MPOL_DEFAULT;
    if (syscall(SYS_set_mempolicy, MPOL_BIND, mask.data(), detail::mask_bits + 1) != 0)
      detail::refuse_node(node, "set_mempolicy", errno);
  }
  ~TouchedOnNode() {
    const bool is_plain = mode_ == MPOL_DEFAULT;
    syscall(SYS_set_mempolicy, mode_, is_plain ? nullptr : before_.data(),
            is_plain ? 0UL : detail::mask_bits + 1);
  }
  TouchedOnNode(const TouchedOnNode&) = delete;
  TouchedOnNode& operator=(const TouchedOnNode&) = delete;

private:
  int mode_ = MPOL_DEFAULT; // of the thread before
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
