// Matrix products: random input, and a check of the whole result in n^2 steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "pages.hpp"
#include "team.hpp"

namespace seatrial {

// A well-mixed 64-bit number for each index: the finaliser of SplitMix64 (G. L. Steele, D. Lea, C.
// H. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t index) noexcept {
  std::uint64_t z = (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Uniform on [-1/2, 1/2) with a full mantissa: zeros and round numbers would draw less power.
template <class Real>
[[nodiscard]] Real random_input(std::uint64_t index) noexcept {
  return static_cast<Real>(static_cast<double>(mixed(index) >> 11) * 0x1p-53 - 0.5);
}

// The random vector of the check: of either sign and never near zero, so that no column is
// overlooked, and of random magnitude, so that errors in one row do not cancel.
[[nodiscard]] inline long double probe_number(std::uint64_t index) noexcept {
  const auto bits = mixed(~index);
  const double size = 0.5 + static_cast<double>(bits >> 12) * 0x1p-53;
  return (bits & 1) != 0 ? size : -size;
}

// A square matrix stored by columns that are `lead` elements apart.
template <class Real>
struct MatrixView {
  [[nodiscard]] std::span<Real> column(std::size_t j) const noexcept {
    return {data + j * lead, n};
  }

  std::size_t n;
  std::size_t lead;
  Real* data;
};

// Padding keeps the columns of a power-of-two matrix from mapping to the same cache sets.
inline constexpr std::size_t matrix_padding = 16;

// Such a matrix in its own pages.
template <class Real>
struct Matrix {
  Matrix(std::size_t size, bool request_huge)
      : n(size), lead(size + matrix_padding), pages(n * lead * sizeof(Real), request_huge),
        data(reinterpret_cast<Real*>(pages.data())) {}

  [[nodiscard]] std::span<Real> column(std::size_t j) const noexcept { return view().column(j); }
  [[nodiscard]] MatrixView<Real> view() const noexcept { return {n, lead, data}; }

  const std::size_t n;
  const std::size_t lead;
  const Pages pages;
  Real* const data;
};

// A member's contiguous part of 0..n, split as evenly as possible.
struct Part {
  std::size_t begin;
  std::size_t end;
};

[[nodiscard]] constexpr Part part_of(std::size_t n, std::size_t member,
                                     std::size_t members) noexcept {
  return {n * member / members, n * (member + 1) / members};
}

// R. Freivalds, "Probabilistic machines can use less running time" (IFIP 1977): C = A B is checked
// in n^2 steps by C x = A (B x) for a random x. An element that is wrong by d moves its row of C x
// by at least |d| / 2. Everything here is computed in long double.
//
// Errors are given in units of n x eps x the magnitude of the exact value. Rounding errors of sums
// of n terms of random sign grow like sqrt(n) eps or slower (N. J. Higham, T. Mary, "Sharper
// probabilistic backward error analysis for basic linear algebra kernels with random data", SIAM J.
// Sci. Comput. 42, 2020), so a correct product is far below 1 in this unit.
template <class Real>
class ProductVerifier {
public:
  ProductVerifier(Team& team, const MatrixView<Real>& a, const MatrixView<Real>& b)
      : team_(team), a_(a), b_(b), x_(a.n), expected_(a.n), partial_(team.size()) {
    for (std::size_t j = 0; j < n(); ++j)
      x_[j] = probe_number(j);
    std::vector<long double> bx(n());
    multiply(b_, x_, bx);
    multiply(a_, bx, expected_);
    long double squares = 0;
    for (const auto value : expected_)
      squares += value * value;
    row_unit_ = unit() * std::sqrt(squares / static_cast<long double>(n()));
  }

  // The largest error of a row of C x, for C = `factor` A B; NaN if any element of C is NaN.
  [[nodiscard]] double row_error(const MatrixView<Real>& c, long double factor = 1) {
    std::vector<long double> cx(n());
    multiply(c, x_, cx);
    double worst = 0;
    for (std::size_t i = 0; i < n(); ++i)
      worst = larger(worst, std::fabs(cx[i] / factor - expected_[i]) / row_unit_);
    return worst;
  }

  // The largest error of the corners and some other elements, each against its own sum of n
  // products.
  [[nodiscard]] double element_error(const MatrixView<Real>& c, long double factor = 1) const {
    constexpr std::size_t picked = 60;
    double worst = 0;
    for (const std::size_t i : {std::size_t{0}, n() - 1})
      for (const std::size_t j : {std::size_t{0}, n() - 1})
        worst = larger(worst, error_of(c, i, j, factor));
    for (std::size_t k = 0; k < picked; ++k)
      worst = larger(worst, error_of(c, mixed(2 * k) % n(), mixed(2 * k + 1) % n(), factor));
    return worst;
  }

private:
  [[nodiscard]] std::size_t n() const noexcept { return a_.n; }

  [[nodiscard]] long double unit() const noexcept {
    return static_cast<long double>(n()) * std::numeric_limits<Real>::epsilon();
  }

  // The larger of two numbers, or NaN if either is NaN.
  [[nodiscard]] static double larger(double worst, long double value) noexcept {
    return std::isnan(worst) || static_cast<double>(value) <= worst ? worst
                                                                    : static_cast<double>(value);
  }

  // y <- M x, with the columns distributed over the team.
  void multiply(const MatrixView<Real>& m, const std::vector<long double>& x,
                std::vector<long double>& y) {
    team_.run([&](std::size_t member) {
      auto& sum = partial_[member];
      sum.assign(n(), 0);
      const auto [begin, end] = part_of(n(), member, team_.size());
      for (std::size_t j = begin; j < end; ++j) {
        const auto column = m.column(j);
        for (std::size_t i = 0; i < n(); ++i)
          sum[i] += x[j] * column[i];
      }
    });
    for (std::size_t i = 0; i < n(); ++i) {
      y[i] = 0;
      for (const auto& sum : partial_)
        y[i] += sum[i];
    }
  }

  [[nodiscard]] long double error_of(const MatrixView<Real>& c, std::size_t i, std::size_t j,
                                     long double factor) const {
    long double sum = 0, squares_a = 0, squares_b = 0;
    const auto b = b_.column(j);
    for (std::size_t k = 0; k < n(); ++k) {
      const long double left = a_.column(k)[i];
      sum += left * b[k];
      squares_a += left * left;
      squares_b += static_cast<long double>(b[k]) * b[k];
    }
    // The typical magnitude of a sum of n such products of random sign.
    const auto size = std::sqrt(squares_a * squares_b / static_cast<long double>(n()));
    return std::fabs(c.column(j)[i] / factor - sum) / (unit() * size);
  }

  Team& team_;
  MatrixView<Real> a_;
  MatrixView<Real> b_;
  std::vector<long double> x_;
  std::vector<long double> expected_; // A (B x)
  std::vector<std::vector<long double>> partial_;
  long double row_unit_ = 0;
};

} // namespace seatrial
