// HPCG's tests of a solver (SAND2013-8752, section 3), for its own and for others.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "multigrid/part.hpp"

namespace seatrial::multigrid {

// Numbers in 0..1 by the global number of a row, so that they do not depend on how it is divided.
[[nodiscard]] inline std::vector<double> random_vector(const Part& part, std::uint64_t seed) {
  std::vector<double> found(part.rows());
  for (std::uint32_t row = 0; row < found.size(); ++row) {
    // SplitMix64 (G. L. Steele et al., "Fast Splittable Pseudorandom Number Generators", 2014).
    std::uint64_t bits =
        (part.global_of(row) + seed * 0x632be59bd9b4e019ULL) * 0x9e3779b97f4a7c15ULL;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
    found[row] = static_cast<double>((bits ^ (bits >> 31)) >> 11) * 0x1p-53;
  }
  return found;
}

[[nodiscard]] inline double dot(const std::vector<double>& x, const std::vector<double>& y) {
  long double sum = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    sum += static_cast<long double>(x[i]) * y[i];
  return static_cast<double>(sum);
}

// |x' B y - y' B x| over 2 |x| |A| |y| epsilon, with |A| = 52; `sum` adds up what all parts have.
// HPCG has the squares of |x| and |y| in its place, which only tells grossly wrong operators.
template <class Operator, class Sum>
[[nodiscard]] double asymmetry(const Part& part, Operator apply, Sum sum) {
  constexpr double norm = 2 * diagonal;
  const auto x = random_vector(part, 1);
  const auto y = random_vector(part, 2);
  const double difference = sum(dot(x, apply(y))) - sum(dot(y, apply(x)));
  const double size = std::sqrt(sum(dot(x, x))) * std::sqrt(sum(dot(y, y)));
  return std::abs(difference) / (2 * size * norm * std::numeric_limits<double>::epsilon());
}

// The largest difference over the largest element of the second; infinite if one is not a number.
// `largest` finds the largest value of all parts.
template <class Largest>
[[nodiscard]] double difference(const std::vector<double>& one, const std::vector<double>& other,
                                Largest largest) {
  double worst = 0;
  double size = 0;
  for (std::size_t i = 0; i < other.size(); ++i) {
    const double each = std::abs(one[i] - other[i]);
    worst = std::isnan(each) ? std::numeric_limits<double>::infinity() : std::max(worst, each);
    size = std::max(size, std::abs(other[i]));
  }
  return largest(worst) / largest(size);
}

// The factors of the diagonal with which the matrix has ten distinct eigenvalues, nearly: conjugate
// gradients then need at most 12 iterations, with the preconditioner at most 2.
[[nodiscard]] inline std::vector<double> exaggeration(const Part& part) {
  std::vector<double> factors(part.rows());
  for (std::uint32_t row = 0; row < factors.size(); ++row) {
    const auto global = part.global_of(row);
    factors[row] = global < 9 ? (static_cast<double>(global) + 2) * 1e6 : 1e6;
  }
  return factors;
}

inline constexpr std::size_t compared_iterations = 2; // with the definition
inline constexpr double spectral_tolerance = 1e-12;
inline constexpr std::size_t most_spectral_iterations = 50;
inline constexpr std::size_t reference_iterations = 50; // of a set
inline constexpr std::size_t most_iterations =
    200; // that may take as far; colours take less than 60

} // namespace seatrial::multigrid
