// Host memory as source or target of copies: of each kind, on a chosen NUMA node.
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

// Pinned: accessible to the device's copy engines. Pageable: ordinary memory. Mapped: accessible to
// kernels.
enum class HostKind { pinned, pageable, mapped };

[[nodiscard]] inline HostKind host_kind(std::string_view word) {
  return word == "pinned"   ? HostKind::pinned
         : word == "mapped" ? HostKind::mapped
                            : HostKind::pageable;
}

// First touched by the thread that creates it: without a `node` it is local to that thread's CPU.
class HostMemory {
public:
  HostMemory(Device& device, HostKind kind, std::size_t bytes, std::optional<int> node)
      : HostMemory(&device, kind, bytes, node) {}
  // Pageable, where there is no device.
  HostMemory(Device* device, HostKind kind, std::size_t bytes, std::optional<int> node)
      : bytes_(bytes) {
    std::optional<FirstTouchOnNode> touched;
    if (node)
      touched.emplace(*node);
    if (kind == HostKind::pageable || device == nullptr)
      pages_.emplace(bytes, false, node);
    else
      shared_.emplace(*device, bytes / sizeof(std::uint64_t),
                      kind == HostKind::pinned ? Where::pinned : Where::mapped);
    std::memset(data(), 0xff, bytes);
  }

  // Do not keep the pointer: it may change after a kernel has run.
  [[nodiscard]] std::byte* data() const noexcept {
    return pages_ ? pages_->data() : reinterpret_cast<std::byte*>(shared_->host());
  }
  [[nodiscard]] std::span<std::byte> first(std::size_t bytes) const noexcept {
    return {data(), bytes};
  }
  // The kernel argument; only mapped memory has it.
  [[nodiscard]] const Array<std::uint64_t>& array() const noexcept { return *shared_; }

  // The nodes of some of its pages, which should be on `node`. The kernel may report none for a
  // driver's memory.
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
