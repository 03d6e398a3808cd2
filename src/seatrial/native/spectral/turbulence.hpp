// The start of forced isotropic turbulence: random phases, free of divergence, the same on any
// number of ranks; and a viscosity for which the smallest scales are resolved.
#pragma once

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "mpi/mpi.hpp"
#include "spectral/flow.hpp"

namespace seatrial::spectral {

inline constexpr double start_energy = 1.5; // each component of the velocity is 1 (rms)

// As much energy is added as the large eddies of such a flow pass on, u^3 / (2 L) with L = 1.
// Kolmogorov's length (nu^3 / input)^(1/4) is 1.5 / k of the largest wave number (S. B. Pope,
// Turbulent Flows, 2000, section 9.1.2). In a step a particle of twice the rms velocity moves by a
// fifth of a cell.
[[nodiscard]] inline Physics turbulent(const Box& box) {
  constexpr double input = 0.5;
  const double smallest = 1.5 / box.largest();
  return {.viscosity = std::cbrt(input * std::pow(smallest, 4)),
          .input = input,
          .step_s = 0.1 * 2 * std::numbers::pi / static_cast<double>(box.n)};
}

namespace detail {

// A number in [-1, 1) from a key.
[[nodiscard]] inline double random_number(std::uint64_t key) noexcept {
  key += 0x9e3779b97f4a7c15u; // splitmix64
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((key ^ (key >> 31)) >> 11) * 0x1p-52 - 1;
}

} // namespace detail

template <class Real>
void fill_with_turbulence(Flow<Real>& flow) {
  const auto& modes = flow.product.modes;
  modes.each([&](std::size_t i, Wave wave) {
    for (std::size_t axis = 0; axis < 3; ++axis)
      flow.velocity(axis)[i] = {};
    const double square = wave.square();
    if (square == 0 || !modes.box.keeps(wave.x, wave.y, wave.z))
      return;
    // Of k and -k one is drawn, and the other is its conjugate.
    const bool is_other = wave.x == 0 && (wave.y < 0 || (wave.y == 0 && wave.z < 0));
    const int sign = is_other ? -1 : 1;
    std::uint64_t key = 1;
    for (const int k : {wave.x, wave.y, wave.z})
      key = key << 20 ^ static_cast<std::uint64_t>(sign * k + (1 << 18));
    std::complex<double> u[3];
    const double k[3] = {static_cast<double>(wave.x), static_cast<double>(wave.y),
                         static_cast<double>(wave.z)};
    std::complex<double> along = 0;
    for (std::uint64_t axis = 0; axis < 3; ++axis) {
      u[axis] = {detail::random_number(key * 6 + 2 * axis),
                 sign * detail::random_number(key * 6 + 2 * axis + 1)};
      along += k[axis] * u[axis];
    }
    const double size = std::sqrt(square) * std::exp(-square / 16);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto value = size * (u[axis] - k[axis] * along / square);
      flow.velocity(axis)[i] = {static_cast<Real>(value.real()), static_cast<Real>(value.imag())};
    }
  });
  const auto factor = static_cast<Real>(std::sqrt(start_energy / flow.budget().energy));
  for (std::size_t axis = 0; axis < 3; ++axis)
    for (std::size_t i = 0; i < modes.count(); ++i) {
      auto& u = flow.velocity(axis)[i];
      u = {factor * u.re, factor * u.im};
    }
}

} // namespace seatrial::spectral
