// The factorisation of a panel on the host: a tall matrix stored by rows, by the threads of a team.
//
// Recursive (S. Toledo, "Locality of reference in LU decomposition with partial pivoting", SIAM J.
// Matrix Anal. Appl. 18, 1997): the left half, its rows of the right one, a matrix product, and the
// right half. Each thread keeps the same rows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <sched.h>

#include "barrier.hpp"
#include "matrix_product.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace seatrial::dense {

// A barrier of threads whose CPUs may be taken by others, such as the threads of a device that is a
// CPU: who waits long gives up its turn.
class YieldingBarrier {
public:
  explicit YieldingBarrier(std::size_t members) noexcept : members_(members) {}

  void wait() noexcept {
    constexpr unsigned spins = 4096;
    const auto phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
      return;
    }
    for (unsigned looks = 0; phase_.load(std::memory_order_acquire) == phase; ++looks)
      looks < spins ? spin_pause() : static_cast<void>(sched_yield());
  }

private:
  const std::size_t members_;
  alignas(128) std::atomic<std::size_t> arrived_{0};
  alignas(128) std::atomic<unsigned> phase_{0};
};

template <class Real>
class HostPanel {
public:
  // Columns are padded to this many with zeros: a cache line.
  static constexpr std::size_t unit = 64 / sizeof(Real);

  explicit HostPanel(Team& team) : team_(team), barrier_(team.size()), candidates_(team.size()) {}

  // Factors the first `width` columns of `rows` rows that are `pitch` apart, a multiple of `unit`;
  // the numbers between them are zero. pivots[j] is the row that row j is exchanged with, all of
  // it; without `has_pivots` none is.
  void factor(Real* panel, std::size_t rows, std::size_t width, std::size_t pitch, bool has_pivots,
              std::vector<std::uint32_t>& pivots) {
    panel_ = panel;
    rows_ = rows;
    width_ = width;
    pitch_ = pitch;
    has_pivots_ = has_pivots;
    pivots.resize(width);
    pivots_ = pivots.data();
    team_.run([&](std::size_t member) {
      const auto part = part_of(rows, member, team_.size());
      factor(member, part, 0, width);
    });
  }

  // The inverse of the unit lower triangle in the first `width` rows, `pitch` apart as well.
  void invert(const Real* panel, std::size_t width, std::size_t pitch, Real* inverse) {
    team_.run([&](std::size_t member) {
      const auto lines = (pitch + unit - 1) / unit;
      const auto part = part_of(lines, member, team_.size());
      const auto begin = part.begin * unit;
      const auto end = std::min(part.end * unit, pitch);
      for (std::size_t row = 0; row < width; ++row) {
        Real* const own = inverse + row * pitch;
        for (std::size_t column = begin; column < end; ++column)
          own[column] = column == row ? 1 : 0;
        for (std::size_t k = begin; k < row; ++k) {
          const Real factor = panel[row * pitch + k];
          const Real* const other = inverse + k * pitch;
          for (std::size_t column = begin; column < end; ++column)
            own[column] -= factor * other[column];
        }
      }
    });
  }

private:
  static constexpr std::size_t narrow = 2 * unit; // columns that are factored one by one

  struct alignas(128) Candidate {
    Real size;
    std::size_t row;
  };

  [[nodiscard]] Real* row(std::size_t i) const noexcept { return panel_ + i * pitch_; }

  void factor(std::size_t member, Part part, std::size_t first, std::size_t end) {
    if (end - first <= narrow) {
      factor_columns(member, part, first, end);
      return;
    }
    const auto half = first + ((end - first) / 2 + unit - 1) / unit * unit;
    factor(member, part, first, half);
    barrier_.wait(); // the rows of the left half belong to several members
    solve_rows(member, first, half, end);
    barrier_.wait();
    subtract_product(std::max(part.begin, half), part.end, first, half, end);
    factor(member, part, half, end);
  }

  // Columns one by one: while a row is updated by one, its candidate for the next is seen.
  void factor_columns(std::size_t member, Part part, std::size_t first, std::size_t end) {
    auto& own = candidates_[member];
    own = {.size = -1, .row = first};
    for (std::size_t i = std::max(part.begin, first); i < part.end; ++i)
      consider(own, i, first);
    for (std::size_t j = first; j < end; ++j) {
      barrier_.wait(); // all candidates are known, all rows updated
      if (member == 0)
        exchange(j);
      barrier_.wait();
      own = {.size = -1, .row = j + 1};
      const Real* const top = row(j);
      const Real reciprocal = Real{1} / top[j];
      for (std::size_t i = std::max(part.begin, j + 1); i < part.end; ++i) {
        Real* const values = row(i);
        const Real factor = values[j] * reciprocal;
        values[j] = factor;
        for (std::size_t column = j + 1; column < end; ++column)
          values[column] -= factor * top[column];
        if (j + 1 < end)
          consider(own, i, j + 1);
      }
    }
  }

  void consider(Candidate& best, std::size_t i, std::size_t column) const noexcept {
    if (const Real size = std::fabs(row(i)[column]); size > best.size)
      best = {.size = size, .row = i};
  }

  void exchange(std::size_t j) {
    pivots_[j] = static_cast<std::uint32_t>(j);
    if (!has_pivots_)
      return;
    Candidate best = candidates_[0];
    for (const auto& other : candidates_)
      if (other.size > best.size)
        best = other;
    if (best.size < 0) // all are NaN
      return;
    pivots_[j] = static_cast<std::uint32_t>(best.row);
    if (best.row != j)
      std::swap_ranges(row(j), row(j) + pitch_, row(best.row));
  }

  // The rows of the right half beside the left one's triangle; each member has some columns.
  void solve_rows(std::size_t member, std::size_t first, std::size_t half, std::size_t end) const {
    const auto lines = (end - half + unit - 1) / unit;
    const auto part = part_of(lines, member, team_.size());
    const auto begin = half + part.begin * unit;
    const auto stop = std::min(half + part.end * unit, end);
    for (std::size_t i = first + 1; i < half; ++i)
      for (std::size_t k = first; k < i; ++k) {
        const Real factor = row(i)[k];
        const Real* const other = row(k);
        Real* const own = row(i);
        for (std::size_t column = begin; column < stop; ++column)
          own[column] -= factor * other[column];
      }
  }

  // Rows `begin` to `stop`: their columns [half, end) less the product of [first, half) with the
  // rows [first, half).
  void subtract_product(std::size_t begin, std::size_t stop, std::size_t first, std::size_t half,
                        std::size_t end) const {
    constexpr std::size_t height = 6;
    for (std::size_t column = half; column < end; column += unit) {
      std::size_t i = begin;
      for (; i + height <= stop; i += height)
        subtract_tile<height>(i, column, first, half);
      for (; i < stop; ++i)
        subtract_tile<1>(i, column, first, half);
    }
  }

  // A cache line of each of these rows; the padding after the last column is zero and stays so.
  template <std::size_t height>
  void subtract_tile(std::size_t i, std::size_t column, std::size_t first, std::size_t half) const {
    constexpr std::size_t vectors = unit / lanes<Real>;
    Vector<Real> sums[height][vectors] = {};
    for (std::size_t k = first; k < half; ++k) {
      Vector<Real> line[vectors];
      std::memcpy(line, row(k) + column, sizeof line);
      for (std::size_t r = 0; r < height; ++r) {
        const Real factor = row(i + r)[k];
        for (std::size_t v = 0; v < vectors; ++v)
          sums[r][v] += factor * line[v];
      }
    }
    for (std::size_t r = 0; r < height; ++r) {
      Vector<Real> line[vectors];
      std::memcpy(line, row(i + r) + column, sizeof line);
      for (std::size_t v = 0; v < vectors; ++v)
        line[v] -= sums[r][v];
      std::memcpy(row(i + r) + column, line, sizeof line);
    }
  }

  Team& team_;
  YieldingBarrier barrier_;
  std::vector<Candidate> candidates_;
  Real* panel_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t width_ = 0;
  std::size_t pitch_ = 0;
  bool has_pivots_ = true;
  std::uint32_t* pivots_ = nullptr;
};

} // namespace seatrial::dense
