// A number that counts the operations done with it: the flop of an element, exactly.
#pragma once

#include <cmath>
#include <cstddef>

#include "impact/hexahedron.hpp"

namespace seatrial::impact {

// An addition, multiplication, division or square root is one flop; a comparison is none.
struct Counted {
  double value = 0;
  static inline std::size_t operations = 0;

  static Counted of(double value) noexcept {
    ++operations;
    return {value};
  }
  friend Counted operator+(Counted a, Counted b) noexcept { return of(a.value + b.value); }
  friend Counted operator-(Counted a, Counted b) noexcept { return of(a.value - b.value); }
  friend Counted operator*(Counted a, Counted b) noexcept { return of(a.value * b.value); }
  friend Counted operator/(Counted a, Counted b) noexcept { return of(a.value / b.value); }
  friend Counted operator+(Counted a, double b) noexcept { return of(a.value + b); }
  friend Counted operator-(Counted a, double b) noexcept { return of(a.value - b); }
  friend Counted operator*(Counted a, double b) noexcept { return of(a.value * b); }
  friend Counted operator/(double a, Counted b) noexcept { return of(a / b.value); }
};

struct CountedMath {
  static Counted root(Counted x) noexcept { return Counted::of(std::sqrt(x.value)); }
  static Counted positive(Counted x) noexcept { return x.value > 0 ? x : Counted{}; }
  static Counted negative(Counted x) noexcept { return x.value < 0 ? x : Counted{}; }
  static Counted larger(Counted x, double least) noexcept {
    return x.value > least ? x : Counted{least};
  }
  static Counted where_positive(Counted x, Counted yes, double no) noexcept {
    return x.value > 0 ? yes : Counted{no};
  }
};

// The flop of one element in one step; signs that are changed by 0 - x are counted.
[[nodiscard]] inline std::size_t flop_of_an_element(const Material& material) {
  Counted x[3][corners];
  Counted v[3][corners];
  for (std::size_t corner = 0; corner < corners; ++corner)
    for (std::size_t i = 0; i < 3; ++i) {
      x[i][corner].value = static_cast<double>(corner >> i & 1);
      v[i][corner].value = 0;
    }
  Stress<Counted> stress{};
  Counted::operations = 0;
  element_step<CountedMath>(x, v, stress, ElementConstants<double>(material), 1e-9);
  return Counted::operations;
}

} // namespace seatrial::impact
