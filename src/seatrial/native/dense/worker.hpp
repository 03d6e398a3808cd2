// A worker of the grid: one device with its blocks of the matrix, and what it computes with them.
// Its copies of panels have their own queue, so that they pass while it computes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "dense/grid.hpp"
#include "dense/kernels.hpp"
#include "dense/system.hpp"
#include "device/device_program.hpp"
#include "device/kernel.hpp"
#include "device/tiled_gemm.hpp"
#include "device/vendor_blas.hpp"
#include "pages.hpp"

namespace seatrial::dense {

using device::Array;

// A range of local columns.
struct Columns {
  std::uint32_t begin;
  std::uint32_t count;
};

// The tuned library for a queue of a device; none: our own kernel does the products.
using BlasMaker =
    std::function<std::unique_ptr<device::Blas>(const device::Device&, device::Queue&)>;

template <class Real>
class Worker {
public:
  // The distance of the rows of a panel, and of its triangle's inverse: whole cache lines.
  [[nodiscard]] static std::uint32_t panel_pitch(std::uint32_t block) {
    return static_cast<std::uint32_t>(round_up(block, 64 / sizeof(Real)));
  }

  // `blas` loads a tuned library, which then does all matrix products.
  Worker(device::Device& device, bool is_optimised, std::string_view kernels, const Grid& grid,
         std::uint32_t number, const System& system, const BlasMaker& blas)
      : grid_(grid), system_(system), row_(grid.row_of(number)), column_(grid.column_of(number)),
        rows_(grid.rows(row_)), columns_(grid.columns_of_worker(column_)),
        pitch_(std::max(columns_, 1U)), panel_pitch_(panel_pitch(grid.block)),
        is_cpu_(device.facts().is_cpu), queue_(device.queue()), copying_(device.queue()),
        kernels_(device, is_optimised, kernels), blas_(blas ? blas(device, *queue_) : nullptr),
        a_(device, area(rows_, pitch_)), panels_{Array<Real>(device, area(rows_, panel_pitch_)),
                                                 Array<Real>(device, area(rows_, panel_pitch_))},
        inverse_(device, area(grid.block, panel_pitch_)),
        package_(device, area(2 * grid.block, pitch_)), staged_(device, area(grid.block, pitch_)),
        upper_(device, area(grid.block, pitch_)), list_(device, std::size_t{5} * grid.block),
        x_(device, grid.block), sums_(device, std::max(rows_, 1U)),
        diagonal_(device, system.diagonal().size()), wide_x_(device, grid.n),
        wide_products_(device, std::max(rows_, 1U)) {
    queue_->write(diagonal_.memory(), 0, system.diagonal().data(), diagonal_.bytes());
    queue_->finish();
  }

  [[nodiscard]] std::uint32_t row() const noexcept { return row_; }
  [[nodiscard]] std::uint32_t column() const noexcept { return column_; }
  [[nodiscard]] std::uint32_t rows() const noexcept { return rows_; }
  // The global index of a local row.
  [[nodiscard]] std::uint32_t global_row(std::uint32_t local) const noexcept {
    return (local / grid_.block * grid_.p + row_) * grid_.block + local % grid_.block;
  }
  // The columns to the right of a panel.
  [[nodiscard]] Columns after(const Step& step) const noexcept {
    const auto begin = grid_.columns_before(step.end, column_);
    return {begin, columns_ - begin};
  }
  // Bytes copied between host and device so far, in both directions.
  [[nodiscard]] double copied_B() const noexcept { return copied_B_; }

  void finish() { queue_->finish(); }
  void finish_copies() { copying_->finish(); }
  void flush() { queue_->flush(); }

  // Fills all memory that copies and kernels write with NaN, and makes the matrix.
  void make() {
    for (const auto* array :
         {&a_, &panels_[0], &panels_[1], &inverse_, &package_, &staged_, &upper_, &x_, &sums_})
      queue_->fill(array->memory(), 0, 0xffffffff, array->bytes());
    if (rows_ > 0 && columns_ > 0)
      kernels_.make(*queue_, over(rows_, columns_), a_, diagonal_,
                    std::uint32_t{system_.is_dominant()}, pitch_, rows_, columns_, grid_.block,
                    row_, grid_.p, column_, grid_.q, system_.row_length());
    queue_->finish();
  }

  // The panel of a step, packed: of the worker's rows from `begin` on.
  void pack_panel(const Step& step, std::uint32_t begin) {
    if (begin < rows_)
      kernels_.pack(*queue_, over(rows_ - begin, panel_pitch_), a_,
                    at(begin, grid_.columns_before(step.first, column_)), pitch_, panel(step),
                    rows_ - begin, step.width(), panel_pitch_);
    packed_ = queue_->mark();
    queue_->flush();
  }
  void await_panel() { static_cast<void>(queue_->seconds_between(*packed_, *packed_)); }
  // Its copy to the host, once it is packed.
  void read_panel(const Step& step, std::uint32_t rows, Real* to) {
    if (rows > 0)
      read(*copying_, to, panel(step), 0, std::size_t{rows} * panel_pitch_);
    copying_->flush();
  }
  // The factored panel, the inverse of its triangle, and the moves of rows.
  void write_factor(const Step& step, std::uint32_t rows, const Real* from, const Real* inverse,
                    const RowMoves& moves) {
    if (rows > 0)
      write(*copying_, panel(step), 0, from, std::size_t{rows} * panel_pitch_);
    write(*copying_, inverse_, 0, inverse, std::size_t{step.width()} * panel_pitch_);
    list_at_ = {};
    std::size_t end = 0;
    const std::array<const std::vector<std::uint32_t>*, 4> lists = {
        &moves.taken[row_], &moves.top, &moves.put_to[row_], &moves.put_from[row_]};
    for (std::size_t i = 0; i < lists.size(); ++i) {
      list_at_[i] = static_cast<std::uint32_t>(end);
      write(*copying_, list_, end, lists[i]->data(), lists[i]->size());
      end += lists[i]->size();
    }
    copying_->flush();
  }
  // The panel is kept in the matrix, for solutions with its lower triangle.
  void keep_panel(const Step& step, std::uint32_t begin) {
    if (begin < rows_)
      kernels_.unpack(*queue_, over(rows_ - begin, step.width()), a_,
                      at(begin, grid_.columns_before(step.first, column_)), pitch_, panel(step),
                      rows_ - begin, step.width(), panel_pitch_);
  }

  // The worker's rows that move, packed where they belong in the package of its column.
  void pack_rows(const Step& step, const RowMoves& moves) {
    const auto columns = after(step);
    const auto count = static_cast<std::uint32_t>(moves.taken[row_].size());
    if (count > 0 && columns.count > 0)
      kernels_.take(*queue_, over(count, columns.count), a_, std::uint64_t{columns.begin}, pitch_,
                    list_, list_at_[0], count, package_,
                    std::uint64_t{moves.begins[row_]} * columns.count, columns.count);
  }
  // `package` is all of it on the host.
  void read_rows(const Step& step, const RowMoves& moves, Real* package) {
    const std::size_t columns = after(step).count;
    const auto begin = moves.begins[row_] * columns;
    if (const auto count = moves.taken[row_].size() * columns; count > 0)
      read(*queue_, package + begin, package_, begin, count);
    queue_->flush();
  }
  void write_rows(const Step& step, const RowMoves& moves, const Real* package) {
    if (const auto count = std::size_t{moves.packed()} * after(step).count; count > 0)
      write(*queue_, package_, 0, package, count);
  }
  // With the package complete: the rows beside the diagonal block, solved by the inverse of its
  // triangle, and those that change places with them.
  void solve_rows(const Step& step, const RowMoves& moves) {
    const auto columns = after(step);
    if (columns.count == 0)
      return;
    const auto width = step.width();
    kernels_.take(*queue_, over(width, columns.count), package_, std::uint64_t{0}, columns.count,
                  list_, list_at_[1], width, staged_, std::uint64_t{0}, columns.count);
    multiply({inverse_, 0, panel_pitch_}, {staged_, 0, columns.count}, {upper_, 0, columns.count},
             width, columns.count, width, false);
    if (row_ == step.row)
      kernels_.unpack(*queue_, over(width, columns.count), a_,
                      at(grid_.rows_before(step.first, row_), columns.begin), pitch_, upper_, width,
                      columns.count, columns.count);
    if (const auto count = static_cast<std::uint32_t>(moves.put_to[row_].size()); count > 0)
      kernels_.put(*queue_, over(count, columns.count), a_, std::uint64_t{columns.begin}, pitch_,
                   list_, list_at_[2], list_at_[3], count, package_, columns.count);
  }

  // Subtracts the panel's product with those rows, in `columns` of those to its right.
  void update(const Step& step, Columns columns) {
    const auto first = grid_.rows_before(step.end, row_);
    if (columns.count == 0 || first == rows_)
      return;
    const auto right = after(step);
    const auto in_panel = first - grid_.rows_before(step.first, row_);
    multiply({panel(step), std::uint64_t{in_panel} * panel_pitch_, panel_pitch_},
             {upper_, std::uint64_t{columns.begin} - right.begin, right.count},
             {a_, at(first, columns.begin), pitch_}, rows_ - first, columns.count, step.width(),
             true);
  }

  // The last column of the matrix, once its owner has it: the right-hand side.
  void read_last_column(Real* to) {
    if (rows_ == 0)
      return;
    kernels_.pack(*queue_, over(rows_, 1), a_, std::uint64_t{columns_ - 1}, pitch_, panels_[0],
                  rows_, 1U, 1U);
    read(*queue_, to, panels_[0], 0, rows_);
    queue_->finish();
  }

  void clear_sums() { queue_->fill(sums_.memory(), 0, 0, sums_.bytes()); }
  void read_sums(std::uint32_t first, std::uint32_t rows, Real* to) {
    if (rows > 0)
      read(*queue_, to, sums_, first, rows);
    queue_->flush();
  }
  // Adds the products of a step's columns with x to the sums of `rows` rows from `first` on. `x`
  // must exist until the queue is finished.
  void add_products(const Step& step, const Real* x, std::uint32_t first, std::uint32_t rows) {
    if (rows == 0)
      return;
    write(*queue_, x_, 0, x, step.width());
    kernels_.add_products(*queue_, of_rows(rows), a_,
                          at(first, grid_.columns_before(step.first, column_)), pitch_, x_, sums_,
                          first, rows, step.width());
    queue_->flush();
  }

  // The worker's part of A x, with the matrix as it was made.
  void multiply_made(const std::vector<double>& x, std::vector<double>& products) {
    products.assign(rows_, 0);
    if (rows_ == 0 || columns_ == 0)
      return;
    write(*queue_, wide_x_, 0, x.data(), x.size());
    queue_->fill(wide_products_.memory(), 0, 0xffffffff, wide_products_.bytes());
    kernels_.multiply_made(*queue_, of_rows(rows_), diagonal_, wide_x_, wide_products_, rows_,
                           columns_, grid_.block, row_, grid_.p, column_, grid_.q,
                           system_.row_length());
    read(*queue_, products.data(), wide_products_, 0, rows_);
    queue_->flush();
  }

private:
  using K = Kernels<Real>;

  // A submatrix of what an array holds.
  struct Sub {
    const Array<Real>& array;
    std::uint64_t at;
    std::uint32_t pitch;
  };

  [[nodiscard]] static std::size_t area(std::size_t rows, std::size_t columns) {
    return std::max(rows * columns, std::size_t{1});
  }
  [[nodiscard]] std::uint64_t at(std::uint32_t row, std::uint32_t column) const noexcept {
    return std::uint64_t{row} * pitch_ + column;
  }
  [[nodiscard]] const Array<Real>& panel(const Step& step) const noexcept {
    return panels_[step.number % 2];
  }

  // For kernels that go over rows, and along them.
  [[nodiscard]] device::Grid over(std::uint32_t rows, std::uint32_t columns) const noexcept {
    constexpr unsigned most_groups = 65535;
    constexpr unsigned items = 128;
    if (is_cpu_)
      return {.groups = 1, .items = 1, .groups_y = std::min(rows, 64U)};
    return {.groups = std::clamp((columns + items - 1) / items, 1U, 64U),
            .items = items,
            .groups_y = std::min(rows, most_groups)};
  }
  [[nodiscard]] device::Grid of_rows(std::uint32_t rows) const noexcept {
    auto grid = over(rows, 1);
    if (!is_cpu_)
      grid.items = K::summed;
    return grid;
  }

  void multiply(const Sub& a, const Sub& b, const Sub& c, std::uint32_t m, std::uint32_t n,
                std::uint32_t k, bool is_update) {
    if (blas_) {
      constexpr auto precision =
          sizeof(Real) == sizeof(double) ? device::Precision::fp64 : device::Precision::fp32;
      blas_->multiply({.precision = precision,
                       .rows = m,
                       .columns = n,
                       .depth = k,
                       .is_transposed = false,
                       .alpha = is_update ? -1.0 : 1.0,
                       .beta = is_update ? 1.0 : 0.0},
                      {a.array.memory(), a.at, a.pitch}, {b.array.memory(), b.at, b.pitch},
                      {c.array.memory(), c.at, c.pitch});
      return;
    }
    const auto grid = device::gemm_grid<Real>(m, n, is_cpu_);
    kernels_.multiply(*queue_, grid, a.array, a.at, a.pitch, b.array, b.at, b.pitch, c.array, c.at,
                      c.pitch, m, n, k, std::uint32_t{is_update});
  }

  template <class Element>
  void read(device::Queue& queue, Element* to, const Array<Element>& from, std::size_t first,
            std::size_t count) {
    queue.read(to, from.memory(), first * sizeof(Element), count * sizeof(Element));
    copied_B_ += static_cast<double>(count * sizeof(Element));
  }
  template <class Element>
  void write(device::Queue& queue, const Array<Element>& to, std::size_t first, const Element* from,
             std::size_t count) {
    if (count > 0)
      queue.write(to.memory(), first * sizeof(Element), from, count * sizeof(Element));
    copied_B_ += static_cast<double>(count * sizeof(Element));
  }

  const Grid& grid_;
  const System& system_;
  std::uint32_t row_;
  std::uint32_t column_;
  std::uint32_t rows_;
  std::uint32_t columns_;
  std::uint32_t pitch_;
  std::uint32_t panel_pitch_;
  bool is_cpu_;
  std::unique_ptr<device::Queue> queue_;
  std::unique_ptr<device::Queue> copying_;
  K kernels_;
  std::unique_ptr<device::Blas> blas_;
  Array<Real> a_;
  std::array<Array<Real>, 2> panels_; // of even and odd steps: one is copied while one is used
  Array<Real> inverse_;
  Array<Real> package_;
  Array<Real> staged_;
  Array<Real> upper_;
  Array<std::uint32_t> list_;
  std::array<std::uint32_t, 4> list_at_{};
  Array<Real> x_;
  Array<Real> sums_;
  Array<double> diagonal_;
  Array<double> wide_x_;
  Array<double> wide_products_;
  std::unique_ptr<device::Mark> packed_; // the last panel
  double copied_B_ = 0;
};

} // namespace seatrial::dense
