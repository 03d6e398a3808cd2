// A chain of dependent integer additions. Each takes one cycle on every current core, so its
// duration gives the clock frequency at that moment, without hardware counters or root.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unrolled.hpp"

namespace seatrial {

inline constexpr std::size_t additions_per_block = 16;

// Computes x + blocks * additions_per_block * y, one dependent addition after the other, between
// registers: additions of a small constant may be folded at rename (Golden Cove).
[[gnu::noinline]] inline std::uint64_t chain_of_additions(std::uint64_t x, std::uint64_t y,
                                                          std::uint64_t blocks) noexcept {
  for (; blocks != 0; --blocks)
    unrolled<additions_per_block>([&](std::size_t) {
      x += y;
      asm volatile("" : "+r"(x)); // keeps the compiler from merging them into a multiplication
    });
  return x;
}

} // namespace seatrial
