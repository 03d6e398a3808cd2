// A matrix in square blocks, dealt in turn to the P x Q workers of a grid (block-cyclic, as in
// ScaLAPACK and HPL), and the moves of its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace seatrial::dense {

// How many of the first `count` indices have the owner with this number, of `of` owners.
[[nodiscard]] constexpr std::uint32_t owned(std::uint32_t count, std::uint32_t block,
                                            std::uint32_t owner, std::uint32_t of) noexcept {
  const std::uint32_t whole = count / block;
  const std::uint32_t rest = whole % of;
  return whole / of * block + (owner < rest ? block : owner == rest ? count % block : 0);
}

struct Grid {
  std::uint32_t n;       // rows
  std::uint32_t columns; // n, or n + 1 with the right-hand side as the last column
  std::uint32_t block;
  std::uint32_t p; // rows of workers
  std::uint32_t q; // columns of workers

  [[nodiscard]] std::uint32_t workers() const noexcept { return p * q; }
  // Workers are numbered by rows of the grid.
  [[nodiscard]] std::uint32_t worker(std::uint32_t row, std::uint32_t column) const noexcept {
    return row * q + column;
  }
  [[nodiscard]] std::uint32_t row_of(std::uint32_t worker) const noexcept { return worker / q; }
  [[nodiscard]] std::uint32_t column_of(std::uint32_t worker) const noexcept { return worker % q; }

  // The rows, or columns, before a global index that a row, or column, of workers owns.
  [[nodiscard]] std::uint32_t rows_before(std::uint32_t index, std::uint32_t row) const noexcept {
    return owned(index, block, row, p);
  }
  [[nodiscard]] std::uint32_t columns_before(std::uint32_t index,
                                             std::uint32_t column) const noexcept {
    return owned(index, block, column, q);
  }
  [[nodiscard]] std::uint32_t rows(std::uint32_t row) const noexcept { return rows_before(n, row); }
  [[nodiscard]] std::uint32_t columns_of_worker(std::uint32_t column) const noexcept {
    return columns_before(columns, column);
  }

  [[nodiscard]] std::uint32_t steps() const noexcept { return (n + block - 1) / block; }
};

// One step of the factorisation: its panel has the columns `first` to `end`, and its diagonal block
// belongs to the worker in row `row` and column `column`.
struct Step {
  Step(const Grid& grid, std::uint32_t number)
      : number(number), first(number * grid.block), end(std::min(first + grid.block, grid.n)),
        row(number % grid.p), column(number % grid.q) {}

  [[nodiscard]] std::uint32_t width() const noexcept { return end - first; }

  std::uint32_t number;
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t row;
  std::uint32_t column;
};

// The rows of a panel in the order in which a host factors it: those of the diagonal block's row of
// workers first, then those of the next row of workers, and so on.
class PanelRows {
public:
  PanelRows(const Grid& grid, const Step& step) : grid_(grid), step_(step) {
    begins_.push_back(0);
    for (std::uint32_t turn = 0; turn < grid.p; ++turn) {
      const auto row = owner(turn);
      begins_.push_back(begins_.back() + grid.rows(row) - local_begin(row));
    }
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return begins_.back(); }
  [[nodiscard]] std::uint32_t begin(std::uint32_t row) const noexcept { return begins_[turn(row)]; }
  [[nodiscard]] std::uint32_t count(std::uint32_t row) const noexcept {
    return begins_[turn(row) + 1] - begins_[turn(row)];
  }
  // The first local row of a row of workers in this panel.
  [[nodiscard]] std::uint32_t local_begin(std::uint32_t row) const noexcept {
    return grid_.rows_before(step_.first, row);
  }
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t position) const noexcept {
    const auto after = std::ranges::upper_bound(begins_, position);
    return owner(static_cast<std::uint32_t>(after - begins_.begin()) - 1);
  }
  [[nodiscard]] std::uint32_t local_of(std::uint32_t position) const noexcept {
    const auto row = owner_of(position);
    return local_begin(row) + position - begin(row);
  }

private:
  [[nodiscard]] std::uint32_t owner(std::uint32_t turn) const noexcept {
    return (step_.row + turn) % grid_.p;
  }
  [[nodiscard]] std::uint32_t turn(std::uint32_t row) const noexcept {
    return (row + grid_.p - step_.row) % grid_.p;
  }

  const Grid& grid_;
  const Step step_;
  std::vector<std::uint32_t> begins_; // in the order of the panel
};

// What the row exchanges of a panel move. `pivots[j]` is the position that row j of the panel is
// exchanged with. Rows that move are packed by the row of workers that owns them, one after
// another; every list has positions in this package or local rows.
struct RowMoves {
  RowMoves(const Grid& grid, const Step& step, const PanelRows& rows,
           const std::vector<std::uint32_t>& pivots)
      : taken(grid.p), begins(grid.p + 1), put_to(grid.p), put_from(grid.p) {
    const auto width = step.width();
    std::vector<std::uint32_t> holds(rows.count()); // which row of before is at a position now
    std::iota(holds.begin(), holds.end(), 0U);
    for (std::uint32_t j = 0; j < width; ++j)
      std::swap(holds[j], holds[pivots[j]]);

    std::vector<std::uint32_t> moved(width); // the first rows, and those that take their positions
    std::iota(moved.begin(), moved.end(), 0U);
    for (std::uint32_t j = 0; j < width; ++j)
      if (holds[j] >= width)
        moved.push_back(holds[j]);
    std::vector<std::vector<std::uint32_t>> of_owner(grid.p);
    for (const auto position : moved)
      of_owner[rows.owner_of(position)].push_back(position);
    std::vector<std::uint32_t> packed_at(rows.count());
    std::uint32_t packed = 0;
    for (std::uint32_t row = 0; row < grid.p; ++row) {
      begins[row] = packed;
      for (const auto position : of_owner[row]) {
        packed_at[position] = packed++;
        taken[row].push_back(rows.local_of(position));
      }
    }
    begins[grid.p] = packed;
    for (std::uint32_t j = 0; j < width; ++j)
      top.push_back(packed_at[holds[j]]);
    for (const auto position : moved)
      if (position >= width) { // it holds one of the first rows now
        const auto row = rows.owner_of(position);
        put_to[row].push_back(rows.local_of(position));
        put_from[row].push_back(packed_at[holds[position]]);
      }
  }

  [[nodiscard]] std::uint32_t packed() const noexcept { return begins.back(); }

  std::vector<std::vector<std::uint32_t>> taken;    // by row of workers: local rows to pack
  std::vector<std::uint32_t> begins;                // and where they begin in the package
  std::vector<std::uint32_t> top;                   // the rows that become the first of the panel
  std::vector<std::vector<std::uint32_t>> put_to;   // by row of workers: local rows that get
  std::vector<std::vector<std::uint32_t>> put_from; // these of the package
};

} // namespace seatrial::dense
