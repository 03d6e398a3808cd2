// The two-dimensional vortex of Taylor and Green, carried along by a uniform wind: an exact
// solution of the equations, which decays with exp(-nu (p^2 + q^2) t) and moves with the wind.
//
// Without wind the product of velocity and vorticity is the gradient of a pressure, and a program
// that forgets it would pass. The wind makes the product carry the vortex. The product has waves of
// up to 2 p and 2 q: where the grid has aliases of one of them only, they are no gradient.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>

#include "mpi/mpi.hpp"
#include "spectral/flow.hpp"

namespace seatrial::spectral {

class Vortex {
public:
  // In the plane of axes `plane` and `plane` + 1, with p and q waves along them.
  Vortex(std::size_t plane, int p, int q) : a_(plane % 3), b_((plane + 1) % 3), p_(p), q_(q) {}

  // The velocity of a mode at a time.
  [[nodiscard]] std::array<std::complex<double>, 3> at(Wave wave, double viscosity,
                                                       double time) const {
    const int k[3] = {wave.x, wave.y, wave.z};
    const std::size_t c = 3 - a_ - b_;
    if (k[0] == 0 && k[1] == 0 && k[2] == 0)
      return {wind[0], wind[1], wind[2]};
    if (std::abs(k[a_]) != p_ || std::abs(k[b_]) != q_ || k[c] != 0)
      return {};
    // q cos(p a) sin(q b) and -p sin(p a) cos(q b), by the larger, as sums of exponentials
    const std::complex<double> i(0, 1);
    std::array<std::complex<double>, 3> u{};
    u[a_] = -i * (0.25 * q_ / std::max(p_, q_)) * std::copysign(1.0, k[b_]);
    u[b_] = i * (0.25 * p_ / std::max(p_, q_)) * std::copysign(1.0, k[a_]);
    const double travelled = (k[0] * wind[0] + k[1] * wind[1] + k[2] * wind[2]) * time;
    const auto carried = std::polar(std::exp(-viscosity * wave.square() * time), -travelled);
    for (auto& each : u)
      each *= carried;
    return u;
  }

  // A step in which the fastest vortex moves by 1e-3 of its phase: Heun's method is then off by
  // 1e-9 / 6.
  [[nodiscard]] Physics physics() const {
    const double step_s =
        1e-3 / (std::max(p_, q_) * (std::abs(wind[0]) + std::abs(wind[1]) + std::abs(wind[2])));
    return {.viscosity = 0.05 / ((p_ * p_ + q_ * q_) * step_s), .input = 0, .step_s = step_s};
  }

  template <class Real>
  void fill(Flow<Real>& flow) const {
    flow.product.modes.each([&](std::size_t i, Wave wave) {
      const auto u = at(wave, 0, 0);
      for (std::size_t axis = 0; axis < 3; ++axis)
        flow.velocity(axis)[i] = {static_cast<Real>(u[axis].real()),
                                  static_cast<Real>(u[axis].imag())};
    });
  }

  // The deviation of the flow from the solution, over the size of the vortex.
  template <class Real>
  [[nodiscard]] double error(const Flow<Real>& flow, double viscosity, double time) const {
    double wrong = 0, size = 0;
    flow.product.modes.each([&](std::size_t i, Wave wave) {
      const auto u = at(wave, viscosity, time);
      const double weight = wave.x > 0 ? 2 : 1;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto is = flow.velocity(axis)[i];
        wrong += weight * std::norm(u[axis] - std::complex<double>(is.re, is.im));
        size += wave.square() > 0 ? weight * std::norm(u[axis]) : 0;
      }
    });
    return std::sqrt(mpi::sum(wrong) / mpi::sum(size));
  }

private:
  static constexpr double wind[3] = {0.7, -0.4, 0.55};
  std::size_t a_;
  std::size_t b_;
  int p_;
  int q_;
};

} // namespace seatrial::spectral
