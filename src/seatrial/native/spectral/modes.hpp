// The wave numbers that a simulation keeps, and the part of them that a rank has.
//
// Dealiasing: a product of two fields contains sums of their wave numbers, and a grid of n points
// cannot tell k from k - n. With two-thirds, |k| < n/3 in each direction, and no sum that is kept
// is confused with another. With phase-shift, |k| < sqrt(2)/3 n (a sphere), and single aliases
// cancel between two stages whose grids are half a cell apart (R. S. Rogallo, NASA TM 81315, 1981).
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>

#include "spectral/decomposition.hpp"

namespace seatrial::spectral {

struct Box {
  std::size_t n; // points along each edge; the edge is 2 pi long
  bool shifts;   // dealiases by phase shifts

  [[nodiscard]] int largest() const noexcept { // wave number
    return shifts ? static_cast<int>(std::numbers::sqrt2 / 3 * static_cast<double>(n))
                  : (static_cast<int>(n) - 1) / 3;
  }
  // Of kx, which is never negative: the fields are real.
  [[nodiscard]] std::size_t kept_x() const noexcept {
    return static_cast<std::size_t>(largest()) + 1;
  }
  // Of ky and kz.
  [[nodiscard]] std::size_t kept() const noexcept {
    return 2 * static_cast<std::size_t>(largest()) + 1;
  }
  // Kept wave numbers are in the order of a transform: 0, 1, ..., -2, -1.
  [[nodiscard]] int wave_number(std::size_t index) const noexcept {
    const int k = static_cast<int>(index);
    return k <= largest() ? k : k - static_cast<int>(kept());
  }
  // The row of a transform of n points in which it belongs.
  [[nodiscard]] std::size_t place(std::size_t index) const noexcept {
    return index <= static_cast<std::size_t>(largest()) ? index : n - kept() + index;
  }
  [[nodiscard]] bool keeps(int kx, int ky, int kz) const noexcept {
    return !shifts || kx * kx + ky * ky + kz * kz <= largest() * largest();
  }
};

struct Wave {
  int x;
  int y;
  int z;

  [[nodiscard]] double square() const noexcept {
    return static_cast<double>(x) * x + static_cast<double>(y) * y + static_cast<double>(z) * z;
  }
};

// The modes of this rank: [ky][kz][kx], kx contiguous.
struct Modes {
  Modes(const Box& the_box, const RankGrid& ranks)
      : box(the_box), over_x{the_box.kept_x(), ranks.rows}, over_y{the_box.kept(), ranks.columns},
        first_x(over_x.begin(ranks.row)), first_y(over_y.begin(ranks.column)),
        nx(over_x.count(ranks.row)), ny(over_y.count(ranks.column)), nz(the_box.kept()) {}

  [[nodiscard]] std::size_t count() const noexcept { return nx * ny * nz; }
  [[nodiscard]] std::size_t line(std::size_t y, std::size_t z) const noexcept {
    return (y * nz + z) * nx;
  }
  [[nodiscard]] Wave wave(std::size_t x, std::size_t y, std::size_t z) const noexcept {
    return {static_cast<int>(first_x + x), box.wave_number(first_y + y), box.wave_number(z)};
  }
  // Visits (index, wave) of each mode.
  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t y = 0; y < ny; ++y)
      for (std::size_t z = 0; z < nz; ++z)
        for (std::size_t x = 0; x < nx; ++x)
          visit(line(y, z) + x, wave(x, y, z));
  }

  Box box;
  Partition over_x;
  Partition over_y;
  std::size_t first_x;
  std::size_t first_y;
  std::size_t nx;
  std::size_t ny;
  std::size_t nz;
};

} // namespace seatrial::spectral
