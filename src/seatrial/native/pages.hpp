// Anonymous memory, aligned to huge pages, and which pages the kernel really gave.
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
  // Untouched zero pages; skips the benchmark if they cannot be had. Without `ask_huge` huge pages
  // are declined, so that the two settings differ also where the system gives them unasked. With a
  // `node` all of them come from that NUMA node; else each from that of its first toucher.
  Pages(std::size_t bytes, bool ask_huge, std::optional<int> node = std::nullopt);
  ~Pages() { munmap(mapped_, mapped_bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  // Share of the touched pages that are huge, from /proc/self/smaps (proc(5)); call after touching.
  [[nodiscard]] double huge_fraction() const;

  [[nodiscard]] std::string_view huge_verdict() const;

private:
  bool asked_huge_;
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::byte* data_ = nullptr;
};

} // namespace seatrial
