// The order in which a round of samples visits the points of a sweep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace seatrial {

// A different order in each round, so that no point is always measured first, or always after the
// same one. It depends on the round alone: all ranks, and all programs of a comparison, have the
// same one.
[[nodiscard]] inline std::vector<std::size_t> round_order(std::size_t points, std::size_t round) {
  const auto mixed = [round](std::size_t point) { // splitmix64 (Steele, Lea & Flood, OOPSLA 2014)
    std::uint64_t word = (static_cast<std::uint64_t>(round) << 32 | point) + 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
  };
  std::vector<std::size_t> order(points);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, mixed);
  return order;
}

} // namespace seatrial
