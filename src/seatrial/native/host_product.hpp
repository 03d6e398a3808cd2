// C = alpha A B on one CPU, with matrices stored by columns: panels of both factors are packed so
// that they stay in its caches, and a block of C in registers (K. Goto and R. A. van de Geijn,
// "Anatomy of high-performance matrix multiplication", ACM TOMS 34, 2008).
#pragma once

#include <cstddef>

#include "pages.hpp"
#include "vector.hpp"

namespace seatrial {

template <class Real>
class HostProduct {
public:
  HostProduct() : a_(bytes(high * deep), true), b_(bytes(wide * deep), true) {}

  // C of rows x columns, A of rows x depth, B of depth x columns; the leads are the elements from
  // one column to the next. C is not read.
  void multiply(const Real* a, std::size_t lead_a, const Real* b, std::size_t lead_b, Real* c,
                std::size_t lead_c, std::size_t rows, std::size_t columns, std::size_t depth,
                Real alpha);

private:
  // A block of C in registers: `vectors` along a column, `across` columns. 32 vector registers hold
  // 27 or 29 numbers, 16 hold 15.
  static constexpr std::size_t vectors = vector_bits == 512 ? 3 : has_32_registers ? 4 : 2;
  static constexpr std::size_t across = vector_bits == 512 ? 8 : 6;
  static constexpr std::size_t along = vectors * lanes<Real>;
  // Packed panels: A's stays in the L2 cache (400 KB), a sliver of B's in L1, all of it in L3.
  static constexpr std::size_t deep = 256;
  static constexpr std::size_t high = round_up(1600 / sizeof(Real), along);
  static constexpr std::size_t wide = round_up(1024, across);

  [[nodiscard]] static constexpr std::size_t bytes(std::size_t elements) noexcept {
    return elements * sizeof(Real);
  }
  [[nodiscard]] Real* packed_a() const noexcept { return reinterpret_cast<Real*>(a_.data()); }
  [[nodiscard]] Real* packed_b() const noexcept { return reinterpret_cast<Real*>(b_.data()); }

  void pack_a(const Real* a, std::size_t lead, std::size_t height, std::size_t length);
  void pack_b(const Real* b, std::size_t lead, std::size_t width, std::size_t length, Real alpha);
  void multiply_packed(Real* c, std::size_t lead, std::size_t height, std::size_t width,
                       std::size_t length, bool is_first);
  static void multiply_block(const Real* a, const Real* b, std::size_t length, Real* c,
                             std::size_t lead, bool is_first);

  Pages a_;
  Pages b_;
};

// Adds the numbers of `from` to those of `to`.
template <class Real>
void add_to(Real* to, const Real* from, std::size_t count);

} // namespace seatrial
