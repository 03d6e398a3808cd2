// Several elements at once, one in each lane of a vector; nodes are four numbers side by side, and
// a transposition brings those of several elements into lanes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "vector.hpp"

namespace seatrial::impact {

// Four numbers where no vector of the target holds them.
template <class Real>
struct Quad {
  Real value[4];

  Real& operator[](std::size_t at) noexcept { return value[at]; }
  const Real& operator[](std::size_t at) const noexcept { return value[at]; }
  Quad& operator+=(const Quad& other) noexcept {
    for (std::size_t i = 0; i < 4; ++i)
      value[i] += other[i];
    return *this;
  }
  friend Quad operator+(Quad a, const Quad& b) noexcept { return a += b; }
  friend Quad operator*(Quad a, Real factor) noexcept {
    for (auto& number : a.value)
      number *= factor;
    return a;
  }
};

// One node: three components and a fourth number.
template <class Real, bool fits = (lanes<Real> >= 4)>
struct FourOf {
  typedef Real type __attribute__((vector_size(4 * sizeof(Real))));
};
template <class Real>
struct FourOf<Real, false> {
  typedef Quad<Real> type;
};
template <class Real>
using Four = typename FourOf<Real>::type;

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SEATRIAL_SHUFFLES 1
#endif
#endif

// Element-wise operations that vectors have no operator for.
template <class Real>
[[gnu::always_inline]] inline Vector<Real> root(Vector<Real> x) noexcept {
  constexpr bool is_double = sizeof(Real) == 8;
#if defined(__AVX512F__)
  if constexpr (is_double)
    return _mm512_maskz_sqrt_pd(0xff, x); // GCC 12 warns of the plain form's undefined operand
  else
    return _mm512_maskz_sqrt_ps(0xffff, x);
#elif defined(__AVX__)
  if constexpr (is_double)
    return _mm256_sqrt_pd(x);
  else
    return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
  if constexpr (is_double)
    return _mm_sqrt_pd(x);
  else
    return _mm_sqrt_ps(x);
#elif defined(__aarch64__)
  if constexpr (is_double)
    return vsqrtq_f64(x);
  else
    return vsqrtq_f32(x);
#else
  for (std::size_t lane = 0; lane < lanes<Real>; ++lane)
    x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}

// The functions that an element needs beyond the operators of vectors.
template <class Real>
struct LaneMath {
  using V = Vector<Real>;
  [[gnu::always_inline]] static V root(V x) noexcept { return impact::root<Real>(x); }
  [[gnu::always_inline]] static V positive(V x) noexcept { return x > Real(0) ? x : V{}; }
  [[gnu::always_inline]] static V negative(V x) noexcept { return x < Real(0) ? x : V{}; }
  [[gnu::always_inline]] static V larger(V x, Real least) noexcept {
    const V other = V{} + least;
    return x > other ? x : other;
  }
  [[gnu::always_inline]] static V smaller(V a, V b) noexcept { return a < b ? a : b; }
  [[gnu::always_inline]] static V where_positive(V x, V yes, Real no) noexcept {
    const V other = V{} + no;
    return x > Real(0) ? yes : other;
  }
};

#if defined(SEATRIAL_SHUFFLES)

namespace detail {

// A rule maps a place within a group of four lanes to one of the eight numbers of two groups.
template <auto rule, std::size_t width, class V, std::size_t... lane>
[[gnu::always_inline]] inline V picked(V a, V b, std::index_sequence<lane...>) noexcept {
  constexpr auto from = [](std::size_t at) {
    const std::size_t place = rule[at % 4];
    return static_cast<int>(at / 4 * 4 + (place < 4 ? place : width + place - 4));
  };
  return __builtin_shufflevector(a, b, from(lane)...);
}

struct Rule {
  std::size_t place[4];
  constexpr std::size_t operator[](std::size_t at) const { return place[at]; }
};

template <Rule rule, class Real>
[[gnu::always_inline]] inline Vector<Real> pick(Vector<Real> a, Vector<Real> b) noexcept {
  return picked<rule, lanes<Real>>(a, b, std::make_index_sequence<lanes<Real>>());
}

template <std::size_t begin, class V, std::size_t... at>
[[gnu::always_inline]] inline auto part(V v, std::index_sequence<at...>) noexcept {
  return __builtin_shufflevector(v, v, static_cast<int>(begin + at)...);
}

template <class V, std::size_t... at>
[[gnu::always_inline]] inline auto joined(V a, V b, std::index_sequence<at...>) noexcept {
  return __builtin_shufflevector(a, b, static_cast<int>(at)...);
}

} // namespace detail

// Transposes each 4 x 4 group: rows of nodes become rows of components, and back.
template <class Real>
[[gnu::always_inline]] inline void transpose(Vector<Real> (&rows)[4]) noexcept {
  using detail::pick;
  using detail::Rule;
  constexpr Rule low{{0, 1, 4, 5}};
  constexpr Rule high{{2, 3, 6, 7}};
  if constexpr (sizeof(Real) == 8) { // within halves of 128 bits, then across them
    constexpr Rule even{{0, 4, 2, 6}};
    constexpr Rule odd{{1, 5, 3, 7}};
    const auto a = pick<even, Real>(rows[0], rows[1]);
    const auto b = pick<odd, Real>(rows[0], rows[1]);
    const auto c = pick<even, Real>(rows[2], rows[3]);
    const auto d = pick<odd, Real>(rows[2], rows[3]);
    rows[0] = pick<low, Real>(a, c);
    rows[1] = pick<low, Real>(b, d);
    rows[2] = pick<high, Real>(a, c);
    rows[3] = pick<high, Real>(b, d);
  } else {
    constexpr Rule first{{0, 4, 1, 5}};
    constexpr Rule second{{2, 6, 3, 7}};
    const auto a = pick<first, Real>(rows[0], rows[1]);
    const auto b = pick<second, Real>(rows[0], rows[1]);
    const auto c = pick<first, Real>(rows[2], rows[3]);
    const auto d = pick<second, Real>(rows[2], rows[3]);
    rows[0] = pick<low, Real>(a, c);
    rows[1] = pick<high, Real>(a, c);
    rows[2] = pick<low, Real>(b, d);
    rows[3] = pick<high, Real>(b, d);
  }
}

#endif

// `apart`: the numbers from one node to the next.
template <class Real, std::size_t apart>
[[gnu::always_inline]] inline Four<Real> node_at(const Real* values, std::uint32_t node) noexcept {
  Four<Real> found;
  std::memcpy(&found, values + std::size_t{node} * apart, sizeof found);
  return found;
}

template <class Real, std::size_t apart>
[[gnu::always_inline]] inline void put_node(Real* values, std::uint32_t node,
                                            Four<Real> value) noexcept {
  std::memcpy(values + std::size_t{node} * apart, &value, sizeof value);
}

// The three components of one node of each element.
template <class Real, std::size_t apart>
[[gnu::always_inline]] inline void gather(const Real* values, const std::uint32_t* nodes,
                                          Vector<Real> (&out)[3]) noexcept {
#if defined(SEATRIAL_SHUFFLES)
  if constexpr (lanes<Real> >= 4) {
    Vector<Real> rows[4];
    for (std::size_t row = 0; row < 4; ++row) {
      if constexpr (lanes<Real> == 4) {
        rows[row] = node_at<Real, apart>(values, nodes[row]);
      } else if constexpr (lanes<Real> == 8) {
        rows[row] = detail::joined(node_at<Real, apart>(values, nodes[row]),
                                   node_at<Real, apart>(values, nodes[row + 4]),
                                   std::make_index_sequence<8>());
      } else {
        const auto low = detail::joined(node_at<Real, apart>(values, nodes[row]),
                                        node_at<Real, apart>(values, nodes[row + 4]),
                                        std::make_index_sequence<8>());
        const auto high = detail::joined(node_at<Real, apart>(values, nodes[row + 8]),
                                         node_at<Real, apart>(values, nodes[row + 12]),
                                         std::make_index_sequence<8>());
        rows[row] = detail::joined(low, high, std::make_index_sequence<16>());
      }
    }
    transpose<Real>(rows);
    for (std::size_t i = 0; i < 3; ++i)
      out[i] = rows[i];
    return;
  }
#endif
  for (std::size_t i = 0; i < 3; ++i) {
    Vector<Real> one{};
    for (std::size_t lane = 0; lane < lanes<Real>; ++lane)
      one[lane] = values[std::size_t{nodes[lane]} * apart + i];
    out[i] = one;
  }
}

// Adds to one node of each element, lane after lane: elements of a vector may share nodes.
template <class Real, std::size_t apart>
[[gnu::always_inline]] inline void scatter_add(Real* values, const std::uint32_t* nodes,
                                               const Vector<Real> (&in)[3]) noexcept {
#if defined(SEATRIAL_SHUFFLES)
  if constexpr (lanes<Real> >= 4) {
    Vector<Real> rows[4] = {in[0], in[1], in[2], Vector<Real>{}};
    transpose<Real>(rows);
    const auto add = [&]<std::size_t group>(std::integral_constant<std::size_t, group>) {
      for (std::size_t row = 0; row < 4; ++row) {
        const auto node = nodes[4 * group + row];
        Four<Real> mine;
        if constexpr (lanes<Real> == 4)
          mine = rows[row];
        else
          mine = detail::part<4 * group>(rows[row], std::make_index_sequence<4>());
        put_node<Real, apart>(values, node, node_at<Real, apart>(values, node) + mine);
      }
    };
    [&]<std::size_t... group>(std::index_sequence<group...>) {
      (add(std::integral_constant<std::size_t, group>()), ...);
    }
    (std::make_index_sequence<lanes<Real> / 4>());
    return;
  }
#endif
  for (std::size_t lane = 0; lane < lanes<Real>; ++lane)
    for (std::size_t i = 0; i < 3; ++i)
      values[std::size_t{nodes[lane]} * apart + i] += in[i][lane];
}

} // namespace seatrial::impact
