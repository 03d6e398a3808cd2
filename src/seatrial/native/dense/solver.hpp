// The factorisation of a matrix on a grid of devices, and solutions with its triangles.
//
// Right-looking: for each block column, the panel is factored on the host, rows are exchanged, the
// rows beside the diagonal block are solved, and the rest of the matrix is updated. With look-ahead
// the columns of the next panel are updated first, and that panel is copied, factored and sent
// while the devices update the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "dense/exchange.hpp"
#include "dense/grid.hpp"
#include "dense/host_panel.hpp"
#include "dense/phases.hpp"
#include "dense/system.hpp"
#include "dense/worker.hpp"
#include "device/device.hpp"
#include "team.hpp"

namespace seatrial::dense {

struct Options {
  bool looks_ahead;
  bool has_pivots;
  bool keeps_lower; // for solutions with the lower triangle
  bool is_optimised;
  BlasMaker blas;
};

template <class Real>
class Solver {
public:
  // `devices` are those of this rank's workers.
  Solver(Team& team, const std::vector<device::Device*>& devices, std::string_view kernels,
         const Grid& grid, const System& system, int rank, int ranks, const Options& options)
      : grid_(grid), options_(options), exchange_(grid, rank, ranks), host_(team),
        pitch_(Worker<Real>::panel_pitch(grid.block)),
        panel_(*devices[0], std::size_t{grid.n} * pitch_, device::Where::pinned),
        inverse_(*devices[0], std::size_t{grid.block} * pitch_, device::Where::pinned),
        diagonal_(grid.steps()), x_(grid.n) {
    for (std::uint32_t i = 0; i < exchange_.workers(); ++i) {
      auto& worker = *workers_.emplace_back(
          std::make_unique<Worker<Real>>(*devices[i], options.is_optimised, kernels, grid,
                                         exchange_.first_worker() + i, system, options.blas));
      if (grid.p > 1 && !packages_.contains(worker.column()))
        packages_.try_emplace(worker.column(), *devices[i],
                              std::size_t{2} * grid.block *
                                  std::max(grid.columns_of_worker(worker.column()), 1U),
                              device::Where::pinned);
    }
  }

  [[nodiscard]] PhaseClock& clock() noexcept { return clock_; }

  [[nodiscard]] double copied_B() const {
    double sum = 0;
    for (const auto& worker : workers_)
      sum += worker->copied_B();
    return sum;
  }

  // The matrix on the devices; what is left of an earlier run becomes NaN.
  void make() {
    constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
    std::fill_n(panel_.host(), panel_.size(), nan);
    std::fill_n(inverse_.host(), inverse_.size(), nan);
    for (auto& [column, package] : packages_)
      std::fill_n(package.host(), package.size(), nan);
    for (auto& block : diagonal_)
      std::ranges::fill(block, nan);
    for (auto& worker : workers_)
      worker->make();
  }

  void factor() {
    for (std::uint32_t number = 0; number < grid_.steps(); ++number) {
      const Step step(grid_, number);
      const PanelRows rows(grid_, step);
      if (number == 0) {
        pack_panel(step, rows);
        factor_panel(step, rows);
      }
      const RowMoves moves(grid_, step, rows, pivots_);
      write_factor(step, rows, moves);
      finish(Phase::update);
      exchange_rows(step, rows, moves);
      update(step);
    }
    finish(Phase::update);
  }

  // The right-hand side that was factored with the matrix, on all ranks.
  [[nodiscard]] std::vector<double> last_column() {
    clock_.enter(Phase::solve);
    std::vector<double> all(grid_.n);
    std::vector<Real> own;
    for (auto& worker : workers_)
      if (worker->column() == (grid_.columns - 1) / grid_.block % grid_.q) {
        own.resize(worker->rows());
        worker->read_last_column(own.data());
        for (std::uint32_t i = 0; i < worker->rows(); ++i)
          all[worker->global_row(i)] = static_cast<double>(own[i]);
      }
    exchange_.add_up(all);
    return all;
  }

  // The solution with a triangle, block by block, in place of the right-hand side; the lower one
  // has ones on its diagonal.
  void solve(bool is_upper, std::vector<double>& values) {
    clock_.enter(Phase::solve);
    for (auto& worker : workers_)
      worker->clear_sums();
    for (std::uint32_t i = 0; i < grid_.steps(); ++i) {
      const Step step(grid_, is_upper ? grid_.steps() - 1 - i : i);
      double* const block = values.data() + step.first;
      auto known = sums_of(step);
      exchange_.add_up(known);
      if (exchange_.rank() == exchange_.root(step))
        solve_block(is_upper, step, known, block);
      exchange_.share(step, block);
      std::transform(block, block + step.width(), x_.data() + step.first,
                     [](double value) { return static_cast<Real>(value); });
      for (auto& worker : workers_)
        if (worker->column() == step.column) {
          const auto first = is_upper ? 0 : grid_.rows_before(step.end, worker->row());
          const auto end = is_upper ? grid_.rows_before(step.first, worker->row()) : worker->rows();
          worker->add_products(step, x_.data() + step.first, first, end - first);
        }
    }
    for (auto& worker : workers_)
      worker->finish();
  }

  // A x with the matrix as it was made, in double precision, on all ranks.
  [[nodiscard]] std::vector<double> multiply_made(const std::vector<double>& x) {
    std::vector<double> all(grid_.n);
    std::vector<std::vector<double>> parts(workers_.size());
    for (std::size_t i = 0; i < workers_.size(); ++i)
      workers_[i]->multiply_made(x, parts[i]);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      workers_[i]->finish();
      for (std::uint32_t row = 0; row < workers_[i]->rows(); ++row)
        all[workers_[i]->global_row(row)] += parts[i][row];
    }
    exchange_.add_up(all);
    return all;
  }

private:
  void finish(Phase phase) {
    clock_.enter(phase);
    for (auto& worker : workers_)
      worker->finish();
  }

  void pack_panel(const Step& step, const PanelRows& rows) {
    for (auto& worker : workers_)
      if (worker->column() == step.column)
        worker->pack_panel(step, rows.local_begin(worker->row()));
  }

  // The packed panel, from the devices to a host, factored there, and on all hosts that need it.
  void factor_panel(const Step& step, const PanelRows& rows) {
    for (auto& worker : workers_)
      if (worker->column() == step.column)
        worker->await_panel();
    clock_.enter(Phase::copies);
    Real* const panel = panel_.host();
    for (auto& worker : workers_)
      if (worker->column() == step.column)
        worker->read_panel(step, rows.count(worker->row()),
                           panel + rows.begin(worker->row()) * pitch_);
    for (auto& worker : workers_)
      worker->finish_copies();
    clock_.enter(Phase::broadcast);
    exchange_.gather_panel(step, rows, panel, pitch_);
    clock_.enter(Phase::panel); // other ranks wait for it
    if (exchange_.rank() == exchange_.root(step)) {
      host_.factor(panel, rows.count(), step.width(), pitch_, options_.has_pivots, pivots_);
      host_.invert(panel, step.width(), pitch_, inverse_.host());
      keep_diagonal(step, panel);
    }
    exchange_.share_pivots(step, pivots_, inverse_.host(), step.width() * pitch_);
    clock_.enter(Phase::broadcast);
    exchange_.share_panel(step, rows, panel, pitch_);
  }

  void keep_diagonal(const Step& step, const Real* panel) {
    auto& block = diagonal_[step.number];
    block.resize(std::size_t{step.width()} * step.width());
    for (std::size_t row = 0; row < step.width(); ++row)
      std::copy_n(panel + row * pitch_, step.width(), block.data() + row * step.width());
  }

  void write_factor(const Step& step, const PanelRows& rows, const RowMoves& moves) {
    clock_.enter(Phase::copies);
    for (auto& worker : workers_)
      worker->write_factor(step, rows.count(worker->row()),
                           panel_.host() + rows.begin(worker->row()) * pitch_, inverse_.host(),
                           moves);
    for (auto& worker : workers_)
      worker->finish_copies();
  }

  void exchange_rows(const Step& step, const PanelRows& rows, const RowMoves& moves) {
    clock_.enter(Phase::swap);
    for (auto& worker : workers_) {
      if (options_.keeps_lower && worker->column() == step.column)
        worker->keep_panel(step, rows.local_begin(worker->row()));
      worker->pack_rows(step, moves);
    }
    if (grid_.p > 1)
      pass_rows(step, moves);
    for (auto& worker : workers_)
      worker->solve_rows(step, moves);
    for (auto& worker : workers_)
      worker->flush();
    finish(Phase::swap);
  }

  // Between the devices of each column of workers, through the hosts.
  void pass_rows(const Step& step, const RowMoves& moves) {
    finish(Phase::swap);
    clock_.enter(Phase::copies);
    for (auto& worker : workers_)
      worker->read_rows(step, moves, packages_.at(worker->column()).host());
    finish(Phase::copies);
    clock_.enter(Phase::broadcast);
    for (auto& [column, package] : packages_) {
      const auto begin = grid_.columns_before(step.end, column);
      exchange_.share_rows(column, moves, package.host(), grid_.columns_of_worker(column) - begin);
    }
    exchange_.finish();
    clock_.enter(Phase::copies);
    for (auto& worker : workers_)
      worker->write_rows(step, moves, packages_.at(worker->column()).host());
    finish(Phase::copies);
    clock_.enter(Phase::swap);
  }

  // The update of the rest of the matrix, and the next panel.
  void update(const Step& step) {
    clock_.enter(Phase::update);
    const bool has_next = step.number + 1 < grid_.steps();
    if (!has_next) {
      for (auto& worker : workers_)
        worker->update(step, worker->after(step));
      return;
    }
    const Step next(grid_, step.number + 1);
    const PanelRows next_rows(grid_, next);
    if (options_.looks_ahead) {
      for (auto& worker : workers_)
        if (worker->column() == next.column)
          worker->update(step, {worker->after(step).begin, next.width()});
      pack_panel(next, next_rows);
    }
    for (auto& worker : workers_) {
      auto columns = worker->after(step);
      if (options_.looks_ahead && worker->column() == next.column)
        columns = {columns.begin + next.width(), columns.count - next.width()};
      worker->update(step, columns);
      worker->flush();
    }
    if (!options_.looks_ahead)
      pack_panel(next, next_rows);
    factor_panel(next, next_rows);
  }

  // Of the rows of a step's diagonal block, over this rank's workers.
  [[nodiscard]] std::vector<double> sums_of(const Step& step) {
    std::vector<double> sums(step.width());
    std::vector<std::vector<Real>> parts(workers_.size());
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i]->row() == step.row) {
        parts[i].resize(step.width());
        workers_[i]->read_sums(grid_.rows_before(step.first, step.row), step.width(),
                               parts[i].data());
      }
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (!parts[i].empty()) {
        workers_[i]->finish();
        for (std::size_t j = 0; j < parts[i].size(); ++j)
          sums[j] += static_cast<double>(parts[i][j]);
      }
    return sums;
  }

  void solve_block(bool is_upper, const Step& step, const std::vector<double>& known,
                   double* values) const {
    const auto& block = diagonal_[step.number];
    const std::size_t width = step.width();
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t row = is_upper ? width - 1 - i : i;
      double value = values[row] - known[row];
      const std::size_t begin = is_upper ? row + 1 : 0;
      const std::size_t end = is_upper ? width : row;
      for (std::size_t column = begin; column < end; ++column)
        value -= static_cast<double>(block[row * width + column]) * values[column];
      values[row] = is_upper ? value / static_cast<double>(block[row * width + row]) : value;
    }
  }

  const Grid& grid_;
  Options options_;
  Exchange exchange_;
  HostPanel<Real> host_;
  std::size_t pitch_;
  Array<Real> panel_;   // of the current step, in the order of PanelRows
  Array<Real> inverse_; // of its triangle
  std::vector<std::uint32_t> pivots_;
  std::vector<std::vector<Real>> diagonal_;       // factored blocks that this rank has factored
  std::map<std::uint32_t, Array<Real>> packages_; // rows that move, by column of workers
  std::vector<std::unique_ptr<Worker<Real>>> workers_;
  std::vector<Real> x_;
  PhaseClock clock_;
};

} // namespace seatrial::dense
