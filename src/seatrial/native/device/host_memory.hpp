// Memory of the host that copies start from or end in: of each kind, and on a NUMA node of choice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "device/kernel.hpp"
#include "numa.hpp"
#include "pages.hpp"

namespace seatrial::device {

// Pinned: what a device's copy engines reach by themselves. Pageable: as programs usually have it.
// Mapped: what kernels reach into.
enum class HostKind { pinned, pageable, mapped };

[[nodiscard]] inline HostKind host_kind(std::string_view word) {
  return word == "pinned"   ? HostKind::pinned
         : word == "mapped" ? HostKind::mapped
                            : HostKind::pageable;
}

// Touched by the thread that makes it: without a `node` it lies next to that thread's CPU.
class HostMemory {
public:
  HostMemory(Device& device, HostKind kind, std::size_t bytes, std::optional<int> node)
      : bytes_(bytes) {
    std::optional<TouchedOnNode> touched;
    if (node)
      touched.emplace(*node);
    if (kind == HostKind::pageable)
      pages_.emplace(bytes, false, node);
    else
      shared_.emplace(device, bytes / sizeof(std::uint64_t),
                      kind == HostKind::pinned ? Where::pinned : Where::mapped);
    std::memset(data(), 0xff, bytes);
  }

  // Not to be kept: it may be elsewhere after a kernel's run.
  [[nodiscard]] std::byte* data() const noexcept {
    return pages_ ? pages_->data() : reinterpret_cast<std::byte*>(shared_->host());
  }
  [[nodiscard]] std::span<std::byte> first(std::size_t bytes) const noexcept {
    return {data(), bytes};
  }
  // What kernels are given; mapped memory alone has it.
  [[nodiscard]] const Array<std::uint64_t>& array() const noexcept { return *shared_; }

  // Where some of its pages are: they should be on that node. A driver's memory may have none that
  // the kernel tells of.
  [[nodiscard]] PageNodes placed(int node) const {
    constexpr std::size_t most = 1024;
    const auto page = base_page();
    const auto step = std::max(page, round_up(bytes_ / most, page));
    std::vector<void*> looked_at;
    for (std::size_t at = 0; at < bytes_; at += step)
      looked_at.push_back(data() + at);
    return look_up_nodes(looked_at, [node](std::size_t, int found) { return found == node; });
  }

private:
  std::size_t bytes_;
  std::optional<Pages> pages_;
  std::optional<Array<std::uint64_t>> shared_;
};

} // namespace seatrial::device
