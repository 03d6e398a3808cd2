// What the ranks of a dense solve send each other. Each rank has the same number of workers, with
// consecutive numbers.
//
// A panel is factored by the rank of its diagonal block: it gathers the panel's rows and sends each
// rank those of its rows of workers. Rows that move are exchanged in each column of workers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "dense/grid.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::dense {

class Exchange {
public:
  Exchange(const Grid& grid, int rank, int ranks)
      : grid_(grid), rank_(rank), ranks_(ranks),
        each_(grid.workers() / static_cast<std::uint32_t>(ranks)), ranks_of_row_(grid.p),
        ranks_of_column_(grid.q) {
    for (std::uint32_t worker = 0; worker < grid.workers(); ++worker) {
      ranks_of_row_[grid.row_of(worker)].insert(rank_of(worker));
      ranks_of_column_[grid.column_of(worker)].insert(rank_of(worker));
    }
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] bool is_alone() const noexcept { return ranks_ == 1; }
  [[nodiscard]] std::uint32_t first_worker() const noexcept {
    return static_cast<std::uint32_t>(rank_) * each_;
  }
  [[nodiscard]] std::uint32_t workers() const noexcept { return each_; }
  // The rank that factors the panel of a step.
  [[nodiscard]] int root(const Step& step) const noexcept {
    return rank_of(grid_.worker(step.row, step.column));
  }

  // The rows of the panel that other ranks have read from their devices, to the root. All ranks
  // have a buffer for the whole panel.
  template <class Real>
  void gather_panel(const Step& step, const PanelRows& rows, Real* panel, std::size_t pitch) {
    const int to = root(step);
    for (std::uint32_t row = 0; row < grid_.p; ++row) {
      const int from = rank_of(grid_.worker(row, step.column));
      Real* const part = panel + rows.begin(row) * pitch;
      const auto count = rows.count(row) * pitch;
      if (from == to || count == 0)
        continue;
      if (rank_ == to)
        receive(part, count, from, row);
      else if (rank_ == from)
        send(part, count, to, row);
    }
    finish();
  }

  // From the root to all: which rows are exchanged, and the inverse of the triangle.
  template <class Real>
  void share_pivots(const Step& step, std::vector<std::uint32_t>& pivots, Real* inverse,
                    std::size_t count) {
    if (is_alone())
      return;
    pivots.resize(step.width());
    MPI_Bcast(pivots.data(), static_cast<int>(pivots.size()), MPI_UINT32_T, root(step),
              MPI_COMM_WORLD);
    MPI_Bcast(inverse, static_cast<int>(count), type<Real>(), root(step), MPI_COMM_WORLD);
  }

  // The factored rows, from the root to the ranks that have workers in their row.
  template <class Real>
  void share_panel(const Step& step, const PanelRows& rows, Real* panel, std::size_t pitch) {
    const int from = root(step);
    for (std::uint32_t row = 0; row < grid_.p; ++row) {
      Real* const part = panel + rows.begin(row) * pitch;
      const auto count = rows.count(row) * pitch;
      if (count == 0)
        continue;
      if (rank_ != from) {
        if (ranks_of_row_[row].contains(rank_))
          receive(part, count, from, row);
        continue;
      }
      for (const int to : ranks_of_row_[row])
        if (to != from)
          send(part, count, to, row);
    }
    finish();
  }

  // The rows that move in a column of workers, to all ranks that have workers in it.
  template <class Real>
  void share_rows(std::uint32_t column, const RowMoves& moves, Real* package,
                  std::size_t row_length) {
    for (std::uint32_t row = 0; row < grid_.p; ++row) {
      const int from = rank_of(grid_.worker(row, column));
      Real* const part = package + moves.begins[row] * row_length;
      const auto count = (moves.begins[row + 1] - moves.begins[row]) * row_length;
      if (count == 0)
        continue;
      const auto tag = grid_.worker(row, column);
      if (from != rank_) {
        receive(part, count, from, tag);
        continue;
      }
      for (const int to : ranks_of_column_[column])
        if (to != rank_)
          send(part, count, to, tag);
    }
  }
  void finish() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }

  // The sums over ranks, on all of them.
  void add_up(std::vector<double>& values) const {
    if (!is_alone())
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE,
                    MPI_SUM, MPI_COMM_WORLD);
  }
  // From the root to all.
  void share(const Step& step, double* values) const {
    if (!is_alone())
      MPI_Bcast(values, static_cast<int>(step.width()), MPI_DOUBLE, root(step), MPI_COMM_WORLD);
  }

private:
  template <class Real>
  [[nodiscard]] static MPI_Datatype type() {
    return sizeof(Real) == sizeof(double) ? MPI_DOUBLE : MPI_FLOAT;
  }
  [[nodiscard]] int rank_of(std::uint32_t worker) const noexcept {
    return static_cast<int>(worker / each_);
  }
  template <class Real>
  void send(const Real* from, std::size_t count, int to, std::uint32_t tag) {
    MPI_Isend(from, static_cast<int>(count), type<Real>(), to, static_cast<int>(tag),
              MPI_COMM_WORLD, &requests_.emplace_back());
  }
  template <class Real>
  void receive(Real* to, std::size_t count, int from, std::uint32_t tag) {
    MPI_Irecv(to, static_cast<int>(count), type<Real>(), from, static_cast<int>(tag),
              MPI_COMM_WORLD, &requests_.emplace_back());
  }

  const Grid& grid_;
  int rank_;
  int ranks_;
  std::uint32_t each_;
  std::vector<std::set<int>> ranks_of_row_;
  std::vector<std::set<int>> ranks_of_column_;
  std::vector<MPI_Request> requests_;
};

} // namespace seatrial::dense
