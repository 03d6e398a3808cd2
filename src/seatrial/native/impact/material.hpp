// An elastic-plastic metal: isotropic elasticity, von Mises yield, linear isotropic hardening.
#pragma once

#include <cmath>

namespace seatrial::impact {

// In SI units.
struct Material {
  double density;
  double young;
  double poisson;
  double yield;     // of the undeformed metal
  double hardening; // growth of the yield stress with plastic strain

  [[nodiscard]] double shear() const noexcept { return young / (2 * (1 + poisson)); }
  [[nodiscard]] double bulk() const noexcept { return young / (3 * (1 - 2 * poisson)); }
  // The speed of compression waves in the solid.
  [[nodiscard]] double sound_speed() const noexcept {
    return std::sqrt((bulk() + 4 * shear() / 3) / density);
  }
};

// Stress in the order xx, yy, zz, xy, yz, zx, and the equivalent plastic strain.
template <class V>
struct Stress {
  V s[6];
  V plastic;
};

// Rotates a stress with the material (the rate of Jaumann), adds the elastic increment and returns
// it to the yield surface along the radius (M. L. Wilkins, "Calculation of elastic-plastic flow",
// 1964). `strain` is the increment, with xy, yz, zx as tensor components; `spin` the increment of
// the antisymmetric part W of the velocity gradient: xy, yz, zx.
template <class Math, class V, class Real>
[[gnu::always_inline]] inline void advance(Stress<V>& stress, const V (&strain)[6],
                                           const V (&spin)[3], Real shear, Real bulk, Real yield,
                                           Real hardening) noexcept {
  auto& s = stress.s;
  const V wxy = spin[0];
  const V wyz = spin[1];
  const V wzx = spin[2];
  // W s - s W, with W antisymmetric: Wyx = -Wxy and so on.
  const V xy = wxy * s[3];
  const V yz = wyz * s[4];
  const V zx = wzx * s[5];
  const V r0 = (xy - zx) * Real(2);
  const V r1 = (yz - xy) * Real(2);
  const V r2 = (zx - yz) * Real(2);
  const V r3 = wxy * (s[1] - s[0]) - wzx * s[4] + wyz * s[5];
  const V r4 = wyz * (s[2] - s[1]) - wxy * s[5] + wzx * s[3];
  const V r5 = wzx * (s[0] - s[2]) - wyz * s[3] + wxy * s[4];
  const V volumetric = strain[0] + strain[1] + strain[2];
  const V mean_strain = volumetric * Real(1.0 / 3);
  const V pressure = (s[0] + s[1] + s[2]) * Real(1.0 / 3) + volumetric * bulk;
  const V old_mean = (s[0] + s[1] + s[2]) * Real(1.0 / 3);
  const Real twice = 2 * shear;
  const V d0 = s[0] - old_mean + r0 + (strain[0] - mean_strain) * twice;
  const V d1 = s[1] - old_mean + r1 + (strain[1] - mean_strain) * twice;
  const V d2 = s[2] - old_mean + r2 + (strain[2] - mean_strain) * twice;
  const V d3 = s[3] + r3 + strain[3] * twice;
  const V d4 = s[4] + r4 + strain[4] * twice;
  const V d5 = s[5] + r5 + strain[5] * twice;
  const V norm = d0 * d0 + d1 * d1 + d2 * d2 + (d3 * d3 + d4 * d4 + d5 * d5) * Real(2);
  const V mises = Math::root(norm * Real(1.5));
  const V excess = Math::positive(mises - (stress.plastic * hardening + yield));
  const V flow = excess * (Real(1) / (3 * shear + hardening));
  const V kept = (mises - flow * (3 * shear)) / (Math::larger(mises, yield));
  const V factor = Math::where_positive(excess, kept, Real(1));
  s[0] = d0 * factor + pressure;
  s[1] = d1 * factor + pressure;
  s[2] = d2 * factor + pressure;
  s[3] = d3 * factor;
  s[4] = d4 * factor;
  s[5] = d5 * factor;
  stress.plastic = stress.plastic + flow;
}

} // namespace seatrial::impact
