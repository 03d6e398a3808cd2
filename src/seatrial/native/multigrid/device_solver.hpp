// The conjugate gradients of one device, among those that share a problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/shared_problem.hpp"
#include "multigrid/conjugate_gradients.hpp"
#include "multigrid/device_level.hpp"
#include "multigrid/reference.hpp"
#include "multigrid/solver_phases.hpp"
#include "team.hpp"

namespace seatrial::multigrid {

// What the devices exchange, through host memory: for each one what it sends, and numbers.
class Meeting {
public:
  explicit Meeting(Team& team)
      : team_(team), sums_(team), sent_(team.size(), std::vector<std::vector<double>>(grids)) {}

  // Of all members. Collective, as the next one.
  [[nodiscard]] double sum(std::size_t member, double own) {
    return sums_.exchange(
        member, own, [](const auto& all) { return std::accumulate(all.begin(), all.end(), 0.0); });
  }
  [[nodiscard]] double largest(std::size_t member, double own) {
    return sums_.exchange(member, own,
                          [](const auto& all) { return *std::ranges::max_element(all); });
  }

  // Fills `own` by `read`, then calls `write(first_column, values)` for each neighbour of the part.
  template <class Read, class Write>
  void exchange(std::size_t level, const std::vector<Part>& parts, const Part& part, Read read,
                Write write) {
    if (team_.size() == 1)
      return;
    auto& own = sent_[part.number()][level];
    own.resize(part.columns() - part.rows());
    read(own.data());
    team_.barrier().wait();
    for (const auto& neighbour : part.neighbours()) {
      const double* from = sent_[neighbour.part][level].data();
      for (const auto& theirs : parts[neighbour.part].neighbours()) {
        if (theirs.part == part.number())
          break;
        from += theirs.count;
      }
      write(neighbour, from);
    }
    team_.barrier().wait(); // nobody fills what another still reads
  }

private:
  Team& team_;
  device::Gathered<double> sums_;
  std::vector<std::vector<std::vector<double>>> sent_; // by member and grid
};

// `all_parts`: those of all members, by grid. Its functions are collective over the members.
class DeviceSolver {
public:
  DeviceSolver(device::Device& device, device::Queue& queue, const Kernels& kernels,
               Meeting& meeting, const std::vector<std::vector<Part>>& all_parts,
               std::size_t member, Ordering ordering)
      : queue_(queue), kernels_(kernels), meeting_(meeting), all_parts_(all_parts), member_(member),
        groups_(device.facts().is_cpu ? std::max(2U, device.facts().compute_units)
                                      : 4 * device.facts().compute_units) {
    for (const auto& parts : all_parts)
      orders_.push_back(ordered(parts[member], ordering, slice_width(device.facts().is_cpu)));
    for (std::size_t i = 0; i < grids; ++i) {
      levels_.push_back(std::make_unique<DeviceLevel>(device, queue, kernels, part(i), orders_[i],
                                                      i > 0 ? &all_parts[i - 1][member] : nullptr,
                                                      i > 0 ? &orders_[i - 1] : nullptr));
      std::vector<std::uint32_t> sent;
      for (const auto& neighbour : part(i).neighbours())
        for (const auto row : neighbour.sent)
          sent.push_back(orders_[i].positions[row]);
      sent_counts_.push_back(static_cast<Word>(sent.size()));
      sent.resize(std::max<std::size_t>(sent.size(), 1)); // arrays are not empty
      sent_rows_.push_back(on_device(device, queue, sent));
      sent_.emplace_back(device, sent.size());
    }
    sums_ = std::make_unique<Array<double>>(device, groups_);
    for (auto* vector : {&b_, &x_, &q_})
      *vector = std::make_unique<Array<double>>(device, fine().size());
    p_ = std::make_unique<Array<double>>(device, fine().columns());
    put(right_hand_side(part(0)), *b_);
  }

  [[nodiscard]] Solution solve(std::size_t most, double tolerance, bool is_preconditioned = true) {
    since_ = Clock::now();
    return conjugate_gradients(*this, most, tolerance, is_preconditioned);
  }

  // The system that conjugate_gradients() works on.

  double begin() {
    queue_.fill(x_->memory(), 0, 0, x_->bytes());
    queue_.fill(p_->memory(), 0, 0, p_->bytes());
    static_cast<void>(multiply());
    combine(*b_, *q_, fine().r, 1, -1);
    spend(&Phases::vectors);
    return summed(fine().r, fine().r);
  }
  double precondition() {
    cycle(0);
    return summed(fine().x, fine().r);
  }
  double copy() {
    combine(fine().r, fine().r, fine().x, 1, 0);
    return summed(fine().x, fine().r);
  }
  void turn(double beta) {
    combine(fine().x, *p_, *p_, 1, beta);
    spend(&Phases::vectors);
  }
  double multiply() {
    exchange(0, *p_);
    fine().multiply(*p_, *q_);
    spend(&Phases::product);
    return summed(*p_, *q_);
  }
  double advance(double alpha) {
    combine(*x_, *p_, *x_, 1, alpha);
    combine(fine().r, *q_, fine().r, 1, -alpha);
    spend(&Phases::vectors);
    return summed(fine().r, fine().r);
  }

  // The following take and return vectors by row, and overwrite all results of before.

  [[nodiscard]] std::vector<double> product(const std::vector<double>& x) {
    poison();
    put(x, *p_);
    static_cast<void>(multiply());
    return got(*q_);
  }
  [[nodiscard]] std::vector<double> precondition(const std::vector<double>& r) {
    poison();
    put(r, fine().r);
    cycle(0);
    return got(fine().x);
  }
  [[nodiscard]] double product_of(const std::vector<double>& x, const std::vector<double>& y) {
    poison();
    put(x, *x_);
    put(y, *q_);
    return summed(*x_, *q_);
  }
  [[nodiscard]] std::vector<double> solution() { return got(*x_); }

  void exaggerate(std::span<const double> factors) {
    fine().set_diagonal(factors);
    auto b = right_hand_side(part(0));
    for (std::size_t row = 0; row < factors.size(); ++row)
      b[row] *= factors[row];
    put(b, *b_);
  }

  // The vectors of others that the reference needs, on the host.
  void exchange_on_host(std::size_t level, std::vector<double>& x) {
    meeting_.exchange(
        level, all_parts_[level], part(level),
        [&](double* to) {
          for (const auto& neighbour : part(level).neighbours())
            for (const auto row : neighbour.sent)
              *to++ = x[row];
        },
        [&](const Neighbour& neighbour, const double* from) {
          std::copy_n(from, neighbour.count, x.begin() + neighbour.first_column);
        });
  }

  [[nodiscard]] const std::vector<Order>& orders() const noexcept { return orders_; }
  [[nodiscard]] double matrix_B() const { return fine().matrix_B(); }
  [[nodiscard]] double iteration_B() const { // as each kernel reads and writes
    double bytes = fine().matrix_B() + (3 + 9 + 6) * fine().vector_B();
    for (std::size_t i = 0; i < grids; ++i) {
      const double matrix = levels_[i]->matrix_B();
      const double vector = levels_[i]->vector_B();
      bytes += matrix + 8 * vector;
      if (i + 1 < grids)
        bytes += 1.5 * matrix + 9 * vector + matrix / 16 + vector;
    }
    return bytes;
  }

  Phases spent;
  bool is_waiting = false; // after each phase, to tell their times apart

private:
  [[nodiscard]] const Part& part(std::size_t level) const { return all_parts_[level][member_]; }
  [[nodiscard]] DeviceLevel& fine() const { return *levels_[0]; }

  void cycle(std::size_t at) {
    auto& level = *levels_[at];
    level.forward(true);
    level.backward();
    spend(&Phases::smoother);
    if (at + 1 == grids)
      return;
    auto& coarse = *levels_[at + 1];
    exchange(at, level.x);
    level.restrict_to(coarse);
    spend(&Phases::transfer);
    cycle(at + 1);
    level.add_from(coarse);
    spend(&Phases::transfer);
    exchange(at, level.x);
    level.forward(false);
    level.backward();
    spend(&Phases::smoother);
  }

  void exchange(std::size_t at, const Array<double>& x) {
    meeting_.exchange(
        at, all_parts_[at], part(at),
        [&](double* to) {
          if (sent_counts_[at] == 0)
            return;
          kernels_.pack(queue_, levels_[at]->grid(sent_counts_[at]), x, sent_rows_[at], sent_[at],
                        sent_counts_[at]);
          queue_.read(to, sent_[at].memory(), 0, sent_counts_[at] * sizeof(double));
          queue_.finish();
        },
        [&](const Neighbour& neighbour, const double* from) {
          const std::size_t first = levels_[at]->size() + neighbour.first_column - part(at).rows();
          queue_.write(x.memory(), first * sizeof(double), from, neighbour.count * sizeof(double));
          queue_.finish();
        });
    spend(&Phases::halo);
  }

  void combine(const Array<double>& x, const Array<double>& y, const Array<double>& out, double a,
               double b) {
    kernels_.combine(queue_, fine().grid(fine().size()), x, y, out, a, b, fine().size());
  }

  [[nodiscard]] double summed(const Array<double>& x, const Array<double>& y) {
    kernels_.dot(queue_, {.groups = groups_, .items = group}, x, y, *sums_, fine().size());
    std::vector<double> parts(groups_);
    queue_.read(parts.data(), sums_->memory(), 0, sums_->bytes());
    queue_.finish();
    const double all = meeting_.sum(member_, std::accumulate(parts.begin(), parts.end(), 0.0));
    spend(&Phases::reduce);
    return all;
  }

  void poison() {
    device::poison_arrays(queue_, *sums_, *q_);
    for (const auto& level : levels_)
      level->poison();
    for (const auto& sent : sent_)
      device::poison_arrays(queue_, sent);
  }

  void put(const std::vector<double>& from, const Array<double>& to) {
    std::vector<double> made(to.size());
    for (std::size_t row = 0; row < from.size(); ++row)
      made[orders_[0].positions[row]] = from[row];
    queue_.write(to.memory(), 0, made.data(), to.bytes());
    queue_.finish();
  }
  [[nodiscard]] std::vector<double> got(const Array<double>& from) {
    const auto all = on_host(queue_, from);
    std::vector<double> to(part(0).rows());
    for (std::size_t row = 0; row < to.size(); ++row)
      to[row] = all[orders_[0].positions[row]];
    return to;
  }

  void spend(double Phases::*phase) {
    if (!is_waiting)
      return;
    queue_.finish();
    const auto now = Clock::now();
    spent.*phase += seconds(now - since_);
    since_ = now;
  }

  device::Queue& queue_;
  const Kernels& kernels_;
  Meeting& meeting_;
  const std::vector<std::vector<Part>>& all_parts_;
  std::size_t member_;
  unsigned groups_;
  std::vector<Order> orders_;
  std::vector<std::unique_ptr<DeviceLevel>> levels_;
  std::vector<Array<std::uint32_t>> sent_rows_;
  std::vector<Array<double>> sent_;
  std::vector<Word> sent_counts_;
  std::unique_ptr<Array<double>> sums_;
  std::unique_ptr<Array<double>> b_;
  std::unique_ptr<Array<double>> x_;
  std::unique_ptr<Array<double>> q_;
  std::unique_ptr<Array<double>> p_;
  Clock::time_point since_;
};

} // namespace seatrial::multigrid
