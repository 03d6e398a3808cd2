// NUMA nodes through raw system calls: no library is needed, and a call refused by the kernel or a
// container is reported.
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

// The node of the CPU that the calling thread runs on; none if the kernel does not report it.
[[nodiscard]] inline std::optional<int> own_node() noexcept {
  unsigned cpu = 0;
  unsigned node = 0;
  if (syscall(SYS_getcpu, &cpu, &node, nullptr) != 0)
    return std::nullopt;
  return static_cast<int>(node);
}

// Memory of a node that is available without disk I/O: free memory and clean page cache (Linux,
// Documentation/ABI/stable/sysfs-devices-node). None if the kernel does not report it.
[[nodiscard]] std::optional<std::uint64_t> available_on_node(int node);

namespace detail {

inline constexpr std::size_t mask_bits = 1024; // Linux supports at most 1024 nodes
inline constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
using NodeMask = std::array<unsigned long, mask_bits / word_bits>;

} // namespace detail

// Binds the pages of this range to this node. Call before they are touched. Throws Skip if the
// kernel refuses.
void bind_to_node(void* begin, std::size_t bytes, int node);

// During its lifetime, pages first touched by the calling thread come from this node only: for
// memory that a driver maps. Throws Skip if the kernel refuses.
class FirstTouchOnNode {
public:
  explicit FirstTouchOnNode(int node);
  ~FirstTouchOnNode();
  FirstTouchOnNode(const FirstTouchOnNode&) = delete;
  FirstTouchOnNode& operator=(const FirstTouchOnNode&) = delete;

private:
  int mode_; // the thread's previous policy
  detail::NodeMask before_{};
};

// The actual nodes of pages.
struct PageNodes {
  std::size_t looked_at = 0; // touched pages whose node the kernel reported
  std::size_t astray = 0;    // of these, pages on the wrong node
  int error = 0;             // errno if the kernel reported none
};

// Looks up the nodes of the pages at these addresses; `belongs(i, node)` says whether the i-th page
// should be on that node. Pages that were never touched have no node.
template <class Belongs>
[[nodiscard]] PageNodes look_up_nodes(std::span<void* const> addresses, Belongs belongs) {
  PageNodes found;
  std::vector<void*> pages(addresses.begin(), addresses.end());
  std::vector<int> status(pages.size(), -ENOENT);
  // Without target nodes the call moves nothing and only reports (move_pages(2)).
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
