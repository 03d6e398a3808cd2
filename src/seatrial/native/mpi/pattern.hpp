// Fills messages with a pattern and checks that it arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace seatrial::mpi {

// A word for each position, different for each seed (splitmix64's mixer: D. Lea, G. Steele, S.
// Vigna, OOPSLA 2014): stale data, or data at the wrong offset, is detected.
[[nodiscard]] constexpr std::uint64_t pattern_word(std::uint64_t seed, std::size_t place) noexcept {
  std::uint64_t z = seed * 0xd1342543de82ef95u + place * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

namespace detail {

// Writes each word of the pattern, combined with `flip`.
inline void write_pattern(std::span<std::byte> buffer, std::uint64_t seed,
                          std::uint64_t flip) noexcept {
  const std::size_t words = buffer.size() / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i) {
    const auto word = pattern_word(seed, i) ^ flip;
    std::memcpy(buffer.data() + i * sizeof word, &word, sizeof word);
  }
  const auto last = pattern_word(seed, words) ^ flip;
  if (const auto rest = buffer.size() % sizeof last; rest > 0)
    std::memcpy(buffer.data() + words * sizeof last, &last, rest);
}

} // namespace detail

inline void fill(std::span<std::byte> buffer, std::uint64_t seed) noexcept {
  detail::write_pattern(buffer, seed, 0);
}

// Sets every byte to a value that `fill` with this seed does not write: an unchanged byte never
// arrived.
inline void poison(std::span<std::byte> buffer, std::uint64_t seed) noexcept {
  detail::write_pattern(buffer, seed, ~std::uint64_t{0});
}

// The number of bytes that differ from what `fill` with this seed writes.
[[nodiscard]] inline std::size_t wrong_bytes(std::span<const std::byte> buffer,
                                             std::uint64_t seed) noexcept {
  std::size_t wrong = 0;
  const auto compare = [&](std::size_t place, std::size_t bytes) {
    const auto word = pattern_word(seed, place);
    const auto* found = buffer.data() + place * sizeof word;
    if (std::memcmp(found, &word, bytes) == 0)
      return;
    std::byte wanted[sizeof word];
    std::memcpy(wanted, &word, sizeof word);
    for (std::size_t i = 0; i < bytes; ++i)
      wrong += found[i] != wanted[i];
  };
  const std::size_t words = buffer.size() / sizeof(std::uint64_t);
  for (std::size_t i = 0; i < words; ++i)
    compare(i, sizeof(std::uint64_t));
  if (const auto rest = buffer.size() % sizeof(std::uint64_t); rest > 0)
    compare(words, rest);
  return wrong;
}

} // namespace seatrial::mpi
