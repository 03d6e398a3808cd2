// The tiled matrix product of gemm.cl: how it is compiled and launched.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "device/embedded.hpp"
#include "device/kernel.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_tiles, "device/tiles.h")

namespace seatrial::device {

// The sides of D and the depth are multiples of this: the largest tile of any variant.
inline constexpr std::uint32_t gemm_unit = 128;

// With B, and with its transpose.
inline constexpr std::array gemm_kernels = {"gemm", "gemm_transposed"};

// a, b, c, d, alpha, beta, depth, and the elements from one row of a, b and d to the next.
template <class Real>
using TiledGemm = Kernel<const Real*, const Real*, const Real*, Real*, Real, Real, std::uint32_t,
                         std::uint32_t, std::uint32_t, std::uint32_t>;

namespace detail {

constexpr unsigned group_side = 16;

// Elements per GPU item in each direction: as many as its registers hold.
template <class Real>
constexpr unsigned per_item = std::is_same_v<Real, float> ? 8 : 4;

// On a CPU: elements per cache line; an item takes two lines.
template <class Real>
constexpr unsigned lanes_of_line = 64 / sizeof(Real);
constexpr unsigned rows_of_item = 128;

} // namespace detail

// The sizes that kernels with tiles of a GPU, or strips of a CPU, are compiled with.
template <class Real>
[[nodiscard]] std::vector<std::string> tile_defines() {
  const auto real = type_name<Real>();
  const auto width = std::to_string(detail::lanes_of_line<Real>);
  return {"REAL=" + real,
          "real4=" + real + "4",
          "PER=" + std::to_string(detail::per_item<Real>),
          "vector=" + real + width,
          "LANES=" + width,
          "ROWS=" + std::to_string(detail::rows_of_item)};
}

// `text` is that of gemm.cl.
template <class Real>
[[nodiscard]] Source gemm_source(std::string_view text) {
  return {.name = "gemm.cl",
          .text = text,
          .shared = seatrial_tiles(),
          .defines = tile_defines<Real>(),
          .kernels = {TiledGemm<Real>::declared(gemm_kernels[0]),
                      TiledGemm<Real>::declared(gemm_kernels[1])}};
}

// For D of this size; groups at the edges may be partly beyond them.
template <class Real>
[[nodiscard]] Grid gemm_grid(std::uint32_t rows, std::uint32_t columns, bool is_cpu) {
  const auto parts = [](std::uint32_t size, unsigned part) { return (size + part - 1) / part; };
  if (is_cpu)
    return {.groups = parts(columns, 2 * detail::lanes_of_line<Real>),
            .items = 1,
            .groups_y = parts(rows, detail::rows_of_item)};
  constexpr unsigned side = detail::group_side * detail::per_item<Real>;
  return {.groups = parts(columns, side),
          .items = detail::group_side,
          .groups_y = parts(rows, side),
          .items_y = detail::group_side};
}

} // namespace seatrial::device
