// A complex number, stored as FFTW and MPI see it. std::complex multiplies with checks for NaN.
#pragma once

namespace seatrial::spectral {

template <class Real>
struct Complex {
  Real re;
  Real im;
};

template <class Real>
[[nodiscard]] constexpr Complex<Real> operator*(Complex<Real> a, Complex<Real> b) noexcept {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

} // namespace seatrial::spectral
