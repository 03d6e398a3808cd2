// A chain of integer additions: one cycle each on every current core, so that its time tells the
// clock of that very moment, without counters or root.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unrolled.hpp"

namespace seatrial {

inline constexpr std::size_t additions_per_block = 16;

// x + blocks * additions_per_block * y, one addition after the other, register to register:
// additions of a small constant may be folded at rename (Golden Cove).
[[gnu::noinline]] inline std::uint64_t chain_of_additions(std::uint64_t x, std::uint64_t y,
                                                          std::uint64_t blocks) noexcept {
  for (; blocks != 0; --blocks)
    unrolled<additions_per_block>([&](std::size_t) {
      x += y;
      asm volatile("" : "+r"(x)); // else they become one multiplication
    });
  return x;
}

} // namespace seatrial
