// The eight-node hexahedron with one integration point and viscous hourglass control.
//
// D. P. Flanagan, T. Belytschko, "A uniform strain hexahedron and quadrilateral with orthogonal
// hourglass control", Int. J. Numer. Methods Eng. 17 (1981); gradients at the centre as in
// G. L. Goudreau, J. O. Hallquist, "Recent developments in large-scale finite element Lagrangian
// hydrocode technology", Comput. Methods Appl. Mech. Eng. 33 (1982).
//
// Everything is computed from sums of nodal values with the signs of the eight patterns
// 1, x, y, xy, z, xz, yz, xyz of the reference cube (a Walsh-Hadamard transform): 1 is a
// translation; x, y, z a uniform gradient; the others the four hourglass patterns.
#pragma once

#include <cmath>
#include <cstddef>

#include "impact/material.hpp"

namespace seatrial::impact {

inline constexpr std::size_t corners = 8;
inline constexpr std::size_t gradients[3] = {1, 2, 4};
inline constexpr std::size_t hourglasses[4] = {3, 5, 6, 7};

// The constants of an element, in the precision of the run.
template <class Real>
struct ElementConstants {
  explicit ElementConstants(const Material& m)
      : density(static_cast<Real>(m.density)), sound(static_cast<Real>(m.sound_speed())),
        shear(static_cast<Real>(m.shear())), bulk(static_cast<Real>(m.bulk())),
        yield(static_cast<Real>(m.yield)), hardening(static_cast<Real>(m.hardening)) {}

  Real density, sound, shear, bulk, yield, hardening;
  Real hourglass = Real(0.05); // dimensionless, as the two of the bulk viscosity
  Real linear = Real(0.06);    // for sound waves
  Real quadratic = Real(1.5);  // for shocks
};

// What one step adds to the energy of an element, and what limits the time step.
template <class V>
struct ElementResult {
  V internal;  // work of the stress and the bulk viscosity, J
  V hourglass; // work of the hourglass forces, J
  V edge2;     // square of the edge of the cube with the same largest frequency, m^2
};

namespace detail {

// In place: sums with the signs of each pattern. Bit k of a corner is its place along axis k.
template <class V>
[[gnu::always_inline]] inline void to_patterns(V (&v)[corners]) noexcept {
  for (std::size_t bit = 1; bit < corners; bit *= 2)
    for (std::size_t at = 0; at < corners; ++at)
      if ((at & bit) == 0) {
        const V a = v[at];
        const V b = v[at | bit];
        v[at] = a + b;
        v[at | bit] = b - a;
      }
}

// The transpose: the sum of all patterns at each corner. The pattern 1 must be zero, so that the
// first stage of it is known.
template <class V>
[[gnu::always_inline]] inline void to_corners(V (&v)[corners]) noexcept {
  v[0] = V{} - v[1];
  for (std::size_t at = 2; at < corners; at += 2) {
    const V a = v[at];
    const V b = v[at + 1];
    v[at] = a - b;
    v[at + 1] = a + b;
  }
  for (std::size_t bit = 2; bit < corners; bit *= 2)
    for (std::size_t at = 0; at < corners; ++at)
      if ((at & bit) == 0) {
        const V a = v[at];
        const V b = v[at | bit];
        v[at] = a - b;
        v[at | bit] = a + b;
      }
}

// Cofactors of the Jacobian matrix; returns its determinant.
template <class V>
[[gnu::always_inline]] inline V cofactors(const V (&j)[3][3], V (&cof)[3][3]) noexcept {
  cof[0][0] = j[1][1] * j[2][2] - j[1][2] * j[2][1];
  cof[0][1] = j[1][2] * j[2][0] - j[1][0] * j[2][2];
  cof[0][2] = j[1][0] * j[2][1] - j[1][1] * j[2][0];
  cof[1][0] = j[2][1] * j[0][2] - j[2][2] * j[0][1];
  cof[1][1] = j[2][2] * j[0][0] - j[2][0] * j[0][2];
  cof[1][2] = j[2][0] * j[0][1] - j[2][1] * j[0][0];
  cof[2][0] = j[0][1] * j[1][2] - j[0][2] * j[1][1];
  cof[2][1] = j[0][2] * j[1][0] - j[0][0] * j[1][2];
  cof[2][2] = j[0][0] * j[1][1] - j[0][1] * j[1][0];
  return j[0][0] * cof[0][0] + j[0][1] * cof[0][1] + j[0][2] * cof[0][2];
}

// The square of the edge of the cube with the same largest frequency, from an element's volume and
// the cofactors of its Jacobian matrix.
template <class V, class Real>
[[gnu::always_inline]] inline V edge2_of(const V& volume, const V (&cof)[3][3]) noexcept {
  V squares = cof[0][0] * cof[0][0];
  for (std::size_t at = 1; at < 9; ++at)
    squares = squares + cof[at / 3][at % 3] * cof[at / 3][at % 3];
  return volume * volume * Real(3.0 / 16) / squares;
}

} // namespace detail

// `x` are the positions at the end of a step of length `dt`, `v` the velocities in its middle, by
// component and corner; `v` is replaced by the forces on the nodes.
template <class Math, class V, class Real>
[[gnu::always_inline]] inline ElementResult<V>
element_step(V (&x)[3][corners], V (&v)[3][corners], Stress<V>& stress,
             const ElementConstants<Real>& constant, Real dt) noexcept {
  for (std::size_t i = 0; i < 3; ++i) {
    detail::to_patterns(x[i]);
    detail::to_patterns(v[i]);
  }
  // The velocity gradient in the middle of the step, as an increment.
  V middle[3][3];
  V cof[3][3];
  const Real back = Real(-0.5) * dt;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      middle[i][j] = (x[i][gradients[j]] + v[i][gradients[j]] * back) * Real(0.125);
  const V middle_jacobian = detail::cofactors(middle, cof);
  const V per_volume = Real(0.125) / middle_jacobian;
  V rate[3][3]; // d v_k / d x_i
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < 3; ++i)
      rate[k][i] = (v[k][1] * cof[i][0] + v[k][2] * cof[i][1] + v[k][4] * cof[i][2]) * per_volume;

  // Hourglass velocities without the part of the uniform gradient.
  V swing[3][4];
  V swung = V{};
  for (std::size_t a = 0; a < 4; ++a) {
    V place[3];
    for (std::size_t i = 0; i < 3; ++i)
      place[i] = x[i][hourglasses[a]] + v[i][hourglasses[a]] * back;
    for (std::size_t k = 0; k < 3; ++k) {
      swing[k][a] = v[k][hourglasses[a]] -
                    (place[0] * rate[k][0] + place[1] * rate[k][1] + place[2] * rate[k][2]);
      swung = swung + swing[k][a] * swing[k][a];
    }
  }

  const Real half = Real(0.5) * dt;
  const V strain[6] = {rate[0][0] * dt,
                       rate[1][1] * dt,
                       rate[2][2] * dt,
                       (rate[0][1] + rate[1][0]) * half,
                       (rate[1][2] + rate[2][1]) * half,
                       (rate[2][0] + rate[0][2]) * half};
  const V spin[3] = {(rate[0][1] - rate[1][0]) * half, (rate[1][2] - rate[2][1]) * half,
                     (rate[2][0] - rate[0][2]) * half};
  const Stress<V> before = stress;
  advance<Math>(stress, strain, spin, constant.shear, constant.bulk, constant.yield,
                constant.hardening);

  // The geometry at the end of the step.
  V jacobian[3][3];
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      jacobian[i][j] = x[i][gradients[j]] * Real(0.125);
  const V volume = detail::cofactors(jacobian, cof) * Real(8);
  ElementResult<V> result;
  result.edge2 = detail::edge2_of<V, Real>(volume, cof);

  const V trace = Math::negative(rate[0][0] + rate[1][1] + rate[2][2]);
  const V edge = Math::root(result.edge2);
  const V viscous = edge * trace * constant.density *
                    (edge * trace * constant.quadratic - constant.linear * constant.sound);
  const V damping =
      result.edge2 * (Real(0.25) * constant.hourglass * constant.density * constant.sound);

  const V middle_volume = middle_jacobian * Real(8);
  const V work =
      (before.s[0] + stress.s[0]) * strain[0] + (before.s[1] + stress.s[1]) * strain[1] +
      (before.s[2] + stress.s[2]) * strain[2] +
      ((before.s[3] + stress.s[3]) * strain[3] + (before.s[4] + stress.s[4]) * strain[4] +
       (before.s[5] + stress.s[5]) * strain[5]) *
          Real(2);
  result.internal = (work * Real(0.5) - viscous * trace * dt) * middle_volume;
  result.hourglass = damping * swung * dt;

  // Forces: of the stress through the uniform gradient, of the hourglass velocities through theirs.
  const V share = damping / volume;
  V total[3][3] = {{stress.s[0] - viscous, stress.s[3], stress.s[5]},
                   {stress.s[3], stress.s[1] - viscous, stress.s[4]},
                   {stress.s[5], stress.s[4], stress.s[2] - viscous}};
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < 3; ++i)
      total[k][i] = total[k][i] - (x[i][3] * swing[k][0] + x[i][5] * swing[k][1] +
                                   x[i][6] * swing[k][2] + x[i][7] * swing[k][3]) *
                                      share;
  for (std::size_t k = 0; k < 3; ++k) {
    for (std::size_t j = 0; j < 3; ++j)
      v[k][gradients[j]] =
          V{} - (total[k][0] * cof[0][j] + total[k][1] * cof[1][j] + total[k][2] * cof[2][j]);
    for (std::size_t a = 0; a < 4; ++a)
      v[k][hourglasses[a]] = V{} - damping * swing[k][a];
    detail::to_corners(v[k]);
  }
  return result;
}

} // namespace seatrial::impact
