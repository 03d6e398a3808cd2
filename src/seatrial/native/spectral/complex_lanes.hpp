// Several complex numbers in one vector, real and imaginary parts side by side.
#pragma once

#include <cstddef>
#include <utility>

#include "spectral/complex.hpp"
#include "vector.hpp"

namespace seatrial::spectral {

template <class Real>
inline constexpr std::size_t complex_lanes = lanes<Real> / 2;

// `re` and `im` in the places of real and imaginary parts.
template <class Real>
[[nodiscard]] inline Vector<Real> pairs_of(Real re, Real im) noexcept {
  Vector<Real> vector{};
  for (std::size_t i = 0; i < lanes<Real>; i += 2) {
    vector[i] = re;
    vector[i + 1] = im;
  }
  return vector;
}

namespace detail {

template <auto place, class V, std::size_t... lane>
[[gnu::always_inline]] inline V shuffled(V a, V b, std::index_sequence<lane...>) noexcept {
  return __builtin_shufflevector(a, b, static_cast<int>(place(lane))...);
}

} // namespace detail

// Exchanges real and imaginary parts.
template <class Real>
[[gnu::always_inline]] inline Vector<Real> swapped(Vector<Real> x) noexcept {
  return detail::shuffled<[](std::size_t lane) { return lane ^ 1; }>(
      x, x, std::make_index_sequence<lanes<Real>>());
}

// As many vectors as each has complex numbers: number i of vector j becomes number j of vector i.
template <class Real, std::size_t bit = 1>
[[gnu::always_inline]] inline void transpose(Vector<Real> (&rows)[complex_lanes<Real>]) noexcept {
  if constexpr (bit < complex_lanes<Real>) {
    constexpr std::size_t width = lanes<Real>;
    constexpr auto upper = [](std::size_t lane) {
      return (lane / 2 & bit) == 0 ? lane : width + lane - 2 * bit;
    };
    constexpr auto lower = [](std::size_t lane) {
      return (lane / 2 & bit) == 0 ? lane + 2 * bit : width + lane;
    };
    for (std::size_t row = 0; row < complex_lanes<Real>; ++row)
      if ((row & bit) == 0) {
        const auto a = rows[row];
        const auto b = rows[row | bit];
        rows[row] = detail::shuffled<upper>(a, b, std::make_index_sequence<width>());
        rows[row | bit] = detail::shuffled<lower>(a, b, std::make_index_sequence<width>());
      }
    transpose<Real, 2 * bit>(rows);
  }
}

} // namespace seatrial::spectral
