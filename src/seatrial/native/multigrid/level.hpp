// One grid of the multigrid on a processor: its matrix by slices, and the sweeps over it.
//
// A row of stage s has its nonzeros in three parts: those in stages before (L), in other parts of
// the grid (H), and in later stages (U); D is the diagonal. With t = r - L x - H x as the forward
// sweep has found it, the backward sweep solves D x + U x = t, since what it would read of L and H
// has not changed. The residual after it is r - t - L x - H x. So a symmetric sweep reads all
// nonzeros once and U again, and from x = 0 each nonzero once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "multigrid/order.hpp"
#include "multigrid/part.hpp"
#include "multigrid/slices.hpp"
#include "team.hpp"

namespace seatrial::multigrid {

struct Range {
  std::size_t begin;
  std::size_t end;
};

class Level {
public:
  // `exaggeration`, if not empty: factors of the diagonal of each row. Collective in `team`.
  Level(const Part& part, const Order& order, Team& team, bool is_coarsest)
      : order_(order), stages_(order.stages.size() - 1), members_(team.size()),
        barrier_(team.barrier()), padding_(order.rows.size()),
        columns_(padding_ + part.columns() - part.rows()), r(padding_), x(columns_), t_(padding_),
        diagonal_(padding_), inverse_(padding_) {
    std::vector<std::uint32_t> starts[3];
    for (auto& each : starts)
      each.resize(padding_ / width + 1);
    team.run([&](std::size_t member) {
      for_each_slice(member, [&](std::size_t slice) {
        std::uint32_t most[3] = {};
        for (std::size_t lane = 0; lane < width; ++lane) {
          std::uint32_t count[3] = {};
          for_each_nonzero(part, slice * width + lane,
                           [&](std::size_t kind, std::uint32_t) { ++count[kind]; });
          for (std::size_t kind = 0; kind < 3; ++kind)
            most[kind] = std::max(most[kind], count[kind]);
        }
        for (std::size_t kind = 0; kind < 3; ++kind)
          starts[kind][slice + 1] = most[kind];
      });
    });
    for (auto& each : starts)
      for (std::size_t slice = 1; slice < each.size(); ++slice)
        each[slice] += each[slice - 1];
    lower_.emplace(std::move(starts[0]));
    outer_.emplace(std::move(starts[1]));
    upper_.emplace(std::move(starts[2]));
    if (!is_coarsest)
      coarse_.assign(padding_, none);
    team.run([&](std::size_t member) {
      for_each_slice(member, [&](std::size_t slice) { fill(part, slice); });
    });
    for (std::size_t at = padding_; at < columns_; ++at)
      x[at] = 0;
  }

  // The coarse positions of the rows that the restriction takes.
  void connect(const Part& part, const Part& coarse, const Order& coarse_order) {
    for (std::uint32_t row = 0; row < coarse.rows(); ++row)
      coarse_[order_.positions[part.fine_row_of(row)]] = coarse_order.positions[row];
  }

  // Restores the diagonal, or multiplies it by the factors of each row.
  void set_diagonal(std::span<const double> factors) {
    for (std::size_t at = 0; at < padding_; ++at) {
      const auto row = order_.rows[at];
      diagonal_[at] = diagonal * (factors.empty() || row == none ? 1 : factors[row]);
      inverse_[at] = 1 / diagonal_[at];
    }
  }

  // The following are collective over the members of the team, between barriers.

  // x = what a forward sweep makes of x = 0.
  void forward_from_zero(std::size_t member) noexcept {
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      for_slices_of(stage, member, [&](std::size_t slice) {
        const auto at = slice * width;
        const auto sum = load(r.data() + at) - lower_->times(slice, x.data());
        store(t_.data() + at, sum);
        store(x.data() + at, sum * load(inverse_.data() + at));
      });
      wait();
    }
  }

  void forward(std::size_t member) noexcept {
    for (std::size_t stage = 0; stage < stages_; ++stage) {
      for_slices_of(stage, member, [&](std::size_t slice) {
        const auto at = slice * width;
        const auto sum =
            load(r.data() + at) - lower_->times(slice, x.data()) - outer_->times(slice, x.data());
        store(t_.data() + at, sum);
        store(x.data() + at, (sum - upper_->times(slice, x.data())) * load(inverse_.data() + at));
      });
      wait();
    }
  }

  // After a forward sweep; returns this member's part of x' r.
  double backward(std::size_t member) noexcept {
    Vector<double> products{};
    for (std::size_t stage = stages_; stage-- > 0;) {
      // Upwards, as memory is read ahead: rows of a stage do not depend on each other.
      for_slices_of(stage, member, [&](std::size_t slice) {
        const auto at = slice * width;
        const auto solved =
            (load(t_.data() + at) - upper_->times(slice, x.data())) * load(inverse_.data() + at);
        store(x.data() + at, solved);
        products = multiply_add(solved, load(r.data() + at), products);
      });
      wait();
    }
    return total(products);
  }

  // The right-hand side of the coarse grid: the residual at its points after a symmetric sweep.
  void restrict_to(const Level& coarse, std::size_t member) const noexcept {
    for_each_slice(member, [&](std::size_t slice) {
      const auto at = slice * width;
      if (coarse_[at] == none) // the rows of a stage that are on the coarse grid come first
        return;
      const auto residual = load(r.data() + at) - load(t_.data() + at) -
                            lower_->times(slice, x.data()) - outer_->times(slice, x.data());
      for (std::size_t lane = 0; lane < width; ++lane)
        if (coarse_[at + lane] != none)
          coarse.r[coarse_[at + lane]] = residual[lane];
    });
  }

  void add_from(const Level& coarse, std::size_t member) noexcept {
    for_each_slice(member, [&](std::size_t slice) {
      const auto at = slice * width;
      for (std::size_t lane = 0; lane < width && coarse_[at + lane] != none; ++lane)
        x[at + lane] += coarse.x[coarse_[at + lane]];
    });
  }

  // y = A x for a vector with all columns; returns this member's part of x' y.
  double multiply(const double* from, double* to, std::size_t member) const noexcept {
    Vector<double> products{};
    for_each_slice(member, [&](std::size_t slice) {
      const auto at = slice * width;
      const auto own = load(from + at);
      const auto sum = multiply_add(own, load(diagonal_.data() + at), lower_->times(slice, from)) +
                       outer_->times(slice, from) + upper_->times(slice, from);
      store(to + at, sum);
      products = multiply_add(own, sum, products);
    });
    return total(products);
  }

  // Calls action(at) for each vector of this member.
  template <class Action>
  void for_each_vector(std::size_t member, Action action) const {
    for_each_slice(member, [&](std::size_t slice) { action(slice * width); });
  }

  [[nodiscard]] static double total(Vector<double> sums) noexcept {
    double all = 0;
    for (std::size_t lane = 0; lane < width; ++lane)
      all += sums[lane];
    return all;
  }

  [[nodiscard]] const Order& order() const noexcept { return order_; }
  [[nodiscard]] std::size_t size() const noexcept { return padding_; } // positions
  [[nodiscard]] std::size_t columns() const noexcept {
    return columns_;
  } // positions and others' points

  // Bytes that must move once for each call, if vectors stay in no cache from call to call.
  [[nodiscard]] double matrix_B() const noexcept {
    return lower_->bytes() + outer_->bytes() + upper_->bytes();
  }
  [[nodiscard]] double vector_B() const noexcept { return static_cast<double>(padding_) * 8; }
  [[nodiscard]] double forward_from_zero_B() const noexcept {
    return lower_->bytes() + 4 * vector_B();
  }
  [[nodiscard]] double forward_B() const noexcept { return matrix_B() + 5 * vector_B(); }
  [[nodiscard]] double backward_B() const noexcept { return upper_->bytes() + 4 * vector_B(); }
  [[nodiscard]] double product_B() const noexcept { return matrix_B() + 3 * vector_B(); }
  [[nodiscard]] double transfer_B() const noexcept { // restriction and prolongation
    double bytes = vector_B();                       // the positions on the coarse grid, twice
    for (std::size_t slice = 0; slice < padding_ / width; ++slice)
      if (coarse_[slice * width] != none)
        bytes += lower_->bytes_of(slice) + outer_->bytes_of(slice) + 8 * 8 * width;
    return bytes;
  }

private:
  // Calls action(slice) for each slice of this member.
  template <class Action>
  void for_each_slice(std::size_t member, Action action) const {
    for (std::size_t stage = 0; stage < stages_; ++stage)
      for_slices_of(stage, member, action);
  }
  template <class Action>
  void for_slices_of(std::size_t stage, std::size_t member, Action action) const {
    const auto range = slices_of(stage, member);
    for (std::size_t slice = range.begin; slice < range.end; ++slice)
      action(slice);
  }
  [[nodiscard]] Range slices_of(std::size_t stage, std::size_t member) const noexcept {
    const std::size_t first = order_.stages[stage] / width;
    const std::size_t count = order_.stages[stage + 1] / width - first;
    return {first + count * member / members_, first + count * (member + 1) / members_};
  }

  void wait() noexcept {
    if (members_ > 1)
      barrier_.wait();
  }

  // Calls action(kind, column) for each nonzero but the diagonal: 0 L, 1 H, 2 U.
  template <class Action>
  void for_each_nonzero(const Part& part, std::size_t position, Action action) const {
    const auto row = order_.rows[position];
    if (row == none)
      return;
    part.for_each_column(row, [&](std::uint32_t column) {
      if (column >= part.rows())
        action(std::size_t{1}, static_cast<std::uint32_t>(padding_) + column - part.rows());
      else if (column != row) {
        const auto other = order_.positions[column];
        action(other < position ? std::size_t{0} : std::size_t{2}, other);
      }
    });
  }

  void fill(const Part& part, std::size_t slice) {
    Slices* const kinds[3] = {&*lower_, &*outer_, &*upper_};
    for (auto* kind : kinds)
      kind->clear(slice);
    for (std::size_t lane = 0; lane < width; ++lane) {
      const auto at = slice * width + lane;
      std::size_t count[3] = {};
      for_each_nonzero(part, at, [&](std::size_t kind, std::uint32_t column) {
        kinds[kind]->set(slice, lane, count[kind]++, off_diagonal, column);
      });
      diagonal_[at] = diagonal;
      inverse_[at] = 1 / diagonal;
      r[at] = x[at] = t_[at] = 0;
    }
  }

  const Order& order_;
  std::size_t stages_;
  std::size_t members_;
  SpinBarrier& barrier_;
  std::size_t padding_; // positions, with those that no row has
  std::size_t columns_;

public:
  Untouched<double> r; // by position
  Untouched<double> x; // by column

private:
  Untouched<double> t_;
  Untouched<double> diagonal_;
  Untouched<double> inverse_;
  std::optional<Slices> lower_;
  std::optional<Slices> outer_;
  std::optional<Slices> upper_;
  std::vector<std::uint32_t> coarse_; // position on the coarse grid; none: not on it
};

} // namespace seatrial::multigrid
