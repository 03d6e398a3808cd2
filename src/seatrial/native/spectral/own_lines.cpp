// Our own Fourier transform: Stockham's algorithm with radices 8, 5, 4, 3 and 2 (C. Van Loan,
// Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7).
//
// A few columns at a time are copied by the first pass into buffers that fit the first cache, and
// back by the last one.
#include "spectral/own_lines.hpp"

#include <cmath>
#include <cstddef>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "pages.hpp"
#include "vector.hpp"

namespace seatrial::spectral {

std::vector<int> radices_of(std::size_t n) {
  std::vector<int> radices;
  int twos = 0;
  for (; n % 2 == 0 && n > 0; n /= 2)
    ++twos;
  for (; twos == 3 || twos > 4; twos -= 3)
    radices.push_back(8);
  for (; twos >= 2; twos -= 2)
    radices.push_back(4);
  if (twos == 1)
    radices.push_back(2);
  for (const int odd : {5, 3})
    for (; n % static_cast<std::size_t>(odd) == 0 && n > 0; n /= static_cast<std::size_t>(odd))
      radices.push_back(odd);
  return n == 1 ? radices : std::vector<int>{};
}

namespace {

template <class Real>
class OwnLines final : public Lines<Real> {
public:
  explicit OwnLines(const LinesShape& shape)
      : shape_(shape), rotation_(alternating(static_cast<Real>(shape.sign))),
        buffers_(2 * shape.n * wide * sizeof(V), true) {
    std::size_t length = shape.n;
    std::size_t stride = 1;
    for (const int radix : radices_of(shape.n)) {
      const auto r = static_cast<std::size_t>(radix);
      Pass pass{.radix = radix, .groups = length / r, .stride = stride, .twiddles = {}};
      for (std::size_t p = 0; p < pass.groups; ++p)
        for (std::size_t j = 1; j < r; ++j) {
          const double angle = shape.sign * 2 * std::numbers::pi * static_cast<double>(j * p) /
                               static_cast<double>(length);
          pass.twiddles.push_back(
              {static_cast<Real>(std::cos(angle)), static_cast<Real>(std::sin(angle))});
        }
      passes_.push_back(std::move(pass));
      length /= r;
      stride *= r;
    }
  }

  void transform(Complex<Real>* plane) const override {
    constexpr std::size_t in_vector = lanes<Real> / 2;
    const std::size_t vectors = (shape_.batch + in_vector - 1) / in_vector;
    const std::size_t lead = shape_.lead / in_vector;
    V* const columns = reinterpret_cast<V*>(plane);
    std::size_t at = 0;
    for (; at + wide <= vectors; at += wide)
      block<wide>(columns + at, lead);
    for (; at < vectors; ++at)
      block<1>(columns + at, lead);
  }

private:
  using V = Vector<Real>;
  static constexpr std::size_t wide = 4; // vectors of a row that are transformed together

  struct Pass {
    int radix;
    std::size_t groups;
    std::size_t stride;
    std::vector<Complex<Real>> twiddles; // of each group, without the first
  };

  struct Rows {
    V* first;
    std::size_t lead; // in vectors
  };

  [[nodiscard]] static V alternating(Real value) noexcept {
    V vector{};
    for (std::size_t i = 0; i < lanes<Real>; i += 2) {
      vector[i] = -value;
      vector[i + 1] = value;
    }
    return vector;
  }

  // Exchanges real and imaginary parts.
  [[gnu::always_inline]] static V swapped(V x) noexcept {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return __builtin_shufflevector(x, x, static_cast<int>(i ^ 1)...);
    }
    (std::make_index_sequence<lanes<Real>>{});
  }

  template <std::size_t width>
  void block(V* columns, std::size_t lead) const {
    Rows buffers[2] = {{reinterpret_cast<V*>(buffers_.data()), width},
                       {reinterpret_cast<V*>(buffers_.data()) + shape_.n * wide, width}};
    const Rows outside{columns, lead};
    Rows from = outside;
    for (std::size_t i = 0; i < passes_.size(); ++i) {
      const Rows to = i + 1 == passes_.size() ? outside : buffers[i % 2];
      run<width>(passes_[i], from, to);
      from = to;
    }
  }

  template <std::size_t width>
  void run(const Pass& pass, Rows from, Rows to) const {
    switch (pass.radix) {
    case 8:
      return rows<8, width>(pass, from, to);
    case 5:
      return rows<5, width>(pass, from, to);
    case 4:
      return rows<4, width>(pass, from, to);
    case 3:
      return rows<3, width>(pass, from, to);
    default:
      return rows<2, width>(pass, from, to);
    }
  }

  template <std::size_t radix, std::size_t width>
  void rows(const Pass& pass, Rows from, Rows to) const {
    if (pass.groups == 1)
      group<radix, width, false>(pass, 0, from, to);
    else
      for (std::size_t p = 0; p < pass.groups; ++p)
        group<radix, width, true>(pass, p, from, to);
  }

  template <std::size_t radix, std::size_t width, bool turns>
  [[gnu::always_inline]] void group(const Pass& pass, std::size_t p, Rows from, Rows to) const {
    const V rotation = rotation_;
    V cosines[radix] = {};
    V sines[radix] = {};
    if constexpr (turns)
      for (std::size_t j = 1; j < radix; ++j) {
        const auto [re, im] = pass.twiddles[p * (radix - 1) + j - 1];
        cosines[j] = V{} + re;
        sines[j] = alternating(im);
      }
    const std::size_t s = pass.stride;
    for (std::size_t q = 0; q < s; ++q) {
      const V* const in = from.first + (q + s * p) * from.lead;
      V* const out = to.first + (q + s * radix * p) * to.lead;
      for (std::size_t v = 0; v < width; ++v) {
        V x[radix];
        for (std::size_t k = 0; k < radix; ++k)
          x[k] = in[s * k * pass.groups * from.lead + v];
        butterfly(x, rotation);
        out[v] = x[0];
        for (std::size_t j = 1; j < radix; ++j)
          if constexpr (turns)
            out[s * j * to.lead + v] = x[j] * cosines[j] + swapped(x[j]) * sines[j];
          else
            out[s * j * to.lead + v] = x[j];
      }
    }
  }

  // Multiplies by `sign` i.
  [[gnu::always_inline]] static V turned(V x, V rotation) noexcept { return swapped(x) * rotation; }

  [[gnu::always_inline]] static void butterfly(V (&x)[2], V) noexcept {
    const V difference = x[0] - x[1];
    x[0] += x[1];
    x[1] = difference;
  }

  [[gnu::always_inline]] static void butterfly(V (&x)[3], V rotation) noexcept {
    const Real sine = static_cast<Real>(std::numbers::sqrt3 / 2);
    const V sum = x[1] + x[2];
    const V turn = turned(x[1] - x[2], rotation) * sine;
    const V middle = x[0] - sum * static_cast<Real>(0.5);
    x[0] += sum;
    x[1] = middle + turn;
    x[2] = middle - turn;
  }

  [[gnu::always_inline]] static void butterfly(V (&x)[4], V rotation) noexcept {
    const V a = x[0] + x[2];
    const V b = x[0] - x[2];
    const V c = x[1] + x[3];
    const V d = turned(x[1] - x[3], rotation);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  }

  [[gnu::always_inline]] static void butterfly(V (&x)[5], V rotation) noexcept {
    constexpr Real c1 = static_cast<Real>(0.30901699437494742410L); // cos 72 degrees
    constexpr Real c2 = static_cast<Real>(-0.80901699437494742410L);
    constexpr Real s1 = static_cast<Real>(0.95105651629515357212L); // sin 72 degrees
    constexpr Real s2 = static_cast<Real>(0.58778525229247312917L);
    const V sum1 = x[1] + x[4];
    const V sum2 = x[2] + x[3];
    const V difference1 = x[1] - x[4];
    const V difference2 = x[2] - x[3];
    const V a1 = x[0] + sum1 * c1 + sum2 * c2;
    const V a2 = x[0] + sum1 * c2 + sum2 * c1;
    const V b1 = turned(difference1 * s1 + difference2 * s2, rotation);
    const V b2 = turned(difference1 * s2 - difference2 * s1, rotation);
    x[0] += sum1 + sum2;
    x[1] = a1 + b1;
    x[2] = a2 + b2;
    x[3] = a2 - b2;
    x[4] = a1 - b1;
  }

  [[gnu::always_inline]] static void butterfly(V (&x)[8], V rotation) noexcept {
    const Real half_root = static_cast<Real>(std::numbers::sqrt2 / 2);
    V even[4] = {x[0], x[2], x[4], x[6]};
    V odd[4] = {x[1], x[3], x[5], x[7]};
    butterfly(even, rotation);
    butterfly(odd, rotation);
    odd[1] = (odd[1] + turned(odd[1], rotation)) * half_root;
    odd[2] = turned(odd[2], rotation);
    odd[3] = (turned(odd[3], rotation) - odd[3]) * half_root;
    for (std::size_t j = 0; j < 4; ++j) {
      x[j] = even[j] + odd[j];
      x[j + 4] = even[j] - odd[j];
    }
  }

  LinesShape shape_;
  V rotation_;
  std::vector<Pass> passes_;
  Pages buffers_;
};

} // namespace

template <class Real>
std::unique_ptr<Lines<Real>> own_lines(const LinesShape& shape) {
  return std::make_unique<OwnLines<Real>>(shape);
}

template std::unique_ptr<Lines<double>> own_lines<double>(const LinesShape& shape);
template std::unique_ptr<Lines<float>> own_lines<float>(const LinesShape& shape);

} // namespace seatrial::spectral
