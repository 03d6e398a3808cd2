// How much memory this process may touch before the kernel kills it. A successful mmap proves
// nothing: Linux overcommits, and a cgroup limit takes effect only when pages are touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace seatrial {

struct AvailableMemory {
  std::uint64_t bytes = UINT64_MAX;
  std::string source = "unknown";

  void restrict_to(std::uint64_t other, std::string_view from) {
    if (other < bytes) {
      bytes = other;
      source = from;
    }
  }
};

[[nodiscard]] AvailableMemory available_memory();

// Such as "9610 GB, 24.4 GB available": what is needed, and what there is.
[[nodiscard]] std::string needed_of_available(double needed_bytes, double available_bytes);

// The number after `key` in a file with lines `key value ...`.
[[nodiscard]] std::optional<std::uint64_t> read_value(const std::string& file,
                                                      std::string_view key);

} // namespace seatrial
