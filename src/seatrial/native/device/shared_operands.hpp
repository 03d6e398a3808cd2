// The matrices of a product that CPUs and devices share, and the blocks that fit into a device.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "device/host_memory.hpp"
#include "device/streamed_product.hpp"
#include "device/tiled_gemm.hpp"
#include "failure.hpp"
#include "host_share.hpp"
#include "matrix_product.hpp"
#include "team.hpp"

namespace seatrial::device {

enum class Form { split, blocked };

// How one product is shared, as the program's arguments say.
struct SharedSettings {
  Form form;
  bool is_fp64;
  bool uses_vendor_library;
  std::size_t n;
  std::uint32_t tile;     // 0: chosen here
  std::uint64_t resident; // bytes of device memory in use; 0: most of what is free
  HostKind host;
  HostBlas cpu;
};

// The blocks that fit into the memory of this device that may be used; throws Skip if none does.
// Large blocks are read least often, but the last block of a part is copied back while nothing is
// computed.
template <class Real>
[[nodiscard]] Blocking blocking_for(const Device& device, const SharedSettings& settings) {
  constexpr double usable = 0.8; // of free memory
  constexpr std::uint32_t largest_tile = 16384;
  constexpr std::uint32_t deepest = 1024;
  const auto memory =
      settings.resident != 0
          ? settings.resident
          : static_cast<std::uint64_t>(usable * static_cast<double>(device.free_bytes()));
  const auto whole = [](std::size_t size) {
    return static_cast<std::uint32_t>(round_up(std::max(size, std::size_t{1}), gemm_unit));
  };
  auto tile = settings.tile != 0 ? std::min(settings.tile, whole(settings.n))
                                 : std::min(whole(settings.n / 4), largest_tile);
  const auto fits = [&](Blocking blocking) { return blocking.elements() * sizeof(Real) <= memory; };
  for (;; tile -= gemm_unit) {
    for (auto depth = std::min({deepest, tile, whole(settings.n)}); depth >= gemm_unit;
         depth = depth / 2 / gemm_unit * gemm_unit)
      if (fits({.tile = tile, .depth = depth}))
        return {.tile = tile, .depth = depth};
    if (settings.tile != 0 || tile == gemm_unit)
      throw Skip("blocks of " + std::to_string(tile) + " x " + std::to_string(tile) + " need " +
                 std::to_string(Blocking{tile, gemm_unit}.elements() * sizeof(Real)) +
                 " B of the device's memory; " + std::to_string(memory) + " B may be used");
  }
}

// A and B, larger than the product by some rows and columns: each product starts at other ones, so
// that nothing that is left on a device from the last product is right in the next.
template <class Real>
class Operands {
public:
  Operands(Team& team, Device* device, const SharedSettings& settings)
      : n_(settings.n), side_(n_ + shifts), lead_(side_ + matrix_padding),
        a_(device, settings.host, bytes(side_), std::nullopt),
        b_(device, settings.host, bytes(side_), std::nullopt),
        c_(device, settings.host, bytes(n_), std::nullopt) {
    team.run([&](std::size_t member) {
      const auto [begin, end] = part_of(side_, member, team.size());
      for (std::size_t j = begin; j < end; ++j)
        for (std::size_t i = 0; i < side_; ++i) {
          data(a_)[j * lead_ + i] = random_input<Real>(j * side_ + i);
          data(b_)[j * lead_ + i] = random_input<Real>((side_ + j) * side_ + i);
        }
    });
  }

  [[nodiscard]] static std::uint64_t host_bytes(std::size_t n) noexcept {
    const std::uint64_t side = n + shifts;
    return 3 * side * (side + matrix_padding) * sizeof(Real);
  }

  [[nodiscard]] MatrixView<Real> a(std::size_t product) const {
    return {n_, lead_, data(a_) + product % shifts * lead_};
  }
  [[nodiscard]] MatrixView<Real> b(std::size_t product) const {
    const auto shift = product % shifts;
    return {n_, lead_, data(b_) + shift * lead_ + shift};
  }
  [[nodiscard]] MatrixView<Real> c() const { return {n_, lead_, data(c_)}; }

  // A power of two, so that it rounds nothing.
  [[nodiscard]] static double alpha(std::size_t product) noexcept {
    return std::exp2(static_cast<double>(product % 3));
  }

private:
  static constexpr std::size_t shifts = 16;

  [[nodiscard]] std::size_t bytes(std::size_t columns) const {
    return round_up(columns * lead_ * sizeof(Real), sizeof(std::uint64_t));
  }
  [[nodiscard]] static Real* data(const HostMemory& memory) {
    return reinterpret_cast<Real*>(memory.data());
  }

  std::size_t n_;
  std::size_t side_;
  std::size_t lead_;
  HostMemory a_;
  HostMemory b_;
  HostMemory c_;
};

} // namespace seatrial::device
