// The preconditioned conjugate gradients of HPCG, with its count of operations. What a step does to
// the vectors is the system's.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

#include "multigrid/part.hpp"

namespace seatrial::multigrid {

struct Solution {
  std::size_t iterations = 0;
  double first_norm = 0; // of the residual, as the recurrence has it
  double last_norm = 0;

  [[nodiscard]] double reduction() const noexcept { return last_norm / first_norm; }
};

inline constexpr double same_residual = 1 + 1e-6; // HPCG's tolerance of the residual it must reach

// At most this many iterations, fewer if the residual falls to `tolerance` of the first one.
// Collective: all members run it, and all functions of `system` return the same sums to each:
//   begin                r = p = b - A x for x = 0; the square of the norm of r
//   precondition         z = M r; z' r        (copy: z = r)
//   turn(beta)           p = z + beta p
//   multiply             q = A p; p' q
//   advance(alpha)       x += alpha p, r -= alpha q; the square of the norm of r
template <class System>
[[nodiscard]] Solution conjugate_gradients(System& system, std::size_t most, double tolerance,
                                           bool is_preconditioned = true) {
  Solution found;
  found.first_norm = std::sqrt(system.begin());
  found.last_norm = found.first_norm;
  double rz = 0;
  while (found.iterations < most &&
         found.last_norm > tolerance * same_residual * found.first_norm) {
    const double previous = rz;
    rz = is_preconditioned ? system.precondition() : system.copy();
    system.turn(found.iterations == 0 ? 0 : rz / previous);
    const double alpha = rz / system.multiply();
    found.last_norm = std::sqrt(system.advance(alpha));
    ++found.iterations;
  }
  return found;
}

// The flop of `iterations` from x = 0 on, as HPCG counts them (ReportResults.cpp): 3 scalar
// products and 3 updates of vectors in each and one of both before; 2 for each nonzero that a
// product or half a smoothing reads, whatever a program saves of them.
struct Operations {
  Operations(const Extents& points, std::size_t iterations) {
    const auto n = static_cast<double>(iterations);
    double rows = 1;
    for (const auto length : points)
      rows *= length;
    vectors = 2 * (3 * n + 1) * 2 * rows;
    product = (n + 1) * 2 * nonzeros_of(points);
    Extents level = points;
    for (std::size_t i = 0; i < grids; ++i) {
      preconditioner += n * (i + 1 < grids ? 10 : 4) * nonzeros_of(level);
      for (auto& length : level)
        length /= 2;
    }
  }
  [[nodiscard]] double all() const noexcept { return vectors + product + preconditioner; }

  double vectors = 0;
  double product = 0;
  double preconditioner = 0;
};

} // namespace seatrial::multigrid
