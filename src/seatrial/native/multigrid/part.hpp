// The problem of HPCG: a 27-point stencil on a box of points, divided into equal parts.
//
// Facts by J. Dongarra, M. A. Heroux, P. Luszczek, "HPCG Benchmark: a New Metric for Ranking High
// Performance Computing Systems", 2015, and "HPCG Technical Specification", SAND2013-8752: 26 on
// the diagonal and -1 for each of up to 26 neighbours, a solution of ones, and parts that exchange
// a layer of points with the parts around them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "failure.hpp"

namespace seatrial::multigrid {

using Extents = std::array<std::uint32_t, 3>; // along x, y, z

inline constexpr std::uint32_t none = UINT32_MAX;
inline constexpr std::size_t grids = 4; // of the multigrid: the fine one and three coarse ones
inline constexpr double diagonal = 26;
inline constexpr double off_diagonal = -1;

// The factors of `count` whose box has the smallest surface, as the parts of a cube.
[[nodiscard]] inline Extents near_a_cube(std::uint32_t count) {
  Extents best{count, 1, 1};
  const auto surface = [](const Extents& e) {
    return std::uint64_t{e[0]} * e[1] + std::uint64_t{e[1]} * e[2] + std::uint64_t{e[0]} * e[2];
  };
  for (std::uint32_t z = 1; z <= count; ++z)
    for (std::uint32_t y = 1; count % z == 0 && y <= count / z; ++y)
      if (const Extents found{count / z / y, y, z};
          count / z % y == 0 && surface(found) < surface(best))
        best = found;
  return best;
}

// Refuses what HPCG refuses, and what the numbering of points does not hold.
inline void require_a_size(const Extents& local) {
  const auto text = std::to_string(local[0]) + " x " + std::to_string(local[1]) + " x " +
                    std::to_string(local[2]);
  for (const auto length : local)
    if (length < 16 || length % (1U << (grids - 1)) != 0)
      throw Failure(Exit::usage,
                    "--grid " + text +
                        ": each length must be a multiple of 8, at least 16, since the "
                        "grid is halved three times");
  const auto [least, most] = std::ranges::minmax(local);
  if (std::uint64_t{least} * 8 < most)
    throw Failure(Exit::usage,
                  "--grid " + text + ": the shortest length must be at least 1/8 of the longest");
  if ((std::uint64_t{local[0]} + 2) * (std::uint64_t{local[1]} + 2) *
          (std::uint64_t{local[2]} + 2) >=
      1U << 31)
    throw Failure(Exit::usage, "--grid " + text + ": a part must have fewer than 2^31 points");
}

// Of the whole matrix: each direction has 3 n - 2 pairs of neighbours that are in the grid.
[[nodiscard]] inline double nonzeros_of(const Extents& points) {
  double product = 1;
  for (const auto length : points)
    product *= 3.0 * length - 2;
  return product;
}

// A part that this one exchanges points with. What it sends arrives in `count` columns from
// `first_column` on; `sent` are the rows that it gets, in the order in which it numbers them.
struct Neighbour {
  std::uint32_t part;
  std::uint32_t first_column;
  std::uint32_t count;
  std::vector<std::uint32_t> sent;
};

// One part. Its rows are numbered along x, then y, then z; columns from `rows()` on are points of
// other parts.
class Part {
public:
  Part(const Extents& local, const Extents& parts, std::uint32_t number)
      : local_(local), parts_(parts),
        number_(number), at_{number % parts[0], number / parts[0] % parts[1],
                             number / parts[0] / parts[1]} {
    std::uint32_t column = rows();
    for (std::size_t side = 0; side < sides; ++side) {
      first_columns_[side] = none;
      const auto other = part_on(side);
      if (side == sides / 2 || other == none)
        continue;
      first_columns_[side] = column;
      Neighbour neighbour{.part = other, .first_column = column, .count = 0, .sent = {}};
      Extents from{};
      Extents to = local_;
      for (std::size_t k = 0; k < 3; ++k)
        if (const int step = steps_of(side)[k]; step != 0) {
          from[k] = step < 0 ? 0 : local_[k] - 1;
          to[k] = from[k] + 1;
        }
      for (auto z = from[2]; z < to[2]; ++z)
        for (auto y = from[1]; y < to[1]; ++y)
          for (auto x = from[0]; x < to[0]; ++x)
            neighbour.sent.push_back(row_of(x, y, z));
      neighbour.count = static_cast<std::uint32_t>(neighbour.sent.size());
      column += neighbour.count;
      neighbours_.push_back(std::move(neighbour));
    }
    columns_ = column;
  }

  [[nodiscard]] const Extents& local() const noexcept { return local_; }
  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] std::uint32_t rows() const noexcept { return local_[0] * local_[1] * local_[2]; }
  [[nodiscard]] std::uint32_t columns() const noexcept {
    return columns_;
  } // rows and others' points
  [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }
  [[nodiscard]] Extents points() const noexcept { // of all parts
    return {local_[0] * parts_[0], local_[1] * parts_[1], local_[2] * parts_[2]};
  }

  [[nodiscard]] std::uint32_t row_of(std::uint32_t x, std::uint32_t y,
                                     std::uint32_t z) const noexcept {
    return (z * local_[1] + y) * local_[0] + x;
  }
  [[nodiscard]] Extents point_of(std::uint32_t row) const noexcept {
    return {row % local_[0], row / local_[0] % local_[1], row / local_[0] / local_[1]};
  }
  // The number of a row in the whole matrix, which does not depend on how it is divided.
  [[nodiscard]] std::uint64_t global_of(std::uint32_t row) const noexcept {
    const auto point = point_of(row);
    std::uint64_t global = 0;
    for (std::size_t k = 3; k-- > 0;)
      global = global * local_[k] * parts_[k] + std::uint64_t{at_[k]} * local_[k] + point[k];
    return global;
  }

  // Calls action(column) for each nonzero of a row, itself among them, in a fixed order.
  template <class Action>
  void for_each_column(std::uint32_t row, Action action) const {
    const auto p = point_of(row);
    const bool is_inside = p[0] > 0 && p[0] + 1 < local_[0] && p[1] > 0 && p[1] + 1 < local_[1] &&
                           p[2] > 0 && p[2] + 1 < local_[2];
    for (int dz = -1; dz <= 1; ++dz)
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          const auto column =
              is_inside ? row + static_cast<std::uint32_t>((dz * static_cast<int>(local_[1]) + dy) *
                                                               static_cast<int>(local_[0]) +
                                                           dx)
                        : column_at({static_cast<int>(p[0]) + dx, static_cast<int>(p[1]) + dy,
                                     static_cast<int>(p[2]) + dz});
          if (column != none)
            action(column);
        }
  }

  [[nodiscard]] Part coarse() const {
    return {{local_[0] / 2, local_[1] / 2, local_[2] / 2}, parts_, number_};
  }
  // The row of this part at the same place as a row of its coarse part.
  [[nodiscard]] std::uint32_t fine_row_of(std::uint32_t coarse_row) const noexcept {
    const auto x = coarse_row % (local_[0] / 2);
    const auto y = coarse_row / (local_[0] / 2) % (local_[1] / 2);
    const auto z = coarse_row / (local_[0] / 2) / (local_[1] / 2);
    return row_of(2 * x, 2 * y, 2 * z);
  }
  [[nodiscard]] bool is_coarse(std::uint32_t row) const noexcept {
    const auto point = point_of(row);
    return (point[0] | point[1] | point[2]) % 2 == 0;
  }

private:
  static constexpr std::size_t sides = 27;

  [[nodiscard]] static std::array<int, 3> steps_of(std::size_t side) noexcept {
    return {static_cast<int>(side % 3) - 1, static_cast<int>(side / 3 % 3) - 1,
            static_cast<int>(side / 9) - 1};
  }

  [[nodiscard]] std::uint32_t part_on(std::size_t side) const noexcept {
    Extents at{};
    for (std::size_t k = 0; k < 3; ++k) {
      const int moved = static_cast<int>(at_[k]) + steps_of(side)[k];
      if (moved < 0 || moved >= static_cast<int>(parts_[k]))
        return none;
      at[k] = static_cast<std::uint32_t>(moved);
    }
    return (at[2] * parts_[1] + at[1]) * parts_[0] + at[0];
  }

  // Of a point at most one step outside of this part; none: no part has it.
  [[nodiscard]] std::uint32_t column_at(const std::array<int, 3>& point) const noexcept {
    std::size_t side = 0;
    std::array<std::uint32_t, 3> within{};
    std::array<std::uint32_t, 3> length{};
    for (std::size_t k = 3; k-- > 0;) {
      const bool is_before = point[k] < 0;
      const bool is_after = point[k] >= static_cast<int>(local_[k]);
      side = side * 3 + (is_before ? 0U : is_after ? 2U : 1U);
      within[k] = is_before || is_after ? 0 : static_cast<std::uint32_t>(point[k]);
      length[k] = is_before || is_after ? 1 : local_[k];
    }
    const auto inside = (within[2] * length[1] + within[1]) * length[0] + within[0];
    if (side == sides / 2)
      return inside;
    return first_columns_[side] == none ? none : first_columns_[side] + inside;
  }

  Extents local_;
  Extents parts_;
  std::uint32_t number_;
  Extents at_; // of this part among the parts
  std::uint32_t columns_ = 0;
  std::vector<Neighbour> neighbours_;
  std::array<std::uint32_t, sides> first_columns_{};
};

// The fine part and its coarse ones.
[[nodiscard]] inline std::vector<Part> hierarchy(const Part& fine) {
  std::vector<Part> parts{fine};
  while (parts.size() < grids)
    parts.push_back(parts.back().coarse());
  return parts;
}

} // namespace seatrial::multigrid
