// Fourier transforms of the columns of a plane: the one operation that a library has to provide.
//
// A plane has n rows of `lead` complex numbers, of which the first `batch` are used. Each column is
// transformed in place, with exp(sign i 2 pi j k / n) and without a factor. Neighbouring columns
// are neighbours in memory, so that every vector instruction works on several of them.
#pragma once

#include <cstddef>

#include "spectral/complex.hpp"
#include "vector.hpp"

namespace seatrial::spectral {

template <class Real>
class Lines {
public:
  Lines() = default;
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  virtual ~Lines() = default;

  // `plane` is aligned to 64 bytes.
  virtual void transform(Complex<Real>* plane) const = 0;
};

struct LinesShape {
  std::size_t n;
  std::size_t batch;
  std::size_t lead;
  int sign; // -1: forward; +1: inverse
};

// Complex numbers of one vector; `lead` is a multiple of it.
template <class Real>
inline constexpr std::size_t lead_multiple = lanes<Real> / 2;

} // namespace seatrial::spectral
