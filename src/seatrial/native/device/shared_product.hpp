// One product C = alpha A B of matrices in host memory by CPUs and devices together, in two forms:
// split by columns, each part getting what its speed allows; or blocked in quarters, eight products
// on the devices and four sums on the host.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/host_memory.hpp"
#include "device/shared_operands.hpp"
#include "device/streamed_product.hpp"
#include "host_product.hpp"
#include "host_share.hpp"
#include "matrix_product.hpp"
#include "team.hpp"

namespace seatrial::device {

// What a part did in a product.
struct Work {
  double flops = 0;
  double elapsed_s = 0;
  double kernels_s = 0; // of a device: when it multiplied

  [[nodiscard]] double rate() const noexcept { return elapsed_s > 0 ? flops / elapsed_s : 0; }
};

// One product: of each part, in order devices, CPUs.
struct Product {
  double elapsed_s = 0;
  double sums_s = 0;
  std::vector<Work> parts;
  std::vector<double> speeds; // by which it was split
};

// Members of the team: one for each device, then the threads of the host.
template <class Real>
class SharedProduct {
public:
  SharedProduct(Team& team, const ChosenDevices& chosen, const SharedSettings& settings,
                std::string_view kernels)
      : team_(team), chosen_(chosen), settings_(settings), n_(settings.n),
        operands_(team, chosen.size() > 0 ? &chosen[0] : nullptr, settings),
        streams_(chosen.size()), blockings_(chosen.size()), threads_(team.size()), seen_(parts()) {
    if (settings.form == Form::blocked)
      second_.emplace(chosen.size() > 0 ? &chosen[0] : nullptr, settings.host,
                      round_up(n_ * operands_.c().lead * sizeof(Real), sizeof(std::uint64_t)),
                      std::nullopt);
    const DeviceProduct how = {.kernels = kernels,
                               .is_optimised = chosen.is_optimised(),
                               .uses_vendor_library = settings.uses_vendor_library,
                               .blas = ""};
    team_.run([&](std::size_t member) {
      if (member < devices()) {
        blockings_[member] = blocking_for<Real>(chosen_[member], settings_);
        streams_[member] =
            std::make_unique<StreamedProduct<Real>>(chosen_[member], how, blockings_[member]);
      } else {
        threads_[member] = std::make_unique<HostShare<Real>>(settings_.cpu);
      }
    });
  }

  // The first speeds: of each part alone, again once all memory was used.
  void calibrate() {
    for (std::size_t part = 0; part < parts(); ++part)
      for (int time = 0; time < 2; ++time)
        seen_[part] = {alone(part).rate()};
  }

  // Devices are released by the threads that used them.
  void close() {
    team_.run([&](std::size_t member) {
      if (member < devices())
        streams_[member].reset();
    });
  }

  [[nodiscard]] std::size_t devices() const noexcept { return chosen_.size(); }
  [[nodiscard]] bool has_cpus() const noexcept {
    return settings_.form == Form::split && team_.size() > devices();
  }
  [[nodiscard]] std::size_t parts() const noexcept { return devices() + (has_cpus() ? 1 : 0); }
  [[nodiscard]] const Blocking& blocking(std::size_t device) const { return blockings_[device]; }
  [[nodiscard]] std::string library() const {
    return streams_.empty() ? "" : streams_[0]->library();
  }

  // One part alone, with blocks as in the product: the first of its columns that it would compute
  // in about a tenth of a second.
  [[nodiscard]] Work alone(std::size_t part) {
    constexpr double long_enough_s = 0.1;
    const double rate = latest(part);
    const auto least = part < devices() ? blockings_[part].tile : 32 * (team_.size() - devices());
    const double column_flops = 2.0 * static_cast<double>(n_) * static_cast<double>(n_);
    const auto wanted = static_cast<std::size_t>(rate * long_enough_s / column_flops);
    const Part columns = {0, std::min(n_, std::max<std::size_t>(least, wanted))};
    const auto product = products_++;
    std::vector<Work> works(parts());
    std::vector<Interval> spans(team_.size());
    std::vector<std::size_t> members;
    for (std::size_t member = 0; member < team_.size(); ++member)
      if (part_of_member(member) == part)
        members.push_back(member);
    team_.run_on(members, [&](std::size_t member) {
      or_end([&] { spans[member] = compute(member, columns, product, works); });
    });
    return finished(part, columns.end - columns.begin, spans, works);
  }

  // All parts at once.
  [[nodiscard]] Product run() {
    return settings_.form == Form::split ? run_split() : run_blocked();
  }

  // Fills C with NaN, as it is before each product whose result is checked.
  void poison() {
    const auto c = operands_.c();
    team_.run([&](std::size_t member) {
      const auto [begin, end] = part_of(n_, member, team_.size());
      for (std::size_t j = begin; j < end; ++j) {
        std::ranges::fill(c.column(j), std::numeric_limits<Real>::quiet_NaN());
        if (second_)
          std::fill_n(second() + j * c.lead, n_, std::numeric_limits<Real>::quiet_NaN());
      }
    });
  }

  // The errors of rows and of elements of the latest product.
  [[nodiscard]] std::pair<double, double> errors() {
    const auto product = products_ - 1;
    ProductVerifier<Real> verifier(team_, operands_.a(product), operands_.b(product));
    const auto factor = static_cast<long double>(operands_.alpha(product));
    return {verifier.row_error(operands_.c(), factor),
            verifier.element_error(operands_.c(), factor)};
  }

private:
  [[nodiscard]] std::size_t part_of_member(std::size_t member) const noexcept {
    return std::min(member, devices());
  }
  [[nodiscard]] Real* second() const { return reinterpret_cast<Real*>(second_->data()); }

  // The rate of a part in the latest products, by their median; 0 before the first.
  [[nodiscard]] double latest(std::size_t part) const {
    auto rates = seen_[part];
    if (rates.empty())
      return 0;
    const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(rates.size() / 2);
    std::ranges::nth_element(rates, middle);
    return *middle;
  }
  void observe(std::size_t part, const Work& work) {
    if (work.rate() > 0)
      seen_[part].push_back(work.rate());
  }

  [[nodiscard]] std::vector<double> speeds() {
    std::vector<double> all;
    for (std::size_t part = 0; part < parts(); ++part)
      all.push_back(latest(part));
    return all;
  }

  // The columns of each part: by speed, those of devices in whole units of their kernels if that
  // changes them by a few per cent at most.
  [[nodiscard]] std::vector<Part> split(const std::vector<double>& speeds) const {
    constexpr std::size_t units_of_rounded = 16;
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    std::vector<Part> columns;
    double before = 0;
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts(); ++part) {
      before += speeds[part];
      auto end = static_cast<std::size_t>(
          std::lround(static_cast<double>(n_) * (all > 0 ? before / all : 1)));
      if (part < devices() && end - begin >= units_of_rounded * gemm_unit)
        end = begin + (end - begin + gemm_unit / 2) / gemm_unit * gemm_unit;
      end = part + 1 == parts() ? n_ : std::min(end, n_);
      columns.push_back({begin, end});
      begin = end;
    }
    return columns;
  }

  // A member's share of some columns of C. Rows of a device's matrices are our columns.
  [[nodiscard]] Interval compute(std::size_t member, const Part& columns, std::size_t product,
                                 std::vector<Work>& works) {
    const auto a = operands_.a(product);
    const auto b = operands_.b(product);
    const auto c = operands_.c();
    const double alpha = operands_.alpha(product);
    if (member < devices()) {
      const Piece<Real> piece = {.left = b.data + columns.begin * b.lead,
                                 .lead_left = b.lead,
                                 .right = a.data,
                                 .lead_right = a.lead,
                                 .result = c.data + columns.begin * c.lead,
                                 .lead_result = c.lead,
                                 .rows = columns.end - columns.begin,
                                 .columns = n_,
                                 .depth = n_};
      return timed([&] { works[member].kernels_s = streams_[member]->run({&piece, 1}, alpha); });
    }
    const auto own =
        part_of(columns.end - columns.begin, member - devices(), team_.size() - devices());
    const auto begin = columns.begin + own.begin;
    return timed([&] {
      threads_[member]->multiply(a.data, a.lead, b.data + begin * b.lead, b.lead,
                                 c.data + begin * c.lead, c.lead, n_, own.end - own.begin, n_,
                                 static_cast<Real>(alpha));
    });
  }

  // From the first start of a member of the part to the last end.
  [[nodiscard]] Work finished(std::size_t part, std::size_t columns,
                              const std::vector<Interval>& spans,
                              const std::vector<Work>& works) const {
    const auto first = spans.begin() + static_cast<std::ptrdiff_t>(part);
    const auto last = part < devices() ? first + 1 : spans.end();
    const auto size = static_cast<double>(n_);
    return {.flops = 2 * size * size * static_cast<double>(columns),
            .elapsed_s = elapsed_s(std::span(first, last)),
            .kernels_s = works[part].kernels_s};
  }

  [[nodiscard]] Product run_split() {
    Product made;
    made.speeds = speeds();
    const auto columns = split(made.speeds);
    const auto product = products_++;
    std::vector<Interval> spans(team_.size());
    made.parts.resize(parts());
    team_.run([&](std::size_t member) {
      or_end([&] {
        spans[member] = compute(member, columns[part_of_member(member)], product, made.parts);
      });
    });
    made.elapsed_s = elapsed_s(spans);
    for (std::size_t part = 0; part < parts(); ++part) {
      made.parts[part] = finished(part, columns[part].end - columns[part].begin, spans, made.parts);
      observe(part, made.parts[part]);
    }
    return made;
  }

  // The eight products of quarters, in the order of C's quarters; the second of each pair goes to
  // its own memory.
  [[nodiscard]] std::vector<Piece<Real>> quarters(std::size_t product) const {
    const auto a = operands_.a(product);
    const auto b = operands_.b(product);
    const auto c = operands_.c();
    const std::array<Part, 2> halves = {{{0, (n_ + 1) / 2}, {(n_ + 1) / 2, n_}}};
    std::vector<Piece<Real>> pieces;
    for (const auto& k : halves)
      for (const auto& j : halves)
        for (const auto& i : halves)
          pieces.push_back(
              {.left = b.data + j.begin * b.lead + k.begin,
               .lead_left = b.lead,
               .right = a.data + k.begin * a.lead + i.begin,
               .lead_right = a.lead,
               .result = (k.begin == 0 ? c.data : second()) + j.begin * c.lead + i.begin,
               .lead_result = c.lead,
               .rows = j.end - j.begin,
               .columns = i.end - i.begin,
               .depth = k.end - k.begin});
    return pieces;
  }

  // Each product goes to the device that would finish it first.
  [[nodiscard]] std::vector<std::vector<Piece<Real>>> dealt(const std::vector<Piece<Real>>& pieces,
                                                            const std::vector<double>& speeds) {
    std::vector<std::vector<Piece<Real>>> of_device(devices());
    std::vector<double> flops(devices());
    for (const auto& piece : pieces) {
      std::size_t chosen = 0;
      for (std::size_t device = 1; device < devices(); ++device)
        if ((flops[device] + piece.flops()) / speeds[device] <
            (flops[chosen] + piece.flops()) / speeds[chosen])
          chosen = device;
      flops[chosen] += piece.flops();
      of_device[chosen].push_back(piece);
    }
    return of_device;
  }

  [[nodiscard]] Product run_blocked() {
    Product made;
    made.speeds = speeds();
    const auto product = products_++;
    const auto of_device = dealt(quarters(product), made.speeds);
    made.parts.resize(devices());
    std::vector<Interval> spans(team_.size());
    std::vector<std::size_t> drivers(devices());
    std::iota(drivers.begin(), drivers.end(), std::size_t{0});
    const auto whole = timed([&] {
      team_.run_on(drivers, [&](std::size_t member) {
        or_end([&] {
          spans[member] = timed([&] {
            made.parts[member].kernels_s =
                streams_[member]->run(of_device[member], operands_.alpha(product));
          });
        });
      });
      made.sums_s = timed([&] { add_halves(); }).elapsed_s();
    });
    made.elapsed_s = whole.elapsed_s();
    for (std::size_t device = 0; device < devices(); ++device) {
      auto& part = made.parts[device];
      for (const auto& piece : of_device[device])
        part.flops += piece.flops();
      part.elapsed_s = spans[device].elapsed_s();
      observe(device, part);
    }
    return made;
  }

  void add_halves() {
    const auto c = operands_.c();
    team_.run([&](std::size_t member) {
      const auto [begin, end] = part_of(n_, member, team_.size());
      for (std::size_t j = begin; j < end; ++j)
        add_to(c.data + j * c.lead, second() + j * c.lead, n_);
    });
  }

  Team& team_;
  const ChosenDevices& chosen_;
  const SharedSettings& settings_;
  std::size_t n_;
  Operands<Real> operands_;
  std::optional<HostMemory> second_; // of the blocked form: half of the products
  std::vector<std::unique_ptr<StreamedProduct<Real>>> streams_;
  std::vector<Blocking> blockings_;
  std::vector<std::unique_ptr<HostShare<Real>>> threads_; // by member
  std::vector<std::vector<double>> seen_;                 // rates of each part
  std::size_t products_ = 0;
};

} // namespace seatrial::device
