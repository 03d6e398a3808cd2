// The length of each step: the largest stable one, with a margin.
//
// Nodes are moved before all forces of a step are known, and other ranks may be a step behind. The
// length of a step is therefore chosen from the smallest edges that the mesh had two steps before.
// An edge shrinks by a few per cent in a step at most; the margin has room for that, and
// `over_bound()` tells afterwards whether each step was stable.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "impact/hexahedron.hpp"
#include "impact/mesh.hpp"
#include "mpi/mpi.hpp"

namespace seatrial::impact {

// Of all elements, in m^2; see ElementResult.
[[nodiscard]] inline double smallest_edge2(const Mesh& mesh) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& nodes : mesh.elements) {
    double jacobian[3][3];
    jacobian_of(mesh, nodes, jacobian);
    double cof[3][3];
    const double volume = 8 * detail::cofactors(jacobian, cof);
    least = std::min(least, detail::edge2_of<double, double>(volume, cof));
  }
  return least;
}

// How the ranks find the smallest edge of all: by MPI_Iallreduce, which has one step to complete,
// or by MPI_Allreduce, where each waits for the slowest. The lengths are the same.
enum class Reduction { overlapped, blocking };

template <class Real>
class TimeStep {
public:
  // `sound` in m/s.
  TimeStep(const Mesh& mesh, double sound, Reduction reduction)
      : sound_(static_cast<Real>(sound)), reduction_(reduction) {
    edge2_.fill(static_cast<Real>(smallest_edge2(mesh)));
  }
  TimeStep(const TimeStep&) = delete;
  TimeStep& operator=(const TimeStep&) = delete;

  // Of the step that leads to state `number`; that of state 0 is 0.
  [[nodiscard]] Real length(std::size_t number) const noexcept { return lengths_[number % kept]; }

  // Chooses the length of the step from state `number` to the next. `edge2`: the smallest that this
  // rank had in the state before. Collective.
  void choose(std::size_t number, Real edge2) {
    if (number >= 2) {
      MPI_Wait(&request_, MPI_STATUS_IGNORE);
      check(number - 2);
    }
    const Real next = safety * bound(edge2_[number % 2]);
    lengths_[(number + 1) % kept] = next;
    time_ += static_cast<double>(next);
    if (number == 0)
      return;
    mine_ = edge2;
    Real* const of_all = &edge2_[(number - 1) % 2];
    if (reduction_ == Reduction::blocking)
      MPI_Allreduce(&mine_, of_all, 1, type(), MPI_MIN, MPI_COMM_WORLD);
    else
      MPI_Iallreduce(&mine_, of_all, 1, type(), MPI_MIN, MPI_COMM_WORLD, &request_);
  }

  // Nothing is pending then. Collective.
  void settle() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

  // Simulated, s.
  [[nodiscard]] double time() const noexcept { return time_; }
  // The longest step over the longest stable one of undamped elements in the state that it left.
  [[nodiscard]] double over_bound() const noexcept { return over_bound_; }

private:
  // Of the stable step of undamped elements; hourglass and bulk viscosity lower it.
  static constexpr Real safety = Real(0.9);
  static constexpr std::size_t kept = 4;

  // The step that left a state, now that its smallest edge is known.
  void check(std::size_t state) noexcept {
    over_bound_ = std::max(over_bound_, static_cast<double>(length(state + 1)) /
                                            static_cast<double>(bound(edge2_[state % 2])));
  }

  // The edge of a cube over sqrt(3) is the length that a wave crosses in the stable step.
  [[nodiscard]] Real bound(Real edge2) const noexcept { return std::sqrt(edge2 / 3) / sound_; }

  static MPI_Datatype type() { return sizeof(Real) == 8 ? MPI_DOUBLE : MPI_FLOAT; }

  Real sound_;
  Reduction reduction_;
  std::array<Real, kept> lengths_{}; // of the last steps, s
  std::array<Real, 2> edge2_{};      // of the last states whose reduction is complete or pending
  Real mine_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
  double time_ = 0;
  double over_bound_ = 0;
};

} // namespace seatrial::impact
