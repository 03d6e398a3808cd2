// The solution to double precision with factors of a lower one, by iterative refinement (J. H.
// Wilkinson, "Rounding Errors in Algebraic Processes", 1963), as in HPL-MxP: each residual is
// computed in double precision with the matrix as it was made.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "dense/solver.hpp"
#include "dense/system.hpp"

namespace seatrial::dense {

struct Refined {
  std::vector<double> x;
  unsigned iterations = 0; // solutions with the factors, the first one included
  bool has_converged = false;
};

// Until the scaled residual, with the norms that a dominant matrix has by its making, is at most 1:
// a sixteenth of what the check allows.
template <class Real>
[[nodiscard]] Refined refined(Solver<Real>& solver, const System& system) {
  constexpr unsigned most = 50; // as in HPL-MxP
  const std::size_t n = system.n();
  Refined found{.x = std::vector<double>(n)};
  std::vector<double> right(n);
  for (std::size_t row = 0; row < n; ++row)
    right[row] = system.right_side(row);
  const System::Norms norms = {.matrix = 2 * System::largest(system.diagonal()),
                               .right_side = System::largest(right)};
  auto residual = right;
  while (found.iterations < most) {
    // The largest number is 1, so that none is too small for the precision of the factors.
    const double size = System::largest(residual);
    for (auto& value : residual)
      value /= size;
    solver.solve(false, residual);
    solver.solve(true, residual);
    for (std::size_t i = 0; i < n; ++i)
      found.x[i] += size * residual[i];
    ++found.iterations;
    residual = solver.multiply_made(found.x);
    for (std::size_t i = 0; i < n; ++i)
      residual[i] = right[i] - residual[i];
    auto now = norms;
    now.residual = System::largest(residual);
    const double scaled = System::scaled(now, System::largest(found.x), n);
    found.has_converged = scaled <= 1;
    if (found.has_converged || std::isnan(scaled))
      break;
  }
  return found;
}

} // namespace seatrial::dense
