// Where the time of a solver goes.
#pragma once

namespace seatrial::multigrid {

// Seconds of the first thread of a rank, or of a device; waiting for the others is included.
struct Phases {
  double product = 0;  // A p
  double smoother = 0; // symmetric Gauss-Seidel
  double transfer = 0; // restriction of the residual, and prolongation
  double vectors = 0;  // updates
  double reduce = 0;   // sums
  double halo = 0;     // exchange with the parts around
};

} // namespace seatrial::multigrid
