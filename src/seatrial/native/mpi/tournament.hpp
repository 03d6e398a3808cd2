// Schedules rounds of pairs, so that every pair of ranks meets once.
#pragma once

#include <utility>
#include <vector>

namespace seatrial::mpi {

// A round-robin tournament by the circle method (R. R. Anstice, 1853; see E. Lucas, Récréations
// mathématiques II, 1883): with m players, m even, i and j meet in round i + j modulo m - 1, and
// the last player meets the one that would meet itself. With an odd number of ranks, one is idle in
// each round.
class Tournament {
public:
  explicit Tournament(int ranks) : ranks_(ranks), players_(ranks + ranks % 2) {}

  [[nodiscard]] int rounds() const noexcept { return players_ - 1; }

  // The pairs (a, b), a < b, of a round, in order of a.
  [[nodiscard]] std::vector<std::pair<int, int>> pairs(int round) const {
    std::vector<std::pair<int, int>> found;
    for (int rank = 0; rank < ranks_; ++rank) {
      const int other = partner(rank, round);
      if (rank < other && other < ranks_)
        found.emplace_back(rank, other);
    }
    return found;
  }

private:
  [[nodiscard]] int partner(int rank, int round) const noexcept {
    const int last = players_ - 1;
    if (rank == last)
      return static_cast<int>(static_cast<long>(round) * (players_ / 2) % last);
    const int other = (round - rank % last + last) % last;
    return other == rank ? last : other;
  }

  int ranks_;
  int players_;
};

} // namespace seatrial::mpi
