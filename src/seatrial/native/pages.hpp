// Anonymous memory, aligned to huge pages, and the kind of pages that the kernel actually provided.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <sys/mman.h>
#include <unistd.h>

namespace seatrial {

// A huge page of x86-64, and of AArch64 with 4 KiB base pages.
inline constexpr std::size_t huge_page = std::size_t{2} << 20;

[[nodiscard]] constexpr std::size_t round_up(std::size_t value, std::size_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

[[nodiscard]] inline std::size_t base_page() noexcept {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Pages {
public:
  // Untouched zero pages; throws Skip if there is not enough memory. Without `request_huge` huge
  // pages are declined, so that the two settings differ even if the system uses huge pages by
  // default. With a `node` all pages come from that NUMA node; otherwise each from that of the
  // thread that touches it first.
  Pages(std::size_t bytes, bool request_huge, std::optional<int> node = std::nullopt);
  ~Pages() { munmap(mapped_, mapped_bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  // The fraction of touched pages that are huge, from /proc/self/smaps (proc(5)); call after
  // touching.
  [[nodiscard]] double huge_fraction() const;

  [[nodiscard]] std::string_view huge_verdict() const;

private:
  bool requested_huge_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
};

} // namespace seatrial
