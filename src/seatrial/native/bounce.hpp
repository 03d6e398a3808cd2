// A cache line that two threads, or two processes that share its page, write in turn.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace seatrial {

using BounceWord = std::uint64_t;

// Alone in its line, and in the pair of lines that an adjacent-line prefetcher fetches.
struct alignas(128) BounceLine {
  std::atomic<BounceWord> word{0};
};

// How long a line takes depends on the slice of the cache, or the directory, that is its home: a
// page has lines of many.
inline constexpr std::size_t bounce_lines = 32; // of the smallest page there is
using BounceLines = std::array<BounceLine, bounce_lines>;

// Waits for each value that is the other's to write and answers with the next one, from `mine`
// until `last`. The word itself numbers the trips, so none can be lost or come out of order unseen:
// returns how many values were not the ones that had to come.
inline std::uint64_t bounce(std::atomic<BounceWord>& word, BounceWord mine,
                            BounceWord last) noexcept {
  std::uint64_t wrong = 0;
  // No pause instruction: on some cores it takes longer than the trip.
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
