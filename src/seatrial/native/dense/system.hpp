// The linear system A x = b whose elements are made from a counter, so that any of them can be made
// anywhere and at any time: the check never reads what a solver may have changed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "matrix_product.hpp"
#include "team.hpp"

namespace seatrial::dense {

// Elements are uniform on [-1/2, 1/2), as HPL's. A dominant matrix has the sum of the other
// magnitudes of its row on the diagonal, as HPL-MxP's: it can be factored without pivoting.
class System {
public:
  System(Team& team, std::uint32_t n, bool is_dominant)
      : team_(team), n_(n), is_dominant_(is_dominant), diagonal_(is_dominant ? n : 1) {
    if (is_dominant)
      for_rows([this](std::size_t row) {
        double sum = 0;
        for (std::size_t column = 0; column < n_; ++column)
          sum += column == row ? 0 : std::fabs(random(row, column));
        diagonal_[row] = sum;
      });
  }

  [[nodiscard]] std::uint32_t n() const noexcept { return n_; }
  [[nodiscard]] bool is_dominant() const noexcept { return is_dominant_; }
  // Numbers that are counted for each row: its elements and the right-hand side.
  [[nodiscard]] std::uint64_t row_length() const noexcept { return std::uint64_t{n_} + 1; }
  [[nodiscard]] const std::vector<double>& diagonal() const noexcept { return diagonal_; }

  [[nodiscard]] double element(std::size_t row, std::size_t column) const noexcept {
    return is_dominant_ && row == column ? diagonal_[row] : random(row, column);
  }
  [[nodiscard]] double right_side(std::size_t row) const noexcept { return random(row, n_); }

  // HPL's norms are the largest magnitudes of a sum of a row, and of an element.
  struct Norms {
    double residual = 0; // of A x - b
    double matrix = 0;
    double right_side = 0;
  };

  // For the share of the rows that belongs to this rank of several; NaN where x is.
  [[nodiscard]] Norms norms(const std::vector<double>& x, std::size_t rank, std::size_t ranks) {
    std::vector<Norms> of_members(team_.size());
    const auto own = part_of(n_, rank, ranks);
    team_.run([&](std::size_t member) {
      const auto part = part_of(own.end - own.begin, member, team_.size());
      auto& found = of_members[member];
      for (std::size_t row = own.begin + part.begin; row < own.begin + part.end; ++row) {
        double product = 0;
        double magnitude = 0;
        for (std::size_t column = 0; column < n_; ++column) {
          const double a = element(row, column);
          product += a * x[column];
          magnitude += std::fabs(a);
        }
        const double b = right_side(row);
        found.residual = larger(found.residual, std::fabs(product - b));
        found.matrix = larger(found.matrix, magnitude);
        found.right_side = larger(found.right_side, std::fabs(b));
      }
    });
    Norms worst;
    for (const auto& found : of_members)
      worst = {.residual = larger(worst.residual, found.residual),
               .matrix = larger(worst.matrix, found.matrix),
               .right_side = larger(worst.right_side, found.right_side)};
    return worst;
  }

  // The larger of two numbers, or NaN if either is NaN.
  [[nodiscard]] static double larger(double a, double b) noexcept {
    return std::isnan(a) || a >= b ? a : b;
  }

  // ||A x - b|| / (eps (||A|| ||x|| + ||b||) n), with eps as in HPL: the distance of 1 to the next
  // number, halved since numbers are rounded (HPL_pdlamch).
  [[nodiscard]] static double scaled(const Norms& norms, double x_norm, std::size_t n) noexcept {
    constexpr double epsilon = std::numeric_limits<double>::epsilon() / 2;
    return norms.residual /
           (epsilon * (norms.matrix * x_norm + norms.right_side) * static_cast<double>(n));
  }

  [[nodiscard]] static double largest(const std::vector<double>& x) noexcept {
    double found = 0;
    for (const double value : x)
      found = larger(found, std::fabs(value));
    return found;
  }

private:
  [[nodiscard]] double random(std::size_t row, std::size_t column) const noexcept {
    return random_input<double>(row * row_length() + column);
  }

  template <class Visit>
  void for_rows(Visit visit) {
    team_.run([&](std::size_t member) {
      const auto part = part_of(n_, member, team_.size());
      for (std::size_t row = part.begin; row < part.end; ++row)
        visit(row);
    });
  }

  Team& team_;
  std::uint32_t n_;
  bool is_dominant_;
  std::vector<double> diagonal_;
};

} // namespace seatrial::dense
