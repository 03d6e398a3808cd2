#include "host_product.hpp"

#include <algorithm>
#include <cstring>

#include "unrolled.hpp"

namespace seatrial {

template <class Real>
void HostProduct<Real>::multiply(const Real* a, std::size_t lead_a, const Real* b,
                                 std::size_t lead_b, Real* c, std::size_t lead_c, std::size_t rows,
                                 std::size_t columns, std::size_t depth, Real alpha) {
  for (std::size_t j = 0; j < columns; j += wide)
    for (std::size_t k = 0; k < depth; k += deep) {
      const auto width = std::min(wide, columns - j);
      const auto length = std::min(deep, depth - k);
      pack_b(b + j * lead_b + k, lead_b, width, length, alpha);
      for (std::size_t i = 0; i < rows; i += high) {
        const auto height = std::min(high, rows - i);
        pack_a(a + k * lead_a + i, lead_a, height, length);
        multiply_packed(c + j * lead_c + i, lead_c, height, width, length, k == 0);
      }
    }
}

// Slivers of `along` rows, column after column; what is beyond the last row is zero.
template <class Real>
void HostProduct<Real>::pack_a(const Real* a, std::size_t lead, std::size_t height,
                               std::size_t length) {
  auto* to = packed_a();
  for (std::size_t i = 0; i < height; i += along) {
    const auto there = std::min(along, height - i);
    for (std::size_t k = 0; k < length; ++k, to += along) {
      std::memcpy(to, a + k * lead + i, bytes(there));
      std::fill(to + there, to + along, Real{0});
    }
  }
}

// Slivers of `across` columns, row after row, times alpha.
template <class Real>
void HostProduct<Real>::pack_b(const Real* b, std::size_t lead, std::size_t width,
                               std::size_t length, Real alpha) {
  auto* to = packed_b();
  for (std::size_t j = 0; j < width; j += across)
    for (std::size_t k = 0; k < length; ++k)
      for (std::size_t one = 0; one < across; ++one)
        *to++ = j + one < width ? alpha * b[(j + one) * lead + k] : Real{0};
}

template <class Real>
void HostProduct<Real>::multiply_packed(Real* c, std::size_t lead, std::size_t height,
                                        std::size_t width, std::size_t length, bool is_first) {
  for (std::size_t j = 0; j < width; j += across)
    for (std::size_t i = 0; i < height; i += along) {
      const auto* a = packed_a() + i * length;
      const auto* b = packed_b() + j * length;
      if (i + along <= height && j + across <= width) {
        multiply_block(a, b, length, c + j * lead + i, lead, is_first);
        continue;
      }
      Real block[along * across];
      multiply_block(a, b, length, block, along, true);
      for (std::size_t column = 0; column < std::min(across, width - j); ++column)
        for (std::size_t row = 0; row < std::min(along, height - i); ++row) {
          auto& to = c[(j + column) * lead + i + row];
          to = block[column * along + row] + (is_first ? Real{0} : to);
        }
    }
}

template <class Real>
void HostProduct<Real>::multiply_block(const Real* a, const Real* b, std::size_t length, Real* c,
                                       std::size_t lead, bool is_first) {
  Vector<Real> sums[across][vectors] = {};
  for (; length != 0; --length, a += along, b += across) {
    Vector<Real> column[vectors];
    unrolled<vectors>([&](std::size_t v) { column[v] = load(a + v * lanes<Real>); });
    unrolled<across>([&](std::size_t j) {
      const auto factor = everywhere(b[j]);
      unrolled<vectors>(
          [&](std::size_t v) { sums[j][v] = multiply_add(column[v], factor, sums[j][v]); });
    });
  }
  for (std::size_t j = 0; j < across; ++j)
    for (std::size_t v = 0; v < vectors; ++v) {
      auto* to = c + j * lead + v * lanes<Real>; // not aligned
      Vector<Real> before{};
      if (!is_first)
        std::memcpy(&before, to, sizeof before);
      const Vector<Real> after = before + sums[j][v];
      std::memcpy(to, &after, sizeof after);
    }
}

template <class Real>
void add_to(Real* to, const Real* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    to[i] += from[i];
}

template void add_to<float>(float*, const float*, std::size_t);
template void add_to<double>(double*, const double*, std::size_t);
template class HostProduct<float>;
template class HostProduct<double>;

} // namespace seatrial
