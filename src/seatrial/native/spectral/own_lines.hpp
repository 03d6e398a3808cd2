// Our own Fourier transform, for lengths without factors other than 2, 3 and 5.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "spectral/lines.hpp"

namespace seatrial::spectral {

// The factors of n, in the order of the passes; empty if it has others than 2, 3 and 5.
[[nodiscard]] std::vector<int> radices_of(std::size_t n);

template <class Real>
[[nodiscard]] std::unique_ptr<Lines<Real>> own_lines(const LinesShape& shape);

} // namespace seatrial::spectral
