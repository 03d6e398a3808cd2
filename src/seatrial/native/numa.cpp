#include "numa.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <linux/mempolicy.h>

#include "failure.hpp"

namespace seatrial {

std::optional<std::uint64_t> available_on_node(int node) {
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

namespace {

[[nodiscard]] detail::NodeMask mask_of(int node) {
  detail::NodeMask mask{};
  const auto bit = static_cast<std::size_t>(node);
  if (bit >= detail::mask_bits)
    throw Skip("no NUMA node " + std::to_string(node));
  mask[bit / detail::word_bits] = 1UL << bit % detail::word_bits;
  return mask;
}

[[noreturn]] void refuse_node(int node, const std::string& call, int error) {
  std::string reason = "cannot bind memory to NUMA node " + std::to_string(node) + ": " + call +
                       ": " + std::strerror(error);
  if (error == EPERM || error == ENOSYS)
    reason += " (blocked by a container's seccomp filter?)";
  else if (error == EINVAL)
    reason += " (no such node, or outside this cpuset)";
  throw Skip(reason);
}

} // namespace

void bind_to_node(void* begin, std::size_t bytes, int node) {
  const auto mask = mask_of(node);
  // The kernel reads one bit less than the given number.
  if (syscall(SYS_mbind, begin, bytes, MPOL_BIND, mask.data(), detail::mask_bits + 1, 0U) != 0)
    refuse_node(node, "mbind", errno);
}

FirstTouchOnNode::FirstTouchOnNode(int node) : mode_(MPOL_DEFAULT) {
  const auto mask = mask_of(node);
  if (syscall(SYS_get_mempolicy, &mode_, before_.data(), detail::mask_bits, nullptr, 0UL) != 0)
    mode_ = MPOL_DEFAULT;
  if (syscall(SYS_set_mempolicy, MPOL_BIND, mask.data(), detail::mask_bits + 1) != 0)
    refuse_node(node, "set_mempolicy", errno);
}

FirstTouchOnNode::~FirstTouchOnNode() {
  const bool is_plain = mode_ == MPOL_DEFAULT;
  syscall(SYS_set_mempolicy, mode_, is_plain ? nullptr : before_.data(),
          is_plain ? 0UL : detail::mask_bits + 1);
}

} // namespace seatrial
