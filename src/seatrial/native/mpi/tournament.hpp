// Schedules rounds of pairs, so that every pair of ranks meets once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "mpi/pattern.hpp"

namespace seatrial::mpi {

// A round-robin tournament by the circle method (R. R. Anstice, 1853; see E. Lucas, Récréations
// mathématiques II, 1883): with m seats, m even, those in seats i and j meet in round i + j modulo
// m - 1, and the one in the last seat meets the one that would meet itself. With an odd number of
// ranks, one is idle in each round. The seed shuffles the seats; benchmarks/mpi/tournament.py makes
// the same schedule.
class Tournament {
public:
  Tournament(int ranks, std::uint64_t seed)
      : seats_(static_cast<std::size_t>(ranks)), players_(ranks + ranks % 2) {
    std::iota(seats_.begin(), seats_.end(), 0);
    std::ranges::sort(seats_, {}, [seed](int rank) {
      return pattern_word(seed, static_cast<std::size_t>(rank));
    });
  }

  [[nodiscard]] int rounds() const noexcept { return players_ - 1; }

  // The pairs (a, b), a < b, of a round, in order of a.
  [[nodiscard]] std::vector<std::pair<int, int>> pairs(int round) const {
    const int ranks = static_cast<int>(seats_.size());
    std::vector<std::pair<int, int>> found;
    for (int seat = 0; seat < ranks; ++seat) {
      const int other = opposite(seat, round);
      if (seat < other && other < ranks)
        found.emplace_back(std::minmax(seats_[static_cast<std::size_t>(seat)],
                                       seats_[static_cast<std::size_t>(other)]));
    }
    std::ranges::sort(found);
    return found;
  }

private:
  [[nodiscard]] int opposite(int seat, int round) const noexcept {
    const int last = players_ - 1;
    if (seat == last)
      return static_cast<int>(static_cast<long>(round) * (players_ / 2) % last);
    const int other = (round - seat % last + last) % last;
    return other == seat ? last : other;
  }

  std::vector<int> seats_; // the rank in each
  int players_;
};

} // namespace seatrial::mpi
