// HPCG's multigrid preconditioner written out from its definition, row after row and without a
// stored matrix: what the optimised ones are checked against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "multigrid/order.hpp"
#include "multigrid/part.hpp"

namespace seatrial::multigrid {

// Vectors have the rows of a part by number, and where they are multiplied the other columns.
class Reference {
public:
  // Gets the other columns of x from their parts; collective over all parts.
  using Exchange = std::function<void(std::size_t level, std::vector<double>& x)>;

  Reference(const std::vector<Part>& parts, const std::vector<Order>& orders, Exchange exchange)
      : parts_(parts), orders_(orders), exchange_(std::move(exchange)) {}

  // A x.
  [[nodiscard]] std::vector<double> product(std::vector<double> x) const {
    x.resize(parts_[0].columns());
    exchange_(0, x);
    std::vector<double> y(parts_[0].rows());
    for (std::uint32_t row = 0; row < y.size(); ++row)
      y[row] = row_times(parts_[0], row, x);
    return y;
  }

  // One V-cycle for A x = r.
  [[nodiscard]] std::vector<double> precondition(const std::vector<double>& r,
                                                 std::size_t level = 0) const {
    const auto& part = parts_[level];
    std::vector<double> x(part.columns());
    smooth(level, r, x);
    if (level + 1 == parts_.size()) {
      x.resize(part.rows());
      return x;
    }
    exchange_(level, x);
    std::vector<double> coarse(parts_[level + 1].rows());
    for (std::uint32_t row = 0; row < coarse.size(); ++row) {
      const auto fine = part.fine_row_of(row);
      coarse[row] = r[fine] - row_times(part, fine, x);
    }
    const auto correction = precondition(coarse, level + 1);
    for (std::uint32_t row = 0; row < coarse.size(); ++row)
      x[part.fine_row_of(row)] += correction[row];
    smooth(level, r, x);
    x.resize(part.rows());
    return x;
  }

  // The square of the norm of the residual over that of b after some iterations of preconditioned
  // conjugate gradients from x = 0. `sum_of(x, y)` is the scalar product over all parts.
  template <class SumOf>
  [[nodiscard]] double reduction(const std::vector<double>& b, std::size_t iterations,
                                 SumOf sum_of) const {
    auto r = b;
    std::vector<double> p(b.size());
    double before = 1;
    for (std::size_t i = 0; i < iterations; ++i) {
      const auto z = precondition(r);
      const double now = sum_of(z, r);
      for (std::size_t row = 0; row < p.size(); ++row)
        p[row] = z[row] + (i == 0 ? 0 : now / before) * p[row];
      before = now;
      const auto q = product(p);
      const double step = now / sum_of(p, q);
      for (std::size_t row = 0; row < r.size(); ++row)
        r[row] -= step * q[row];
    }
    return sum_of(r, r) / sum_of(b, b);
  }

private:
  [[nodiscard]] static double row_times(const Part& part, std::uint32_t row,
                                        const std::vector<double>& x) {
    double sum = 0;
    part.for_each_column(row, [&](std::uint32_t column) {
      sum += (column == row ? diagonal : off_diagonal) * x[column];
    });
    return sum;
  }

  // A forward and a backward sweep of Gauss-Seidel; the columns of other parts keep their values.
  void smooth(std::size_t level, const std::vector<double>& r, std::vector<double>& x) const {
    exchange_(level, x);
    const auto update = [&](std::uint32_t row) {
      if (row != none)
        x[row] += (r[row] - row_times(parts_[level], row, x)) / diagonal;
    };
    const auto& rows = orders_[level].rows;
    for (const auto row : rows)
      update(row);
    for (auto at = rows.rbegin(); at != rows.rend(); ++at)
      update(*at);
  }

  const std::vector<Part>& parts_;
  const std::vector<Order>& orders_;
  Exchange exchange_;
};

// The right-hand side that a solution of ones has.
[[nodiscard]] inline std::vector<double> right_hand_side(const Part& part) {
  std::vector<double> b(part.rows());
  for (std::uint32_t row = 0; row < b.size(); ++row)
    part.for_each_column(
        row, [&](std::uint32_t column) { b[row] += column == row ? diagonal : off_diagonal; });
  return b;
}

} // namespace seatrial::multigrid
