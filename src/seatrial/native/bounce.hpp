// A cache line that two threads, or two processes sharing its page, write in turn.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace seatrial {

using BounceWord = std::uint64_t;

// Alone in its cache line, and in the pair of lines that an adjacent-line prefetcher fetches.
struct alignas(128) BounceLine {
  std::atomic<BounceWord> word{0};
};

// The latency of a line depends on the cache slice or directory that is its home; the lines of a
// page are spread over many.
inline constexpr std::size_t bounce_lines = 32; // in the smallest page size
using BounceLines = std::array<BounceLine, bounce_lines>;

// Waits for each value written by the other side and answers with the next one, from `mine` until
// `last`. The word itself numbers the trips, so lost or reordered ones are detected: returns the
// number of unexpected values.
inline std::uint64_t bounce(std::atomic<BounceWord>& word, BounceWord mine,
                            BounceWord last) noexcept {
  std::uint64_t wrong = 0;
  // No pause instruction: on some cores it takes longer than one trip.
  for (; mine <= last; mine += 2) {
    BounceWord seen = word.load(std::memory_order_acquire);
    while (seen < mine - 1)
      seen = word.load(std::memory_order_acquire);
    wrong += seen != mine - 1;
    word.store(mine, std::memory_order_release);
  }
  return wrong;
}

} // namespace seatrial
