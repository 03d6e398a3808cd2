// The data of a collective operation: filled before it, checked after it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/reduction.hpp"

namespace seatrial::mpi {

class Data {
public:
  Data() = default;
  Data(const Data&) = delete;
  Data& operator=(const Data&) = delete;
  virtual ~Data() = default;

  // Fills the send buffer with new data and the receive buffer with data that must be overwritten.
  virtual void fill(std::uint64_t round) = 0;
  // The number of bytes, or elements of a reduction, that differ from the expected result of this
  // round.
  [[nodiscard]] virtual std::size_t wrong(std::uint64_t round) const = 0;
};

// A part of a buffer, identified by source and target: all ranks give it the same content.
struct Block {
  std::size_t offset;
  std::size_t bytes;
  std::uint64_t source;
  std::uint64_t target;
};

[[nodiscard]] inline std::uint64_t seed_of(std::uint64_t round, const Block& block) noexcept {
  return pattern_word(pattern_word(round, block.source), block.target);
}

[[nodiscard]] inline std::size_t wrong_in(const std::byte* buffer, std::uint64_t round,
                                          const Block& block) noexcept {
  return wrong_bytes({buffer + block.offset, block.bytes}, seed_of(round, block));
}

class MovedData : public Data {
public:
  MovedData(std::byte* send, std::byte* receive, std::vector<Block> sent,
            std::vector<Block> received)
      : send_(send), receive_(receive), sent_(std::move(sent)), received_(std::move(received)) {}

  void fill(std::uint64_t round) override {
    for (const auto& block : sent_)
      mpi::fill({send_ + block.offset, block.bytes}, seed_of(round, block));
    for (const auto& block : received_)
      mpi::poison({receive_ + block.offset, block.bytes}, seed_of(round, block));
  }

  [[nodiscard]] std::size_t wrong(std::uint64_t round) const override {
    std::size_t wrong = 0;
    for (const auto& block : received_)
      wrong += wrong_in(receive_, round, block);
    return wrong;
  }

private:
  std::byte* send_;
  std::byte* receive_;
  std::vector<Block> sent_;
  std::vector<Block> received_;
};

// The ranks whose vectors enter a rank's result: all ranks, those up to itself, or those before it.
enum class Scope { all, up_to_me, before_me };

// Vectors whose reduction is known in closed form: element p of rank r is a(r) + b(p), small
// integers, so that every order of additions gives the same floating-point sum. With many ranks
// characters still overflow, and then wrap or saturate, depending on the library.
template <class Element>
class ReducedData : public Data {
public:
  // The result holds `count` elements from position `first` on; none if this rank has no result.
  struct Result {
    std::size_t first;
    std::size_t count;
    Scope scope = Scope::all;
  };

  ReducedData(std::byte* send, std::byte* receive, std::size_t elements, Result result,
              Reduction reduction, int rank, int ranks)
      : send_(reinterpret_cast<Element*>(send)), receive_(reinterpret_cast<Element*>(receive)),
        elements_(elements), result_(result), reduction_(reduction), rank_(rank),
        mask_(mask_for(ranks)), members_(member_count(result.scope, rank, ranks)) {}

  void fill(std::uint64_t round) override {
    const auto mine = of_rank(round, rank_);
    for_each(round, 0, elements_,
             [&](std::size_t i, std::int64_t b) { send_[i] = as_element(mine + b); });
    const Expected expected = of_members(round);
    for_each(round, result_.first, result_.count, [&](std::size_t i, std::int64_t b) {
      receive_[i] = as_element(expected.at(b) + 1); // must be overwritten
    });
  }

  [[nodiscard]] std::size_t wrong(std::uint64_t round) const override {
    if (members_ == 0) // the first rank's exscan result is undefined
      return 0;
    std::size_t wrong = 0;
    const Expected expected = of_members(round);
    for_each(round, result_.first, result_.count, [&](std::size_t i, std::int64_t b) {
      wrong += !is_element(receive_[i], expected.at(b));
    });
    return wrong;
  }

private:
  // The result at a position: b(p) is counted once for each member.
  struct Expected {
    std::int64_t base;
    std::int64_t times;
    [[nodiscard]] std::int64_t at(std::int64_t b) const noexcept { return base + times * b; }
  };

  static int member_count(Scope scope, int rank, int ranks) noexcept {
    return scope == Scope::all ? ranks : scope == Scope::up_to_me ? rank + 1 : rank;
  }

  // Keeps numbers so small that the sum over all ranks is exact; at most 8 bits of a pattern word.
  static std::uint64_t mask_for(int ranks) noexcept {
    constexpr int digits = sizeof(Element) == 1 ? 7 : std::numeric_limits<Element>::digits;
    const auto most = (std::uint64_t{1} << digits) / (2 * static_cast<std::uint64_t>(ranks));
    return std::bit_floor(std::clamp<std::uint64_t>(most, 2, 256)) - 1;
  }

  [[nodiscard]] std::int64_t of_rank(std::uint64_t round, int rank) const noexcept {
    return static_cast<std::int64_t>(pattern_word(~round, static_cast<std::size_t>(rank)) & mask_);
  }

  [[nodiscard]] Expected of_members(std::uint64_t round) const noexcept {
    if (members_ == 0)
      return {0, 0};
    std::int64_t base = of_rank(round, 0);
    for (int member = 1; member < members_; ++member) {
      const auto next = of_rank(round, member);
      base = reduction_ == Reduction::sum   ? base + next
             : reduction_ == Reduction::max ? std::max(base, next)
                                            : std::min(base, next);
    }
    return {base, reduction_ == Reduction::sum ? members_ : 1};
  }

  static Element as_element(std::int64_t value) noexcept { return static_cast<Element>(value); }

  static bool is_element(Element found, std::int64_t value) noexcept {
    if constexpr (sizeof(Element) == 1)
      if (value > std::numeric_limits<signed char>::max() &&
          found == static_cast<Element>(std::numeric_limits<signed char>::max()))
        return true;
    return found == as_element(value);
  }

  // Eight positions share one pattern word, so that a million of them are checked in milliseconds.
  template <class Visit>
  void for_each(std::uint64_t round, std::size_t first, std::size_t count, Visit visit) const {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto place = first + i;
      if (i == 0 || place % 8 == 0)
        word = pattern_word(round, place / 8);
      visit(i, static_cast<std::int64_t>((word >> (place % 8 * 8)) & mask_));
    }
  }

  Element* send_;
  Element* receive_;
  std::size_t elements_;
  Result result_;
  Reduction reduction_;
  int rank_;
  std::uint64_t mask_;
  int members_;
};

} // namespace seatrial::mpi
