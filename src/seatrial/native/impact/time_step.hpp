// The length of each step: the largest stable one, with a margin.
//
// Nodes are moved before all forces of a step are known, and other ranks may be a step behind. The
// length of a step is therefore chosen from the smallest edges that the mesh had some steps before.
// An edge shrinks by a few per cent a step at most; the margin has room for that, and
// `over_bound()` says afterwards whether each step was stable.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>

#include "impact/hexahedron.hpp"
#include "impact/mesh.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::impact {

// Of all elements; see ElementResult. m^2
[[nodiscard]] inline double smallest_edge2(const Mesh& mesh) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& nodes : mesh.elements) {
    double jacobian[3][3] = {};
    for (std::size_t corner = 0; corner < corners; ++corner)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t axis = 0; axis < 3; ++axis)
          jacobian[i][axis] +=
              ((corner >> axis & 1) != 0 ? 0.125 : -0.125) * mesh.points[nodes[corner]][i];
    double cof[3][3];
    const double volume = 8 * detail::cofactors(jacobian, cof);
    least = std::min(least, detail::edge2_of<double, double>(volume, cof));
  }
  return least;
}

template <class Real>
class TimeStep {
public:
  // `sound` in m/s.
  TimeStep(const Mesh& mesh, double sound, int ranks)
      : sound_(static_cast<Real>(sound)), ranks_(ranks), lag(std::getenv("XLAG") ? atoi(std::getenv("XLAG")) : 1) {
    edge2_.fill(static_cast<Real>(smallest_edge2(mesh)));
  }
  TimeStep(const TimeStep&) = delete;
  TimeStep& operator=(const TimeStep&) = delete;

  // Of the step that leads to state `number`; that of the first state is 0.
  [[nodiscard]] Real length(std::size_t number) const noexcept { return lengths_[number % kept]; }

  // Chooses the length of the step from state `number` to the next. `edge2`: the smallest of this
  // rank in the state before. Collective.
  void choose(std::size_t number, Real edge2) {
    if (number > 0) {
     if (lag == 1) {
        if (ranks_>1) MPI_Allreduce(&edge2, &edge2_[0], 1, type(), MPI_MIN, MPI_COMM_WORLD);
        else edge2_[0] = edge2;
        check(length(number), edge2_[0]);
     } else if (ranks_ > 1) {
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
        edge2_[0] = result_;
        if (number>1) check(length(number - 1), edge2_[0]); else edge2_[0]=edge2_[1];
        mine_ = edge2;
        MPI_Iallreduce(&mine_, &result_, 1, type(), MPI_MIN, MPI_COMM_WORLD, &request_);
     } else {
        if (number>1) {edge2_[0] = result_;
        check(length(number - 1), edge2_[0]); }
        result_ = edge2;
     }
    }
    const Real next = safety * bound(edge2_[0]);
    lengths_[(number + 1) % kept] = next;
    time_ += static_cast<double>(next);
  }
  void settle() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

  // Simulated, s.
  [[nodiscard]] double time() const noexcept { return time_; }
  // The longest step, in units of the longest stable one for the mesh as it then was.
  [[nodiscard]] double over_bound() const noexcept { return over_bound_; }

private:
  // Of the stable step of undamped elements; hourglass and bulk viscosity lower it.
  static constexpr Real safety = Real(0.9);
  static constexpr std::size_t kept = 4;

  void check(Real length, Real edge2) {
    over_bound_ = std::max(over_bound_, static_cast<double>(length / bound(edge2)));
  }

  static MPI_Datatype type() { return sizeof(Real) == 8 ? MPI_DOUBLE : MPI_FLOAT; }

  // The edge of a cube over sqrt(3) is the length that a wave crosses in the stable step.
  [[nodiscard]] Real bound(Real edge2) const noexcept { return std::sqrt(edge2 / 3) / sound_; }

  Real sound_;
  int ranks_;
  std::array<Real, kept> lengths_{};
  std::array<Real, 2> edge2_{};
  Real mine_ = 0, result_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
  double time_ = 0;
  double over_bound_ = 0;
  int lag;
};

} // namespace seatrial::impact
