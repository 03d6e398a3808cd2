// One grid of the multigrid on a device: what level.hpp is on a processor, with the kernels of
// cg.cl.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/arrays.hpp"
#include "device/device.hpp"
#include "device/kernel.hpp"
#include "multigrid/order.hpp"
#include "multigrid/part.hpp"

namespace seatrial::multigrid {

using device::Array;
using device::Kernel;
using Doubles = const double*;
using Words = const std::uint32_t*;
using Word = std::uint32_t;

inline constexpr unsigned group = 128;

// Rows of a slice: a warp's, so that its accesses coalesce; an item of a CPU reads along its row.
[[nodiscard]] inline std::uint32_t slice_width(bool is_cpu) {
  return is_cpu ? 1 : 32;
}

struct Kernels {
  using Multiply = Kernel<Words, Doubles, Words, Doubles, Doubles, double*, Word>;
  using Forward =
      Kernel<Words, Doubles, Words, Doubles, Doubles, double*, double*, Word, Word, Word>;
  using Backward = Kernel<Words, Doubles, Words, Doubles, Doubles, double*, Word, Word>;
  using Restrict = Kernel<Words, Doubles, Words, Doubles, Doubles, Doubles, Words, double*, Word>;
  using Add = Kernel<Words, Doubles, double*, Word>;
  using Combine = Kernel<Doubles, Doubles, double*, double, double, Word>;
  using Dot = Kernel<Doubles, Doubles, double*, Word>;
  using Pack = Kernel<Doubles, Words, double*, Word>;

  [[nodiscard]] static device::Source source(std::string_view text, bool is_cpu) {
    return {.name = "cg.cl",
            .text = text,
            .defines = {"GROUP=" + std::to_string(group),
                        "WIDTH=" + std::to_string(slice_width(is_cpu)), "NONE=0xffffffffu"},
            .kernels = {Multiply::declared("matrix_times"), Forward::declared("sweep_forward"),
                        Backward::declared("sweep_backward"),
                        Restrict::declared("restrict_residual"), Add::declared("add_correction"),
                        Combine::declared("combine_vectors"), Dot::declared("scalar_product"),
                        Pack::declared("pack_rows")}};
  }

  explicit Kernels(device::Module& module)
      : multiply(module, "matrix_times"), forward(module, "sweep_forward"),
        backward(module, "sweep_backward"), restrict_to(module, "restrict_residual"),
        add(module, "add_correction"), combine(module, "combine_vectors"),
        dot(module, "scalar_product"), pack(module, "pack_rows") {}

  Multiply multiply;
  Forward forward;
  Backward backward;
  Restrict restrict_to;
  Add add;
  Combine combine;
  Dot dot;
  Pack pack;
};

class DeviceLevel {
public:
  // `coarse_rows`: for a coarse grid, the positions of its rows on the finer one.
  DeviceLevel(device::Device& device, device::Queue& queue, const Kernels& kernels,
              const Part& part, const Order& order, const Part* finer, const Order* finer_order)
      : queue_(queue), kernels_(kernels), is_cpu_(device.facts().is_cpu),
        units_(device.facts().compute_units), order_(order),
        size_(static_cast<Word>(order.rows.size())), columns_(size_ + part.columns() - part.rows()),
        host_(part, order, slice_width(is_cpu_)), bounds_(on_device(device, queue, host_.bounds)),
        values_(on_device(device, queue, host_.values)),
        indices_(on_device(device, queue, host_.columns)),
        diagonal_(on_device(device, queue, std::vector<double>(size_, diagonal))),
        t_(device, size_), fine_(on_device(device, queue, fine_rows(part, finer, finer_order))),
        r(device, size_), x(device, columns_) {
    values_B_ = static_cast<double>(host_.values.size()) * 12;
    host_ = {};
    for (auto* array : {&t_, &r, &x})
      queue.fill(array->memory(), 0, 0, array->bytes());
  }

  void forward(bool is_from_zero) {
    for (std::size_t stage = 0; stage + 1 < order_.stages.size(); ++stage) {
      const auto [first, rows] = rows_of(stage);
      kernels_.forward(queue_, grid(rows), bounds_, values_, indices_, diagonal_, r, x, t_, first,
                       rows, static_cast<Word>(is_from_zero));
    }
  }
  void backward() {
    for (std::size_t stage = order_.stages.size() - 1; stage-- > 0;) {
      const auto [first, rows] = rows_of(stage);
      kernels_.backward(queue_, grid(rows), bounds_, values_, indices_, diagonal_, t_, x, first,
                        rows);
    }
  }
  void restrict_to(const DeviceLevel& coarse) const {
    kernels_.restrict_to(queue_, grid(coarse.size_), bounds_, values_, indices_, r, t_, x,
                         coarse.fine_, coarse.r, coarse.size_);
  }
  void add_from(const DeviceLevel& coarse) const {
    kernels_.add(queue_, grid(coarse.size_), coarse.fine_, coarse.x, x, coarse.size_);
  }
  void multiply(const Array<double>& from, const Array<double>& to) const {
    kernels_.multiply(queue_, grid(size_), bounds_, values_, indices_, diagonal_, from, to, size_);
  }

  // A value that no result has, and that is finite: zeros of the padding are multiplied by it.
  void poison() {
    constexpr std::uint32_t large = 0x47474747;
    for (auto* array : {&t_, &r, &x})
      queue_.fill(array->memory(), 0, large, array->bytes());
  }

  // Restores the diagonal, or multiplies it by the factors of each row.
  void set_diagonal(std::span<const double> factors) {
    std::vector<double> made(size_, diagonal);
    for (std::size_t row = 0; row < factors.size(); ++row)
      made[order_.positions[row]] *= factors[row];
    queue_.write(diagonal_.memory(), 0, made.data(), diagonal_.bytes());
    queue_.finish();
  }

  [[nodiscard]] device::Grid grid(Word rows) const {
    const auto all = (rows + group - 1) / group;
    return {.groups = std::max(1U, is_cpu_ ? std::min(all, units_) : all), .items = group};
  }
  [[nodiscard]] const Order& order() const noexcept { return order_; }
  [[nodiscard]] Word size() const noexcept { return size_; }
  [[nodiscard]] Word columns() const noexcept { return columns_; }
  [[nodiscard]] double matrix_B() const noexcept { return values_B_; }
  [[nodiscard]] double vector_B() const noexcept { return 8.0 * size_; }

private:
  // The matrix on the host: all nonzeros but the diagonal, each slice as wide as its widest row.
  struct Host {
    Host() = default;
    Host(const Part& part, const Order& order, std::uint32_t width) {
      const auto size = static_cast<std::uint32_t>(order.rows.size());
      const auto for_each = [&](std::uint32_t position, auto action) {
        const auto row = order.rows[position];
        if (row == none)
          return;
        part.for_each_column(row, [&](std::uint32_t column) {
          if (column >= part.rows())
            action(std::size_t{1}, size + column - part.rows());
          else if (column != row)
            action(order.positions[column] < position ? std::size_t{0} : std::size_t{2},
                   order.positions[column]);
        });
      };
      std::uint32_t at = 0;
      for (std::uint32_t first = 0; first < size; first += width) {
        std::uint32_t most[3] = {};
        for (std::uint32_t lane = 0; lane < width; ++lane) {
          std::uint32_t count[3] = {};
          for_each(first + lane, [&](std::size_t kind, std::uint32_t) { ++count[kind]; });
          for (std::size_t kind = 0; kind < 3; ++kind)
            most[kind] = std::max(most[kind], count[kind]);
        }
        for (const auto each : most) {
          bounds.push_back(at);
          at += each;
        }
      }
      bounds.push_back(at);
      values.resize(std::size_t{at} * width);
      columns.resize(values.size());
      for (std::uint32_t first = 0; first < size; first += width)
        for (std::uint32_t lane = 0; lane < width; ++lane) {
          const auto slice = 3 * std::size_t{first / width};
          for (auto k = bounds[slice]; k < bounds[slice + 3]; ++k)
            columns[std::size_t{k} * width + lane] = first + lane;
          std::uint32_t count[3] = {};
          for_each(first + lane, [&](std::size_t kind, std::uint32_t column) {
            const auto entry = std::size_t{bounds[slice + kind] + count[kind]++} * width + lane;
            values[entry] = off_diagonal;
            columns[entry] = column;
          });
        }
    }

    std::vector<std::uint32_t> bounds;
    std::vector<double> values;
    std::vector<std::uint32_t> columns;
  };

  struct Rows {
    Word first;
    Word count;
  };
  [[nodiscard]] Rows rows_of(std::size_t stage) const {
    return {order_.stages[stage], order_.stages[stage + 1] - order_.stages[stage]};
  }

  // By the position of each row of this grid: the position of the same point on the finer one.
  [[nodiscard]] std::vector<std::uint32_t> fine_rows(const Part& part, const Part* finer,
                                                     const Order* finer_order) const {
    std::vector<std::uint32_t> found(finer == nullptr ? 1 : size_, none);
    for (std::uint32_t row = 0; finer != nullptr && row < part.rows(); ++row)
      found[order_.positions[row]] = finer_order->positions[finer->fine_row_of(row)];
    return found;
  }

  device::Queue& queue_;
  const Kernels& kernels_;
  bool is_cpu_;
  unsigned units_;
  const Order& order_;
  Word size_;    // positions
  Word columns_; // and points of other parts
  Host host_;
  double values_B_ = 0;
  Array<std::uint32_t> bounds_;
  Array<double> values_;
  Array<std::uint32_t> indices_;
  Array<double> diagonal_;
  Array<double> t_;
  Array<std::uint32_t> fine_;

public:
  Array<double> r;
  Array<double> x;
};

} // namespace seatrial::multigrid
