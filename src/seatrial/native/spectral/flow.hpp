// An incompressible flow in a periodic box, and its steps in time.
//
//   du/dt = P(u x omega) + f - nu k^2 u   in wave space
//
// P removes what is not free of divergence, and with it the pressure. The second-order Runge-Kutta
// method of Heun advances u exp(nu k^2 t), so that viscosity is integrated exactly. The force is
// u times a factor that adds energy at a constant rate, at the largest scales only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

#include "mpi/mpi.hpp"
#include "pages.hpp"
#include "spectral/independent.hpp"
#include "spectral/modes.hpp"
#include "spectral/product.hpp"

namespace seatrial::spectral {

struct Physics {
  double viscosity;
  double input; // energy per unit of mass and time
  double step_s;
};

// Sums over all modes, by unit of mass.
struct Budget {
  double energy = 0;
  double dissipation = 0;
  double divergence = 0; // |k . u|, over |k| |u|, both as root mean squares
};

template <class Real>
class Flow {
public:
  using Number = Complex<Real>;

  Flow(const Box& box, const RankGrid& ranks, const MakeLines<Real>& make, Team* team)
      : product(box, ranks, make, team), modes_(product.modes),
        now_(3 * modes_.count() * sizeof(Number) + 64, true),
        next_(3 * modes_.count() * sizeof(Number) + 64, true),
        shifted_(box.shifts ? product.threads() * 3 * modes_.nz * modes_.nx * sizeof(Number) : 64,
                 true) {}

  void set(const Physics& physics) {
    physics_ = physics;
    decay_.clear();
    for (int k = 0; k <= modes_.box.largest(); ++k)
      decay_.push_back(static_cast<Real>(
          std::exp(-physics.viscosity * static_cast<double>(k) * k * physics.step_s)));
    along_x_ = AlongX(2 * modes_.nx);
    for (std::size_t i = 0; i < 2 * modes_.nx; ++i) {
      const auto k = modes_.first_x + i / 2;
      along_x_.k[i] = static_cast<Real>(k);
      along_x_.square[i] = static_cast<Real>(k * k);
      along_x_.decay[i] = decay_[k];
    }
    steps_ = 0;
  }

  // A component of the velocity, in the order of the modes.
  [[nodiscard]] Number* velocity(std::size_t axis) const {
    return reinterpret_cast<Number*>(now_.data()) + axis * modes_.count();
  }

  // Two stages.
  void step() {
    choose_shift();
    stage<true>();
    shift_half_a_cell();
    stage<false>();
    ++steps_;
  }

  [[nodiscard]] Budget budget() const {
    Budget mine;
    double longest = 0;
    modes_.each([&](std::size_t i, Wave wave) {
      const double weight = wave.x > 0 ? 2 : 1; // for the mode of -k too
      const Number u = velocity(0)[i], v = velocity(1)[i], w = velocity(2)[i];
      const double square = weight * (norm(u) + norm(v) + norm(w));
      mine.energy += square / 2;
      mine.dissipation += physics_.viscosity * wave.square() * square;
      const double re = along(wave, u.re, v.re, w.re), im = along(wave, u.im, v.im, w.im);
      mine.divergence += weight * (re * re + im * im);
      longest += wave.square() * square;
    });
    const double squares = mpi::sum(mine.divergence), all = mpi::sum(longest);
    return {.energy = mpi::sum(mine.energy),
            .dissipation = mpi::sum(mine.dissipation),
            .divergence = all > 0 ? std::sqrt(squares / all) : 0};
  }

  // Bytes of the state that a step reads and writes, each time counted.
  [[nodiscard]] double moved_B() const {
    constexpr double passes = 3 + 3 + 6 + 3 + 3 + 3 + 3; // components read and written, both stages
    return passes * static_cast<double>(modes_.count() * sizeof(Number));
  }

  Product<Real> product;

private:
  static constexpr int forced = 2; // the largest wave number with a force

  [[nodiscard]] static double norm(Number x) noexcept {
    return static_cast<double>(x.re) * x.re + static_cast<double>(x.im) * x.im;
  }
  [[nodiscard]] static double along(Wave wave, double x, double y, double z) noexcept {
    return wave.x * x + wave.y * y + wave.z * z;
  }

  // exp(i k . shift) as a product of three factors.
  void set_shift(const std::array<double, 3>& shift) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      phase_[axis].clear();
      for (int k = -modes_.box.largest(); k <= modes_.box.largest(); ++k)
        phase_[axis].push_back({static_cast<Real>(std::cos(k * shift[axis])),
                                static_cast<Real>(std::sin(k * shift[axis]))});
    }
    shift_ = shift;
  }
  [[nodiscard]] Number phase(std::size_t axis, int k) const {
    return phase_[axis][static_cast<std::size_t>(k + modes_.box.largest())];
  }

  // Pseudo-random, and the same on every rank.
  void choose_shift() {
    if (!modes_.box.shifts)
      return;
    std::array<double, 3> shift{};
    std::uint64_t state = steps_ * 0x9e3779b97f4a7c15u + 1;
    for (auto& each : shift) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      each = cell() * static_cast<double>(state >> 11) * 0x1p-53;
    }
    set_shift(shift);
  }
  void shift_half_a_cell() {
    if (modes_.box.shifts)
      set_shift({shift_[0] + cell() / 2, shift_[1] + cell() / 2, shift_[2] + cell() / 2});
  }
  [[nodiscard]] double cell() const noexcept {
    return 2 * std::numbers::pi / static_cast<double>(modes_.box.n);
  }

  template <bool is_first>
  void stage() {
    const double factor = force();
    product.apply(
        [&](std::size_t thread, std::size_t y, std::size_t field, Number* plane) {
          if (field == 0 && modes_.box.shifts)
            shift_plane(thread, y);
          fill(thread, y, field, plane);
        },
        [&](std::size_t y, Number* planes, std::size_t apart) {
          advance<is_first>(y, planes, apart, factor);
        });
  }

  // What the force is, as a multiple of the velocity.
  [[nodiscard]] double force() const {
    if (physics_.input == 0)
      return 0;
    double twice_energy = 0;
    for (std::size_t y = 0; y < modes_.ny; ++y)
      for (std::size_t z = 0; z < modes_.nz; ++z) {
        const Wave first = modes_.wave(0, y, z);
        if (std::abs(first.y) > forced || std::abs(first.z) > forced)
          continue;
        for (std::size_t x = 0; x < modes_.nx && first.x + static_cast<int>(x) <= forced; ++x) {
          const Wave wave = modes_.wave(x, y, z);
          const std::size_t i = modes_.line(y, z) + x;
          if (is_forced(wave))
            twice_energy += (wave.x > 0 ? 2 : 1) *
                            (norm(velocity(0)[i]) + norm(velocity(1)[i]) + norm(velocity(2)[i]));
        }
      }
    MPI_Allreduce(MPI_IN_PLACE, &twice_energy, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return twice_energy > 0 ? physics_.input / twice_energy : 0;
  }
  [[nodiscard]] static bool is_forced(Wave wave) noexcept {
    const double square = wave.square();
    return square > 0 && square <= forced * forced;
  }

  // The velocity of one ky on the shifted grid.
  void shift_plane(std::size_t thread, std::size_t y) {
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (std::size_t z = 0; z < modes_.nz; ++z) {
        const Wave first = modes_.wave(0, y, z);
        const Number outer = phase(1, first.y) * phase(2, first.z);
        const Number* from = velocity(axis) + modes_.line(y, z);
        Number* to = shifted(thread, axis) + z * modes_.nx;
        for (std::size_t x = 0; x < modes_.nx; ++x)
          to[x] = from[x] * (outer * phase(0, first.x + static_cast<int>(x)));
      }
  }
  [[nodiscard]] Number* shifted(std::size_t thread, std::size_t axis) const {
    return reinterpret_cast<Number*>(shifted_.data()) + (thread * 3 + axis) * modes_.nz * modes_.nx;
  }

  // Fields 0 to 2: the velocity; 3 to 5: the vorticity, i k x u.
  void fill(std::size_t thread, std::size_t y, std::size_t field, Number* plane) const {
    const std::size_t axis = field % 3, b = (axis + 1) % 3, c = (axis + 2) % 3;
    for (std::size_t z = 0; z < modes_.nz; ++z) {
      const auto of = [&](std::size_t which) {
        return modes_.box.shifts ? shifted(thread, which) + z * modes_.nx
                                 : velocity(which) + modes_.line(y, z);
      };
      Number* to = plane + modes_.box.place(z) * product.lead();
      if (field < 3) {
        std::copy_n(of(axis), modes_.nx, to);
        continue;
      }
      const Wave first = modes_.wave(0, y, z);
      const Number* ub = of(b);
      const Number* uc = of(c);
      const Real start[3] = {static_cast<Real>(first.x), static_cast<Real>(first.y),
                             static_cast<Real>(first.z)};
      const Real step_b = b == 0, step_c = c == 0;
      SEATRIAL_INDEPENDENT
      for (std::size_t x = 0; x < modes_.nx; ++x) {
        const Real kb = start[b] + step_b * static_cast<Real>(static_cast<int>(x));
        const Real kc = start[c] + step_c * static_cast<Real>(static_cast<int>(x));
        to[x] = {kc * ub[x].im - kb * uc[x].im, kb * uc[x].re - kc * ub[x].re};
      }
    }
  }

  // Turns the product back to the grid that is not shifted, and drops what dealiasing does.
  void shift_back(std::size_t y, Number* planes, std::size_t apart) const {
    for (std::size_t z = 0; z < modes_.nz; ++z) {
      const Wave first = modes_.wave(0, y, z);
      const Number outer = phase(1, -first.y) * phase(2, -first.z);
      Number* const term = planes + modes_.box.place(z) * product.lead();
      for (std::size_t x = 0; x < modes_.nx; ++x) {
        const int kx = first.x + static_cast<int>(x);
        const Number back =
            modes_.box.keeps(kx, first.y, first.z) ? outer * phase(0, -kx) : Number{};
        for (std::size_t axis = 0; axis < 3; ++axis)
          term[axis * apart + x] = term[axis * apart + x] * back;
      }
    }
  }

  // Adds the force to the product. It is free of divergence, as the velocity is.
  void add_force(std::size_t y, Number* planes, std::size_t apart, Real factor) const {
    for (std::size_t z = 0; z < modes_.nz; ++z) {
      const Wave first = modes_.wave(0, y, z);
      Number* const term = planes + modes_.box.place(z) * product.lead();
      for (std::size_t x = 0; x < modes_.nx && modes_.first_x + x <= forced; ++x) {
        if (!is_forced({first.x + static_cast<int>(x), first.y, first.z}))
          continue;
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const Number u = velocity(axis)[modes_.line(y, z) + x];
          Number& sum = term[axis * apart + x];
          sum = {sum.re + factor * u.re, sum.im + factor * u.im};
        }
      }
    }
  }

  // The first stage predicts u at the end of the step, and keeps the mean that the second
  // completes.
  template <bool is_first>
  void advance(std::size_t y, Number* planes, std::size_t apart, double force) {
    const auto n = static_cast<double>(modes_.box.n);
    const double scale = 0.5 / (n * n * n);
    if (modes_.box.shifts)
      shift_back(y, planes, apart);
    if (std::abs(modes_.wave(0, y, 0).y) <= forced)
      add_force(y, planes, apart, static_cast<Real>(force / scale));
    const auto step = static_cast<Real>(scale * physics_.step_s);
    const Real half = step / 2;
    for (std::size_t z = 0; z < modes_.nz; ++z) {
      const Wave first = modes_.wave(0, y, z);
      const std::size_t row = modes_.box.place(z) * product.lead();
      const auto ky = static_cast<Real>(first.y), kz = static_cast<Real>(first.z);
      const Real square_yz = ky * ky + kz * kz;
      const Real decay_yz = decay_[static_cast<std::size_t>(std::abs(first.y))] *
                            decay_[static_cast<std::size_t>(std::abs(first.z))];
      Real* u[3];
      Real* kept[3];
      const Real* term[3];
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const std::size_t line = axis * modes_.count() + modes_.line(y, z);
        u[axis] = &reinterpret_cast<Number*>(now_.data())[line].re;
        kept[axis] = &reinterpret_cast<Number*>(next_.data())[line].re;
        term[axis] = &planes[axis * apart + row].re;
      }
      const Real* const kx = along_x_.k.data();
      const Real* const square_x = along_x_.square.data();
      const Real* const decay_x = along_x_.decay.data();
      SEATRIAL_INDEPENDENT
      for (std::size_t i = 0; i < 2 * modes_.nx; ++i) { // real and imaginary parts alike
        const Real square = square_x[i] + square_yz;
        const Real r[3] = {term[0][i], term[1][i], term[2][i]};
        const Real k[3] = {kx[i], ky, kz};
        // For k = 0 all k are.
        const Real along = (k[0] * r[0] + k[1] * r[1] + k[2] * r[2]) / (square < 1 ? 1 : square);
        const Real decay = decay_yz * decay_x[i];
        for (std::size_t axis = 0; axis < 3; ++axis) {
          const Real old = u[axis][i];
          const Real rate = r[axis] - k[axis] * along;
          if constexpr (is_first) {
            kept[axis][i] = decay * (old + half * rate);
            u[axis][i] = decay * (old + step * rate);
          } else
            u[axis][i] = kept[axis][i] + half * rate;
        }
      }
    }
  }

  // By kx, each twice: for real and imaginary parts.
  struct AlongX {
    explicit AlongX(std::size_t count = 0) : k(count), square(count), decay(count) {}
    std::vector<Real> k, square, decay;
  };

  const Modes& modes_;
  Pages now_;
  Pages next_;    // after the first stage: the part of the result that is known
  Pages shifted_; // the velocity of one ky, for each thread
  Physics physics_{};
  std::vector<Real> decay_; // exp(-nu k^2 dt), by k
  AlongX along_x_;
  std::array<std::vector<Number>, 3> phase_;
  std::array<double, 3> shift_{};
  std::uint64_t steps_ = 0;
};

} // namespace seatrial::spectral
