// A matrix product on one device of matrices in host memory, which may be larger than the device's.
//
// A block of the result stays on the device while panels of both factors are streamed through it:
// each panel is read 1 / tile times per element of the result, the least for this memory. Copies to
// the device, products and copies to the host have a queue each, and overlap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/tiled_gemm.hpp"
#include "device/vendor_blas.hpp"

namespace seatrial::device {

// D = alpha L R for row-major matrices in host memory, with the elements from one row to the next.
template <class Real>
struct Piece {
  const Real* left;
  std::size_t lead_left;
  const Real* right;
  std::size_t lead_right;
  Real* result;
  std::size_t lead_result;
  std::size_t rows;
  std::size_t columns;
  std::size_t depth;

  [[nodiscard]] double flops() const noexcept {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(depth);
  }
};

// Blocks of the result of `tile` x `tile`, and panels of tile x `depth`: multiples of gemm_unit.
struct Blocking {
  static constexpr std::size_t results = 2; // one is computed while the other is copied
  static constexpr std::size_t panels = 3;  // of each factor

  std::uint32_t tile;
  std::uint32_t depth;

  [[nodiscard]] std::uint64_t elements() const noexcept {
    const std::uint64_t side = tile;
    return results * side * side + 2 * panels * side * depth;
  }
};

// How products are computed on a device.
struct DeviceProduct {
  std::string_view kernels; // the text of gemm.cl
  bool is_optimised;
  bool uses_vendor_library;
  std::string blas; // its file
};

template <class Real>
class StreamedProduct {
public:
  // Created and used by one thread.
  StreamedProduct(Device& device, const DeviceProduct& how, const Blocking& blocking)
      : blocking_(blocking), is_cpu_(device.facts().is_cpu), down_(device.queue()),
        compute_(device.queue()), up_(device.queue()) {
    const std::size_t panel = std::size_t{blocking.tile} * blocking.depth;
    for (std::size_t i = 0; i < Blocking::panels; ++i) {
      left_.emplace_back(device, panel);
      right_.emplace_back(device, panel);
    }
    for (std::size_t i = 0; i < Blocking::results; ++i)
      result_.emplace_back(device, std::size_t{blocking.tile} * blocking.tile);
    for (const auto* arrays : {&left_, &right_, &result_})
      for (const auto& array : *arrays)
        poison_arrays(*compute_, array);
    compute_->finish();
    if (how.uses_vendor_library) {
      blas_ = vendor_blas(device, *compute_, how.blas);
    } else {
      module_ = device.build(source_for(device, gemm_source<Real>(how.kernels), how.is_optimised));
      kernel_ = std::make_unique<TiledGemm<Real>>(*module_, gemm_kernels[0]);
    }
  }

  // The name of the vendor's library; "" without.
  [[nodiscard]] std::string library() const { return blas_ ? blas_->name() : ""; }

  // Computes the pieces one after another and waits for the last. Returns the seconds in which the
  // device multiplied.
  [[nodiscard]] double run(std::span<const Piece<Real>> pieces, double alpha) {
    for (const auto& piece : pieces)
      for (std::size_t row = 0; row < piece.rows; row += blocking_.tile)
        for (std::size_t column = 0; column < piece.columns; column += blocking_.tile)
          block(piece, row, column, alpha);
    up_->finish();
    double kernels_s = 0;
    for (const auto& [begin, end] : multiplied_)
      kernels_s += compute_->seconds_between(*begin, *end);
    multiplied_.clear();
    filled_.clear();
    read_.clear();
    steps_ = 0;
    return kernels_s;
  }

private:
  using Marks = std::pair<std::unique_ptr<Mark>, std::unique_ptr<Mark>>;

  // Submits one block of the result.
  void block(const Piece<Real>& piece, std::size_t row, std::size_t column, double alpha) {
    const auto rows = std::min<std::size_t>(blocking_.tile, piece.rows - row);
    const auto columns = std::min<std::size_t>(blocking_.tile, piece.columns - column);
    const auto number = read_.size();
    const auto& result = result_[number % Blocking::results];
    for (std::size_t k = 0; k < piece.depth; k += blocking_.depth) {
      const auto depth = std::min<std::size_t>(blocking_.depth, piece.depth - k);
      const auto slot = steps_ % Blocking::panels;
      if (steps_ >= Blocking::panels) // its panels were multiplied
        down_->wait_for(*multiplied_[steps_ - Blocking::panels].second);
      fill(left_[slot], piece.left + row * piece.lead_left + k, piece.lead_left, rows, depth,
           blocking_.depth, depth);
      fill(right_[slot], piece.right + k * piece.lead_right + column, piece.lead_right, depth,
           columns, blocking_.tile, depth);
      filled_.push_back(down_->mark());
      down_->flush();
      if (k == 0 && number >= Blocking::results) // the block in its memory was copied
        compute_->wait_for(*read_[number - Blocking::results]);
      compute_->wait_for(*filled_.back());
      auto begin = compute_->mark();
      multiply(left_[slot], right_[slot], result, rows, columns, depth, alpha, k == 0 ? 0 : 1);
      multiplied_.emplace_back(std::move(begin), compute_->mark());
      compute_->flush();
      ++steps_;
    }
    up_->wait_for(*multiplied_.back().second);
    up_->read_rows(piece.result + row * piece.lead_result + column, result.memory(),
                   {.rows = rows,
                    .bytes = columns * sizeof(Real),
                    .at = 0,
                    .pitch = blocking_.tile * sizeof(Real),
                    .host_pitch = piece.lead_result * sizeof(Real)});
    read_.push_back(up_->mark());
    up_->flush();
  }

  // Copies a panel of a factor. Our kernel's depth is rounded up: what it reads there must be zero.
  void fill(const Array<Real>& panel, const Real* from, std::size_t lead, std::size_t rows,
            std::size_t columns, std::size_t pitch, std::size_t depth) {
    if (kernel_ && depth % gemm_unit != 0)
      down_->fill(panel.memory(), 0, 0, panel.bytes());
    down_->write_rows(panel.memory(), from,
                      {.rows = rows,
                       .bytes = columns * sizeof(Real),
                       .at = 0,
                       .pitch = pitch * sizeof(Real),
                       .host_pitch = lead * sizeof(Real)});
  }

  void multiply(const Array<Real>& left, const Array<Real>& right, const Array<Real>& result,
                std::size_t rows, std::size_t columns, std::size_t depth, double alpha,
                double beta) {
    const auto narrow = [](std::size_t size) { return static_cast<std::uint32_t>(size); };
    if (blas_) {
      blas_->multiply({.precision = sizeof(Real) == 8 ? Precision::fp64 : Precision::fp32,
                       .rows = narrow(rows),
                       .columns = narrow(columns),
                       .depth = narrow(depth),
                       .is_transposed = false,
                       .alpha = alpha,
                       .beta = beta},
                      {left.memory(), 0, blocking_.depth}, {right.memory(), 0, blocking_.tile},
                      {result.memory(), 0, blocking_.tile});
      return;
    }
    const auto whole = [&](std::size_t size) { return narrow(round_up(size, gemm_unit)); };
    (*kernel_)(*compute_, gemm_grid<Real>(whole(rows), whole(columns), is_cpu_), left, right,
               result, result, static_cast<Real>(alpha), static_cast<Real>(beta), whole(depth),
               blocking_.depth, blocking_.tile, blocking_.tile);
  }

  Blocking blocking_;
  bool is_cpu_;
  std::unique_ptr<Queue> down_;
  std::unique_ptr<Queue> compute_;
  std::unique_ptr<Queue> up_;
  std::vector<Array<Real>> left_;
  std::vector<Array<Real>> right_;
  std::vector<Array<Real>> result_;
  std::unique_ptr<Module> module_;
  std::unique_ptr<TiledGemm<Real>> kernel_;
  std::unique_ptr<Blas> blas_;
  std::size_t steps_ = 0;
  std::vector<std::unique_ptr<Mark>> filled_; // by step
  std::vector<Marks> multiplied_;             // by step
  std::vector<std::unique_ptr<Mark>> read_;   // by block
};

} // namespace seatrial::device
