// The operations of reductions that programs measure.
#pragma once

#include <string_view>

namespace seatrial::mpi {

enum class Reduction { sum, max, min };

[[nodiscard]] constexpr Reduction reduction_named(std::string_view word) noexcept {
  return word == "sum" ? Reduction::sum : word == "max" ? Reduction::max : Reduction::min;
}

} // namespace seatrial::mpi
