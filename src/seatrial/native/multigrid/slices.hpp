// A part of a sparse matrix in slices of as many rows as a vector has lanes (SELL-C: M. Kreutzer et
// al., "A Unified Sparse Matrix Data Format for Efficient General Sparse Matrix-Vector
// Multiplication", 2014): all values, and a 32-bit column for each.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pages.hpp"
#include "unrolled.hpp"
#include "vector.hpp"

namespace seatrial::multigrid {

inline constexpr std::size_t width = lanes<double>;

// The elements of x at the columns: single loads, since gather instructions take longer on many
// processors; two columns are loaded at once, since loads are what this is bound by.
[[gnu::always_inline]] inline Vector<double> gathered(const double* x,
                                                      const std::uint32_t* columns) noexcept {
#if defined(__AVX__)
  const auto two = [&](std::size_t k) {
    std::uint64_t both = 0;
    __builtin_memcpy(&both, columns + k, sizeof both);
    asm("" : "+r"(both)); // else compilers load each column again
    return _mm_loadh_pd(_mm_load_sd(x + static_cast<std::uint32_t>(both)), x + (both >> 32));
  };
  const auto four = [&](std::size_t k) {
    return _mm256_insertf128_pd(_mm256_castpd128_pd256(two(k)), two(k + 2), 1);
  };
#if defined(__AVX512F__)
  // GCC 12 warns of the plain form's undefined operand.
  return _mm512_maskz_insertf64x4(0xff, _mm512_castpd256_pd512(four(0)), four(4), 1);
#else
  return four(0);
#endif
#else
  Vector<double> found;
  for (std::size_t lane = 0; lane < width; ++lane)
    found[lane] = x[columns[lane]];
  return found;
#endif
}

// An array in untouched pages: who writes an element first has its page near.
template <class Element>
class Untouched {
public:
  explicit Untouched(std::size_t count)
      : pages_(std::max(count, std::size_t{1}) * sizeof(Element), true), count_(count) {}

  [[nodiscard]] Element* data() const noexcept { return reinterpret_cast<Element*>(pages_.data()); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  Element& operator[](std::size_t at) const noexcept { return data()[at]; }

private:
  Pages pages_;
  std::size_t count_;
};

// `starts`: of each slice, in vectors, and the end.
class Slices {
public:
  explicit Slices(std::vector<std::uint32_t> starts)
      : starts_(std::move(starts)), values_(starts_.back() * width),
        columns_(starts_.back() * width) {}

  // Fills a slice with zeros whose column is the row itself.
  void clear(std::size_t slice) noexcept {
    for (std::size_t at = starts_[slice]; at < starts_[slice + 1]; ++at)
      for (std::size_t lane = 0; lane < width; ++lane) {
        values_[at * width + lane] = 0;
        columns_[at * width + lane] = static_cast<std::uint32_t>(slice * width + lane);
      }
  }
  void set(std::size_t slice, std::size_t lane, std::size_t k, double value,
           std::uint32_t column) noexcept {
    values_[(starts_[slice] + k) * width + lane] = value;
    columns_[(starts_[slice] + k) * width + lane] = column;
  }

  // The products of the rows of a slice with x.
  [[gnu::always_inline]] Vector<double> times(std::size_t slice, const double* x) const noexcept {
    Vector<double> even{};
    Vector<double> odd{};
    std::size_t at = starts_[slice];
    const std::size_t end = starts_[slice + 1];
    const double* values = values_.data();
    const std::uint32_t* columns = columns_.data();
    // Slices are short: what the processor itself reads ahead ends with each of them.
    const auto add = [&](std::size_t k, Vector<double>& sum) {
      __builtin_prefetch(values + (k + ahead) * width);
      if (k % 2 == 0)
        __builtin_prefetch(columns + (k + ahead) * width);
      sum = multiply_add(load(values + k * width), gathered(x, columns + k * width), sum);
    };
    for (; at + 4 <= end; at += 4)
      unrolled<4>([&](std::size_t k) { add(at + k, k % 2 == 0 ? even : odd); });
    for (; at < end; ++at)
      add(at, even);
    return even + odd;
  }

  // What a pass over all slices reads.
  [[nodiscard]] double bytes() const noexcept {
    return static_cast<double>(starts_.back()) * width * (sizeof(double) + sizeof(std::uint32_t)) +
           static_cast<double>(starts_.size()) * sizeof(std::uint32_t);
  }
  [[nodiscard]] double bytes_of(std::size_t slice) const noexcept {
    return static_cast<double>(starts_[slice + 1] - starts_[slice]) * width *
           (sizeof(double) + sizeof(std::uint32_t));
  }

private:
  static constexpr std::size_t ahead = 26; // vectors

  std::vector<std::uint32_t> starts_;
  Untouched<double> values_;
  Untouched<std::uint32_t> columns_;
};

} // namespace seatrial::multigrid
