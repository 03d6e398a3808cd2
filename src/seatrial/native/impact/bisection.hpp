// Recursive coordinate bisection: parts of a mesh with equally many elements and few common nodes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "impact/mesh.hpp"

namespace seatrial::impact {

namespace detail {

inline void bisect(std::span<std::uint32_t> elements, const std::vector<Point>& centres,
                   std::uint32_t first, std::uint32_t parts, std::vector<std::uint32_t>& part_of) {
  if (parts == 1) {
    for (const auto element : elements)
      part_of[element] = first;
    return;
  }
  std::size_t axis = 0;
  double longest = -1;
  for (std::size_t i = 0; i < 3; ++i) {
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const auto element : elements) {
      low = std::min(low, centres[element][i]);
      high = std::max(high, centres[element][i]);
    }
    if (high - low > longest)
      std::tie(longest, axis) = std::tuple(high - low, i);
  }
  const std::uint32_t left = parts / 2;
  const auto middle = static_cast<std::ptrdiff_t>(elements.size() * left / parts);
  // Equal coordinates in the order of the mesh, so that every rank cuts alike.
  std::ranges::nth_element(elements, elements.begin() + middle, [&](auto a, auto b) {
    return std::tuple(centres[a][axis], a) < std::tuple(centres[b][axis], b);
  });
  const auto cut = static_cast<std::size_t>(middle);
  bisect(elements.first(cut), centres, first, left, part_of);
  bisect(elements.subspan(cut), centres, first + left, parts - left, part_of);
}

} // namespace detail

// The part of each element.
[[nodiscard]] inline std::vector<std::uint32_t> bisected(const Mesh& mesh, std::uint32_t parts) {
  std::vector<Point> centres(mesh.elements.size());
  for (std::size_t at = 0; at < centres.size(); ++at)
    for (const auto node : mesh.elements[at])
      for (std::size_t i = 0; i < 3; ++i)
        centres[at][i] += mesh.points[node][i] / 8;
  std::vector<std::uint32_t> order(centres.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<std::uint32_t> part_of(centres.size());
  detail::bisect(order, centres, 0, parts, part_of);
  return part_of;
}

} // namespace seatrial::impact
