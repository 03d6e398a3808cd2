#include "pages.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "available_memory.hpp"
#include "failure.hpp"
#include "numa.hpp"

namespace seatrial {

namespace {

[[noreturn]] void refuse(std::uint64_t needed, std::uint64_t available, const std::string& why) {
  throw Skip("needs " +
             needed_of_available(static_cast<double>(needed), static_cast<double>(available)) +
             " (" + why + ")");
}

} // namespace

Pages::Pages(std::size_t bytes, bool request_huge, std::optional<int> node)
    : requested_huge_(request_huge) {
  auto available = available_memory();
  if (node) // beyond that the OOM killer acts, even if other nodes have free memory
    if (const auto there = available_on_node(*node))
      available.restrict_to(*there, "NUMA node " + std::to_string(*node));
  // Space for alignment, page tables and the rest of the process.
  constexpr std::size_t reserve = std::size_t{64} << 20;
  const auto needed = bytes + bytes / 64 + reserve;
  if (needed > available.bytes)
    refuse(needed, available.bytes, available.source);

  mapped_bytes_ = bytes + huge_page;
  mapped_ =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped_ == MAP_FAILED)
    refuse(needed, available.bytes, std::string("mmap: ") + std::strerror(errno));
  const auto address = reinterpret_cast<std::uintptr_t>(mapped_);
  data_ = static_cast<std::byte*>(mapped_) + (round_up(address, huge_page) - address);
  // Only advice: huge_fraction() reads back the result.
  madvise(mapped_, mapped_bytes_, request_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  if (node)
    bind_to_node(mapped_, mapped_bytes_, *node);
}

double Pages::huge_fraction() const {
  const auto begin = reinterpret_cast<std::uintptr_t>(mapped_);
  std::uint64_t touched_kib = 0;
  std::uint64_t huge_kib = 0;
  bool ours = false;
  std::ifstream lines("/proc/self/smaps");
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    words >> key;
    if (const auto dash = key.find('-'); dash != std::string::npos) { // `from-to perms ...`
      const auto from = std::stoull(key.substr(0, dash), nullptr, 16);
      const auto to = std::stoull(key.substr(dash + 1), nullptr, 16);
      ours = from < begin + mapped_bytes_ && begin < to;
    } else if (std::uint64_t kib = 0; ours && words >> kib) {
      if (key == "Rss:")
        touched_kib += kib;
      else if (key == "AnonHugePages:")
        huge_kib += kib;
    }
  }
  return touched_kib == 0 ? 0 : static_cast<double>(huge_kib) / static_cast<double>(touched_kib);
}

std::string_view Pages::huge_verdict() const {
  const double fraction = huge_fraction();
  if (!requested_huge_)
    return "not asked";
  // The ends of the arrays may not fill a huge page.
  return fraction >= 0.95 ? "granted" : fraction > 0 ? "partial" : "refused";
}

} // namespace seatrial
