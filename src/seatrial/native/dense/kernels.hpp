// The kernels of linpack.cl, for one device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "device/device_program.hpp"
#include "device/kernel.hpp"
#include "device/tiled_gemm.hpp"

namespace seatrial::dense {

using device::Kernel;

template <class Real>
struct Kernels {
  using Count = std::uint32_t;
  using Offset = std::uint64_t;
  using Make = Kernel<Real*, const double*, Count, Count, Count, Count, Count, Count, Count, Count,
                      Count, Offset>;
  using Pack = Kernel<const Real*, Offset, Count, Real*, Count, Count, Count>;
  using Unpack = Kernel<Real*, Offset, Count, const Real*, Count, Count, Count>;
  using Take = Kernel<const Real*, Offset, Count, const Count*, Count, Count, Real*, Offset, Count>;
  using Put = Kernel<Real*, Offset, Count, const Count*, Count, Count, Count, const Real*, Count>;
  using Multiply = Kernel<const Real*, Offset, Count, const Real*, Offset, Count, Real*, Offset,
                          Count, Count, Count, Count, Count>;
  using AddProducts = Kernel<const Real*, Offset, Count, const Real*, Real*, Count, Count, Count>;
  using MultiplyMade = Kernel<const double*, const double*, double*, Count, Count, Count, Count,
                              Count, Count, Count, Offset>;

  static constexpr unsigned summed = 64; // items that sum up a row

  [[nodiscard]] static device::Source source(std::string_view text) {
    auto defines = device::tile_defines<Real>();
    defines.push_back("SUMMED=" + std::to_string(summed));
    return {.name = "linpack.cl",
            .text = text,
            .shared = seatrial_tiles(),
            .defines = std::move(defines),
            .kernels = {Make::declared("make_matrix"), Pack::declared("pack"),
                        Unpack::declared("unpack"), Take::declared("take_rows"),
                        Put::declared("put_rows"), Multiply::declared("multiply"),
                        AddProducts::declared("add_products"),
                        MultiplyMade::declared("multiply_made")}};
  }

  Kernels(device::Device& device, bool is_optimised, std::string_view text)
      : module(device.build(device::source_for(device, source(text), is_optimised))),
        make(*module, "make_matrix"), pack(*module, "pack"), unpack(*module, "unpack"),
        take(*module, "take_rows"), put(*module, "put_rows"), multiply(*module, "multiply"),
        add_products(*module, "add_products"), multiply_made(*module, "multiply_made") {}

  std::unique_ptr<device::Module> module;
  Make make;
  Pack pack;
  Unpack unpack;
  Take take;
  Put put;
  Multiply multiply;
  AddProducts add_products;
  MultiplyMade multiply_made;
};

} // namespace seatrial::dense
