// The nonlinear term u x omega of a velocity in wave space, up to its transform along z.
//
// Three transforms along z, y and x lead to physical space, where the product is taken, and three
// lead back. All three are batched over the direction that is contiguous in memory. Velocity and
// vorticity exist in physical space only a few lines at a time, so that a stage writes and reads
// the fields between the transforms, and nothing else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "clock.hpp"
#include "pages.hpp"
#include "spectral/decomposition.hpp"
#include "spectral/independent.hpp"
#include "spectral/lines.hpp"
#include "spectral/modes.hpp"
#include "team.hpp"

namespace seatrial::spectral {

// Makes the transform for a shape.
template <class Real>
using MakeLines = std::function<std::unique_ptr<Lines<Real>>(const LinesShape&)>;

// Where the time of a rank went, in seconds.
struct Spent {
  double transforms_s = 0;
  double exchanges_s = 0;
};

template <class Real>
class Product {
public:
  using Number = Complex<Real>;
  static constexpr std::size_t inputs = 6;  // velocity and vorticity
  static constexpr std::size_t outputs = 3; // their product

  // `team`: the threads of this rank; nullptr: only the calling one.
  Product(const Box& box, const RankGrid& ranks, const MakeLines<Real>& make, Team* team)
      : modes(box, ranks), ranks_(ranks), team_(team),
        n_(box.n), over_z_{box.n, ranks.columns}, over_y_{box.n, ranks.rows},
        nz_(over_z_.count(ranks.column)), ny_(over_y_.count(ranks.row)),
        lead_(round_up(modes.nx, lead_multiple<Real>)),
        kept_lead_(round_up(box.kept_x(), lead_multiple<Real>)),
        line_(ranks.columns > 1 ? modes.nx : lead_),
        along_z_(ranks.over_columns(), sent_along_z(), received_along_z(), inputs),
        along_y_(ranks.over_rows(), sent_along_y(), received_along_y(), inputs),
        zeros_(kept_lead_ * sizeof(Number), false),
        waves_(along_z_.sent_elements() * sizeof(Number) + 64, true),
        layers_((along_z_.is_needed() ? along_z_.received_elements() : 0) * sizeof(Number) + 64,
                true),
        pencils_((along_y_.is_needed() ? along_y_.sent_elements() : 0) * sizeof(Number) + 64, true),
        lines_((along_y_.is_needed() ? along_y_.received_elements() : 0) * sizeof(Number) + 64,
               true) {
    for (std::size_t t = 0; t < threads(); ++t) {
      auto& worker = workers_.emplace_back(
          std::make_unique<Worker>(inputs * plane_size(), inputs * n_ * block_lines, kept_lead_));
      worker->thread = t;
      for (const int sign : {+1, -1}) {
        const std::size_t i = sign < 0;
        worker->columns[i] = make({.n = n_, .batch = modes.nx, .lead = lead_, .sign = sign});
        worker->rows[i] = make({.n = n_, .batch = block_lines, .lead = block_lines, .sign = sign});
      }
    }
  }

  // Bytes that a rank allocates, before anything is allocated.
  [[nodiscard]] static double bytes(const Box& box, const RankGrid& ranks, std::size_t threads) {
    const auto of = [](std::size_t total, std::size_t parts) {
      return (total + parts - 1) / parts;
    };
    const double nx = static_cast<double>(of(box.kept_x(), ranks.rows));
    const double n = static_cast<double>(box.n);
    const double sent = nx * static_cast<double>(of(box.kept(), ranks.columns)) * n;
    const double received = nx * static_cast<double>(of(box.n, ranks.columns)) * n;
    const double exchanged =
        (ranks.columns > 1 ? sent + received : sent) + (ranks.rows > 1 ? 2 * received : 0);
    const double planes =
        static_cast<double>(threads) * n * (static_cast<double>(box.kept_x()) + 2 * block_lines);
    const double state =
        2 * 3 * nx * static_cast<double>(of(box.kept(), ranks.columns) * box.kept());
    return (inputs * (exchanged + planes) + state) * sizeof(Number);
  }

  // `fill(thread, y, field, plane)` writes the field of the local ky to the rows of `plane`: row
  // `box.place(z)` for each kept kz, `lead()` apart. `use(y, planes, apart)` gets the three
  // products, times 2 n^3, in planes of the same form, `apart` numbers apart. Both are called by
  // all threads, each for its own y.
  template <class Fill, class Use>
  void apply(Fill fill, Use use) {
    shared(modes.ny, [&](Worker& worker, std::size_t y) {
      for (std::size_t field = 0; field < inputs; ++field) {
        Number* const where = column_plane(worker, 0, field, y);
        clear_dropped(where, lead_);
        fill(worker.thread, y, field, where);
        transform(worker, *worker.columns[0], where);
        if (along_z_.is_needed())
          scatter_z(worker, y, field);
      }
    });
    exchange([&] {
      if (along_z_.is_needed())
        along_z_.there(waves(), layers(), inputs);
    });
    if (along_y_.is_needed())
      multiply_pencils();
    else
      shared(nz_, [&](Worker& worker, std::size_t z) {
        for (std::size_t field = 0; field < inputs; ++field)
          gather_layer(worker, z, field);
        multiply(worker);
        for (std::size_t field = 0; field < outputs; ++field)
          scatter_layer(worker, z, field);
      });
    exchange([&] {
      if (along_z_.is_needed())
        along_z_.back(layers(), waves(), outputs);
    });
    shared(modes.ny, [&](Worker& worker, std::size_t y) {
      Number* const first = column_plane(worker, 0, 0, y);
      const auto apart = static_cast<std::size_t>(column_plane(worker, 1, 1, y) - first);
      for (std::size_t field = 0; field < outputs; ++field) {
        if (along_z_.is_needed())
          gather_z(worker, y, field);
        transform(worker, *worker.columns[1], first + field * apart);
      }
      use(y, first, apart);
    });
  }

  // Only the transforms of one application, each where it is then; of zeros after clear().
  void transforms_only() {
    shared(modes.ny, [&](Worker& worker, std::size_t y) {
      for (std::size_t field = 0; field < inputs; ++field)
        transform(worker, *worker.columns[0], column_plane(worker, 0, field, y));
    });
    shared(nz_, [&](Worker& worker, std::size_t) {
      for (std::size_t field = 0; field < inputs; ++field)
        transform(worker, *worker.columns[0], plane(worker, field));
      for (std::size_t begin = 0; begin < (ny_ + 1) / 2; begin += block_lines) {
        for (std::size_t field = 0; field < inputs; ++field)
          transform(worker, *worker.rows[0], block(worker, field));
        for (std::size_t field = 0; field < outputs; ++field)
          transform(worker, *worker.rows[1], block(worker, field));
      }
      for (std::size_t field = 0; field < outputs; ++field)
        transform(worker, *worker.columns[1], plane(worker, field));
    });
    shared(modes.ny, [&](Worker& worker, std::size_t y) {
      for (std::size_t field = 0; field < outputs; ++field)
        transform(worker, *worker.columns[1], column_plane(worker, field, field, y));
    });
  }

  // Zeros in all that is transformed in place.
  void clear() {
    std::fill_n(waves(), along_z_.sent_elements(), Number{});
    for (const auto& worker : workers_) {
      std::fill_n(plane(*worker, 0), inputs * plane_size(), Number{});
      std::fill_n(block(*worker, 0), inputs * n_ * block_lines, Number{});
    }
  }

  // Only the exchanges of one application, with whatever the buffers contain.
  void exchange_only() {
    if (along_z_.is_needed())
      along_z_.there(waves(), layers(), inputs);
    if (along_y_.is_needed()) {
      along_y_.there(pencils(), lines(), inputs);
      along_y_.back(lines(), pencils(), outputs);
    }
    if (along_z_.is_needed())
      along_z_.back(layers(), waves(), outputs);
  }

  [[nodiscard]] std::size_t lead() const noexcept { return lead_; }
  [[nodiscard]] std::size_t plane_size() const noexcept { return n_ * std::max(lead_, kept_lead_); }
  // Bytes that this rank sends to others in one application.
  [[nodiscard]] double sent_B() const {
    const auto elements = along_z_.to_others(ranks_.column) + along_y_.to_others(ranks_.row);
    return static_cast<double>((inputs + outputs) * elements * sizeof(Number));
  }
  // Bytes of the buffers that one application writes or reads, each time counted.
  [[nodiscard]] double moved_B() const {
    const auto z = along_z_.sent_elements() / inputs, z_too = along_z_.received_elements() / inputs;
    const auto y = along_y_.is_needed() ? along_y_.sent_elements() / inputs : 0;
    const auto y_too = along_y_.is_needed() ? along_y_.received_elements() / inputs : 0;
    return static_cast<double>((inputs + outputs) * (z + z_too + y + y_too) * sizeof(Number));
  }
  // The largest buffer, between applications.
  [[nodiscard]] std::span<std::byte> buffer() const {
    return {waves_.data(), along_z_.sent_elements() * sizeof(Number)};
  }

  // Where the time went since forget(); that of transforms is the mean over the threads.
  [[nodiscard]] Spent spent() const noexcept {
    double transforms_s = 0;
    for (const auto& worker : workers_)
      transforms_s += worker->transforms_s;
    return {.transforms_s = transforms_s / static_cast<double>(threads()),
            .exchanges_s = exchanges_s_};
  }
  void forget() noexcept {
    exchanges_s_ = 0;
    for (auto& worker : workers_)
      worker->transforms_s = 0;
  }

  [[nodiscard]] std::size_t threads() const noexcept {
    return team_ == nullptr ? 1 : team_->size();
  }

  // Calls body(thread) on each thread.
  template <class Body>
  void on_all(Body body) const {
    if (team_ == nullptr)
      body(std::size_t{0});
    else
      team_->run(body);
  }

  const Modes modes;

private:
  static constexpr std::size_t block_lines =
      16; // pairs of lines along x that are transformed together

  // What a thread works on.
  struct alignas(128) Worker {
    Worker(std::size_t plane_numbers, std::size_t block_numbers, std::size_t line)
        : planes(plane_numbers * sizeof(Number), true), block(block_numbers * sizeof(Number), true),
          unused(line * sizeof(Number), false) {}
    Pages planes;
    Pages block;
    Pages unused;                            // a line that nobody reads
    std::unique_ptr<Lines<Real>> columns[2]; // along z and y
    std::unique_ptr<Lines<Real>> rows[2];    // along x
    std::size_t thread = 0;
    double transforms_s = 0;
  };

  // Calls body(worker, index) for each index below `count`; neighbours belong to one thread.
  template <class Body>
  void shared(std::size_t count, Body body) {
    on_all([&](std::size_t t) {
      auto& worker = *workers_[t];
      for (std::size_t at = count * t / threads(); at < count * (t + 1) / threads(); ++at)
        body(worker, at);
    });
  }

  // Of one field, to each rank: along z [ky][z][kx] of that rank's z; along y [z][y][kx].
  [[nodiscard]] std::vector<std::size_t> sent_along_z() const {
    std::vector<std::size_t> elements;
    for (std::size_t c = 0; c < ranks_.columns; ++c)
      elements.push_back(modes.ny * over_z_.count(c) * line_);
    return elements;
  }
  [[nodiscard]] std::vector<std::size_t> received_along_z() const {
    std::vector<std::size_t> elements;
    for (std::size_t c = 0; c < ranks_.columns; ++c)
      elements.push_back(modes.over_y.count(c) * nz_ * line_);
    return elements;
  }
  [[nodiscard]] std::vector<std::size_t> sent_along_y() const {
    std::vector<std::size_t> elements;
    for (std::size_t r = 0; r < ranks_.rows; ++r)
      elements.push_back(nz_ * over_y_.count(r) * modes.nx);
    return elements;
  }
  [[nodiscard]] std::vector<std::size_t> received_along_y() const {
    std::vector<std::size_t> elements;
    for (std::size_t r = 0; r < ranks_.rows; ++r)
      elements.push_back(nz_ * ny_ * modes.over_x.count(r));
    return elements;
  }

  [[nodiscard]] static Number* numbers(const Pages& pages) noexcept {
    return reinterpret_cast<Number*>(pages.data());
  }
  [[nodiscard]] Number* plane(const Worker& worker, std::size_t field) const {
    return numbers(worker.planes) + field * plane_size();
  }
  // Where the transform along z of a ky is: in the buffer of the exchange, if there is none.
  [[nodiscard]] Number* column_plane(const Worker& worker, std::size_t own, std::size_t field,
                                     std::size_t y) const {
    return along_z_.is_needed() ? plane(worker, own) : waves() + sent_line(0, field, y, 0);
  }
  [[nodiscard]] Number* block(const Worker& worker, std::size_t field) const {
    return numbers(worker.block) + field * n_ * block_lines;
  }
  [[nodiscard]] Number* waves() const { return numbers(waves_); }
  // Without an exchange, the same data in the same order.
  [[nodiscard]] Number* layers() const { return along_z_.is_needed() ? numbers(layers_) : waves(); }
  [[nodiscard]] Number* pencils() const { return numbers(pencils_); }
  [[nodiscard]] Number* lines() const { return numbers(lines_); }

  static void transform(Worker& worker, const Lines<Real>& lines, Number* plane) {
    const auto start = Clock::now();
    lines.transform(plane);
    worker.transforms_s += seconds(Clock::now() - start);
  }

  template <class Action>
  void exchange(Action action) {
    exchanges_s_ += timed(action).elapsed_s();
  }

  // The rows of wave numbers that are not kept.
  void clear_dropped(Number* plane, std::size_t lead) const {
    const std::size_t first = modes.box.kept_x(), count = n_ - modes.box.kept();
    std::fill_n(plane + first * lead, count * lead, Number{});
  }

  // The place of a line of kx in the buffer of one exchange.
  [[nodiscard]] std::size_t sent_line(std::size_t rank, std::size_t field, std::size_t y,
                                      std::size_t z) const {
    return along_z_.sent_at(rank) + ((field * modes.ny + y) * over_z_.count(rank) + z) * line_;
  }
  [[nodiscard]] std::size_t received_line(std::size_t rank, std::size_t field, std::size_t y,
                                          std::size_t z) const {
    return along_z_.received_at(rank) + ((field * modes.over_y.count(rank) + y) * nz_ + z) * line_;
  }

  void scatter_z(const Worker& worker, std::size_t y, std::size_t field) const {
    const Number* row = plane(worker, 0);
    for (std::size_t c = 0; c < ranks_.columns; ++c) {
      Number* to = waves() + sent_line(c, field, y, 0);
      for (std::size_t z = 0; z < over_z_.count(c); ++z, row += lead_, to += line_)
        std::copy_n(row, modes.nx, to);
    }
  }

  void gather_z(const Worker& worker, std::size_t y, std::size_t field) const {
    Number* row = plane(worker, field);
    for (std::size_t c = 0; c < ranks_.columns; ++c) {
      const Number* from = waves() + sent_line(c, field, y, 0);
      for (std::size_t z = 0; z < over_z_.count(c); ++z, row += lead_, from += line_)
        std::copy_n(from, modes.nx, row);
    }
  }

  // Visits (line in the layers, row of the plane) of each kept ky.
  template <class Visit>
  void each_y(const Worker& worker, std::size_t z, std::size_t field, Visit visit) const {
    for (std::size_t c = 0, index = 0; c < ranks_.columns; ++c)
      for (std::size_t y = 0; y < modes.over_y.count(c); ++y, ++index)
        visit(layers() + received_line(c, field, y, z),
              plane(worker, field) + modes.box.place(index) * lead_);
  }

  // A layer of constant z, transformed along y. Its lines are far apart: those to come are fetched
  // meanwhile.
  void gather_layer(Worker& worker, std::size_t z, std::size_t field) {
    constexpr std::size_t ahead = 8, cache_line = 64;
    const std::size_t apart = nz_ * line_;
    each_y(worker, z, field, [&](const Number* line, Number* row) {
      const char* next = reinterpret_cast<const char*>(line + ahead * apart);
      for (std::size_t at = 0; at < modes.nx * sizeof(Number); at += cache_line)
        __builtin_prefetch(next + at);
      std::copy_n(line, modes.nx, row);
    });
    clear_dropped(plane(worker, field), lead_);
    transform(worker, *worker.columns[0], plane(worker, field));
  }

  void scatter_layer(Worker& worker, std::size_t z, std::size_t field) {
    transform(worker, *worker.columns[1], plane(worker, field));
    each_y(worker, z, field,
           [&](Number* line, const Number* row) { std::copy_n(row, modes.nx, line); });
  }

  // Visits (line in the pencils, row of the plane) of each y: those that this rank has along kx.
  template <class Visit>
  void each_pencil(const Worker& worker, std::size_t z, std::size_t field, Visit visit) const {
    const Number* const first = plane(worker, field);
    for (std::size_t r = 0, row = 0; r < ranks_.rows; ++r) {
      Number* line =
          pencils() + along_y_.sent_at(r) + (field * nz_ + z) * over_y_.count(r) * modes.nx;
      for (std::size_t y = 0; y < over_y_.count(r); ++y, ++row, line += modes.nx)
        visit(line, const_cast<Number*>(first) + row * lead_);
    }
  }

  // Visits (piece of a line, piece of a row, elements) of each y of this rank.
  template <class Visit>
  void each_piece(const Worker& worker, std::size_t z, std::size_t field, Visit visit) const {
    for (std::size_t r = 0; r < ranks_.rows; ++r) {
      const std::size_t count = modes.over_x.count(r);
      Number* piece = lines() + along_y_.received_at(r) + (field * nz_ + z) * ny_ * count;
      Number* row = plane(worker, field) + modes.over_x.begin(r);
      for (std::size_t y = 0; y < ny_; ++y, piece += count, row += kept_lead_)
        visit(piece, row, count);
    }
  }

  void multiply_pencils() {
    shared(nz_, [&](Worker& worker, std::size_t z) {
      for (std::size_t field = 0; field < inputs; ++field) {
        gather_layer(worker, z, field);
        each_pencil(worker, z, field,
                    [&](Number* line, const Number* row) { std::copy_n(row, modes.nx, line); });
      }
    });
    exchange([&] { along_y_.there(pencils(), lines(), inputs); });
    shared(nz_, [&](Worker& worker, std::size_t z) {
      for (std::size_t field = 0; field < inputs; ++field)
        each_piece(worker, z, field, [](const Number* piece, Number* row, std::size_t count) {
          std::copy_n(piece, count, row);
        });
      multiply(worker);
      for (std::size_t field = 0; field < outputs; ++field)
        each_piece(worker, z, field, [](Number* piece, const Number* row, std::size_t count) {
          std::copy_n(row, count, piece);
        });
    });
    exchange([&] { along_y_.back(lines(), pencils(), outputs); });
    shared(nz_, [&](Worker& worker, std::size_t z) {
      for (std::size_t field = 0; field < outputs; ++field) {
        each_pencil(worker, z, field,
                    [&](const Number* line, Number* row) { std::copy_n(line, modes.nx, row); });
        scatter_layer(worker, z, field);
      }
    });
  }

  // Along x, a real line has half of the spectrum; two lines make a complex one: the upper half of
  // the rows is transformed as the imaginary part of the lower half.
  void multiply(Worker& worker) {
    Number* const first = plane(worker, 0);
    const std::size_t lead = kept_lead_;
    const std::size_t half = (ny_ + 1) / 2;
    for (std::size_t begin = 0; begin < half; begin += block_lines) {
      for (std::size_t field = 0; field < inputs; ++field) {
        pack(first + field * plane_size(), lead, begin, half, block(worker, field));
        transform(worker, *worker.rows[0], block(worker, field));
      }
      cross(worker);
      for (std::size_t field = 0; field < outputs; ++field) {
        transform(worker, *worker.rows[1], block(worker, field));
        unpack(worker, block(worker, field), first + field * plane_size(), lead, begin, half);
      }
    }
  }

  // Lines of a block in whole cache lines, so that each is written once.
  static constexpr std::size_t together = 4;

  // Lines of a block and their partners; without one, `other`.
  struct Pairs {
    Number* first[together];
    Number* second[together];
  };
  [[nodiscard]] Pairs pairs(Number* plane, std::size_t lead, std::size_t begin, std::size_t half,
                            Number* other) const {
    Pairs pairs{};
    for (std::size_t j = 0; j < together; ++j) {
      const std::size_t y = begin + j;
      pairs.first[j] = y < half ? plane + y * lead : other;
      pairs.second[j] = y < half && y + half < ny_ ? plane + (y + half) * lead : other;
    }
    return pairs;
  }

  // first + i second for kx, and the same of their conjugates for -kx.
  void pack(Number* plane, std::size_t lead, std::size_t begin, std::size_t half,
            Number* block) const {
    const std::size_t kept = modes.box.kept_x();
    std::fill_n(block + kept * block_lines, (n_ - modes.box.kept()) * block_lines, Number{});
    for (std::size_t i = 0; i < block_lines; i += together) {
      const auto from = pairs(plane, lead, begin + i, half, numbers(zeros_));
      Number* up = block + i;
      Number* down = block + n_ * block_lines + i;
      for (std::size_t j = 0; j < together; ++j)
        up[j] = {from.first[j]->re, from.second[j]->re}; // the mean of a real line is real
      for (std::size_t k = 1; k < kept; ++k) {
        up += block_lines;
        down -= block_lines;
        for (std::size_t j = 0; j < together; ++j) {
          const Number a = from.first[j][k], b = from.second[j][k];
          up[j] = {a.re - b.im, a.im + b.re};
          down[j] = {a.re + b.im, b.re - a.im};
        }
      }
    }
  }

  // The inverse, without the factor 1/2.
  void unpack(const Worker& worker, const Number* block, Number* plane, std::size_t lead,
              std::size_t begin, std::size_t half) const {
    const std::size_t kept = modes.box.kept_x();
    for (std::size_t i = 0; i < block_lines; i += together) {
      const auto to = pairs(plane, lead, begin + i, half, numbers(worker.unused));
      const Number* up = block + i;
      const Number* down = block + n_ * block_lines + i;
      for (std::size_t j = 0; j < together; ++j) {
        to.first[j][0] = {2 * up[j].re, 0};
        to.second[j][0] = {2 * up[j].im, 0};
      }
      for (std::size_t k = 1; k < kept; ++k) {
        up += block_lines;
        down -= block_lines;
        for (std::size_t j = 0; j < together; ++j) {
          const Number one = up[j], other = down[j];
          to.first[j][k] = {one.re + other.re, one.im - other.im};
          to.second[j][k] = {one.im + other.im, other.re - one.re};
        }
      }
    }
  }

  // velocity x vorticity, point by point, in place of the velocity.
  void cross(const Worker& worker) const {
    Real* const u = &block(worker, 0)->re;
    const std::size_t apart = 2 * n_ * block_lines;
    Real* const v = u + apart;
    Real* const w = v + apart;
    const Real* const a = w + apart;
    const Real* const b = a + apart;
    const Real* const c = b + apart;
    SEATRIAL_INDEPENDENT
    for (std::size_t i = 0; i < apart; ++i) {
      const Real x = v[i] * c[i] - w[i] * b[i];
      const Real y = w[i] * a[i] - u[i] * c[i];
      const Real z = u[i] * b[i] - v[i] * a[i];
      u[i] = x;
      v[i] = y;
      w[i] = z;
    }
  }

  const RankGrid& ranks_;
  Team* team_;
  std::size_t n_;
  Partition over_z_;
  Partition over_y_;
  std::size_t nz_;
  std::size_t ny_;
  std::size_t lead_;      // of planes with this rank's kx
  std::size_t kept_lead_; // of planes with all kept kx
  std::size_t line_;      // of kx, in the exchange along z; padded if there is none
  Exchange<Real> along_z_;
  Exchange<Real> along_y_;
  Pages zeros_;                                  // a line
  Pages waves_;                                  // [ky][z][kx] in blocks by rank
  Pages layers_;                                 // after the exchange
  Pages pencils_;                                // [z][y][kx] in blocks by rank
  Pages lines_;                                  // after the exchange
  std::vector<std::unique_ptr<Worker>> workers_; // one for each thread
  double exchanges_s_ = 0;
};

} // namespace seatrial::spectral
