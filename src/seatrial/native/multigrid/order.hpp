// The order in which Gauss-Seidel visits the rows: stages, one after another, of rows that do not
// depend on each other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "multigrid/part.hpp"

namespace seatrial::multigrid {

// levels: the same results as row after row, as in HPCG's reference. colours: few stages, each of
// many rows, but another preconditioner.
enum class Ordering { levels, colours };

// Rows by position. A stage begins at a multiple of the width; what it has left over is padding.
struct Order {
  std::vector<std::uint32_t> rows;      // of each position; none: padding
  std::vector<std::uint32_t> positions; // of each row
  std::vector<std::uint32_t> stages;    // first position of each, and the end
};

namespace detail {

// The stage of each row: one after those of the rows before it that it depends on.
[[nodiscard]] inline std::vector<std::uint32_t> levels_of(const Part& part) {
  std::vector<std::uint32_t> stages(part.rows());
  for (std::uint32_t row = 0; row < part.rows(); ++row) {
    std::uint32_t stage = 0;
    part.for_each_column(row, [&](std::uint32_t column) {
      if (column < row)
        stage = std::max(stage, stages[column] + 1);
    });
    stages[row] = stage;
  }
  return stages;
}

// The first colour that no neighbour has. The colour of the points that are on the coarse grid,
// which is the first here, comes last: in a symmetric sweep the first stage is also the last one,
// and would leave no residual for the coarse grid.
[[nodiscard]] inline std::vector<std::uint32_t> colours_of(const Part& part) {
  std::vector<std::uint32_t> stages(part.rows(), none);
  std::uint32_t most = 0;
  for (std::uint32_t row = 0; row < part.rows(); ++row) {
    std::uint32_t taken = 0;
    part.for_each_column(row, [&](std::uint32_t column) {
      if (column < part.rows() && stages[column] != none)
        taken |= 1U << stages[column];
    });
    stages[row] = static_cast<std::uint32_t>(std::countr_one(taken));
    most = std::max(most, stages[row]);
  }
  for (auto& stage : stages)
    stage = (stage + most) % (most + 1);
  return stages;
}

} // namespace detail

// Within a stage the rows that are on the coarse grid come first.
[[nodiscard]] inline Order ordered(const Part& part, Ordering ordering, std::uint32_t width) {
  const auto stage_of =
      ordering == Ordering::levels ? detail::levels_of(part) : detail::colours_of(part);
  const auto stages = std::ranges::max(stage_of) + 1;
  std::vector<std::uint32_t> count(2 * std::size_t{stages}); // of each stage: coarse ones, others
  for (std::uint32_t row = 0; row < part.rows(); ++row)
    ++count[2 * stage_of[row] + (part.is_coarse(row) ? 0 : 1)];
  Order order;
  std::uint32_t at = 0;
  for (std::uint32_t stage = 0; stage < stages; ++stage) {
    order.stages.push_back(at);
    const auto coarse = std::exchange(count[2 * stage], at);
    const auto others = std::exchange(count[2 * stage + 1], at + coarse);
    at += (coarse + others + width - 1) / width * width;
  }
  order.stages.push_back(at);
  order.rows.assign(at, none);
  order.positions.resize(part.rows());
  for (std::uint32_t row = 0; row < part.rows(); ++row) {
    const auto position = count[2 * stage_of[row] + (part.is_coarse(row) ? 0 : 1)]++;
    order.rows[position] = row;
    order.positions[row] = position;
  }
  return order;
}

} // namespace seatrial::multigrid
