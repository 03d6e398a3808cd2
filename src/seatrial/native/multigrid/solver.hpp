// The conjugate gradients of one rank, on all threads of its team.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "clock.hpp"
#include "multigrid/conjugate_gradients.hpp"
#include "multigrid/level.hpp"
#include "multigrid/rank_halo.hpp"
#include "multigrid/reference.hpp"
#include "multigrid/solver_phases.hpp"
#include "team.hpp"

namespace seatrial::multigrid {

class Solver {
public:
  // The orders must outlive it. Collective.
  Solver(const std::vector<Part>& parts, const std::vector<Order>& orders, Team& team)
      : parts_(parts), team_(team), sums_(team.size()) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      levels_.push_back(std::make_unique<Level>(parts[i], orders[i], team, i + 1 == parts.size()));
      halos_.emplace_back(parts[i], orders[i].positions, levels_[i]->size());
      if (i > 0)
        levels_[i - 1]->connect(parts[i - 1], parts[i], orders[i]);
    }
    for (auto* vector : {&b_, &x_, &q_})
      *vector = std::make_unique<Untouched<double>>(fine().size());
    p_ = std::make_unique<Untouched<double>>(fine().columns());
    const auto b = right_hand_side(parts[0]);
    team.run([&](std::size_t member) {
      fine().for_each_vector(member, [&](std::size_t at) {
        for (std::size_t lane = 0; lane < width; ++lane) {
          const auto row = orders[0].rows[at + lane];
          (*b_)[at + lane] = row == none ? 0 : b[row];
          (*x_)[at + lane] = (*p_)[at + lane] = (*q_)[at + lane] = 0;
        }
      });
    });
    std::fill(p_->data() + fine().size(), p_->data() + fine().columns(), 0);
  }

  [[nodiscard]] Solution solve(std::size_t most, double tolerance, bool is_preconditioned = true) {
    std::vector<Solution> found(team_.size());
    team_.run([&](std::size_t member) {
      Member own(*this, member);
      found[member] = conjugate_gradients(own, most, tolerance, is_preconditioned);
    });
    return found[0];
  }

  // The following take and return vectors by row.

  [[nodiscard]] std::vector<double> product(const std::vector<double>& x) {
    put(x, p_->data());
    team_.run([&](std::size_t member) { static_cast<void>(Member(*this, member).multiply()); });
    return got(q_->data());
  }
  [[nodiscard]] std::vector<double> precondition(const std::vector<double>& r) {
    put(r, fine().r.data());
    team_.run([&](std::size_t member) { static_cast<void>(Member(*this, member).precondition()); });
    return got(fine().x.data());
  }
  [[nodiscard]] std::vector<double> solution() const { return got(x_->data()); }

  // Multiplies the diagonal of the fine grid and the right-hand side; empty: restores both.
  void exaggerate(std::span<const double> factors) {
    fine().set_diagonal(factors);
    auto b = right_hand_side(parts_[0]);
    for (std::size_t row = 0; row < factors.size(); ++row)
      b[row] *= factors[row];
    put(b, b_->data());
  }

  Phases spent;

  // Bytes that an iteration must move on this rank if no vector stays in a cache.
  [[nodiscard]] double iteration_B() const {
    double bytes = fine().product_B() + 9 * fine().vector_B();
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      const auto& level = *levels_[i];
      bytes += level.forward_from_zero_B() + level.backward_B();
      if (i + 1 < levels_.size())
        bytes += level.forward_B() + level.backward_B() + level.transfer_B();
    }
    return bytes;
  }
  [[nodiscard]] double matrix_B() const { // of the fine grid
    return fine().matrix_B();
  }
  [[nodiscard]] double sent_B() const { // by this rank in an iteration
    double bytes = halos_[0].bytes();
    for (std::size_t i = 0; i + 1 < halos_.size(); ++i)
      bytes += 2 * halos_[i].bytes();
    return bytes;
  }

  // What a solver needs, about: values and columns, and the vectors.
  [[nodiscard]] static double bytes(const Part& part) {
    double all = 0;
    for (const auto& level : hierarchy(part))
      all += 1.05 * level.rows() * (27 * 12 + 12 * 8) + 16.0 * level.columns();
    return all;
  }

private:
  // The system that conjugate_gradients() works on, as one thread sees it.
  class Member {
  public:
    Member(Solver& solver, std::size_t member)
        : s_(solver), member_(member), fine_(solver.fine()), since_(Clock::now()) {}

    double begin() {
      double* const b = s_.b_->data();
      double* const p = s_.p_->data();
      double* const q = s_.q_->data();
      fine_.for_each_vector(member_, [&](std::size_t at) {
        store(s_.x_->data() + at, Vector<double>{});
        store(p + at, Vector<double>{});
      });
      static_cast<void>(multiply());
      Vector<double> products{};
      fine_.for_each_vector(member_, [&](std::size_t at) {
        const auto residual = load(b + at) - load(q + at);
        store(fine_.r.data() + at, residual);
        products = multiply_add(residual, residual, products);
      });
      spend(&Phases::vectors);
      return summed(Level::total(products));
    }

    double precondition() {
      const double product = cycle(0);
      return summed(product);
    }

    double copy() {
      Vector<double> products{};
      fine_.for_each_vector(member_, [&](std::size_t at) {
        const auto residual = load(fine_.r.data() + at);
        store(fine_.x.data() + at, residual);
        products = multiply_add(residual, residual, products);
      });
      return summed(Level::total(products));
    }

    void turn(double beta) {
      double* const p = s_.p_->data();
      fine_.for_each_vector(member_, [&](std::size_t at) {
        store(p + at, load(fine_.x.data() + at) + beta * load(p + at));
      });
      spend(&Phases::vectors);
    }

    double multiply() {
      exchange(0, s_.p_->data());
      const double product = fine_.multiply(s_.p_->data(), s_.q_->data(), member_);
      spend(&Phases::product);
      return summed(product);
    }

    double advance(double alpha) {
      double* const x = s_.x_->data();
      const double* const p = s_.p_->data();
      const double* const q = s_.q_->data();
      Vector<double> products{};
      fine_.for_each_vector(member_, [&](std::size_t at) {
        store(x + at, load(x + at) + alpha * load(p + at));
        const auto residual = load(fine_.r.data() + at) - alpha * load(q + at);
        store(fine_.r.data() + at, residual);
        products = multiply_add(residual, residual, products);
      });
      spend(&Phases::vectors);
      return summed(Level::total(products));
    }

  private:
    // A V-cycle for the r of this level; returns this member's part of x' r.
    double cycle(std::size_t at) {
      auto& level = *s_.levels_[at];
      level.forward_from_zero(member_);
      double product = level.backward(member_);
      spend(&Phases::smoother);
      if (at + 1 == s_.levels_.size())
        return product;
      auto& coarse = *s_.levels_[at + 1];
      exchange(at, level.x.data());
      level.restrict_to(coarse, member_);
      wait();
      spend(&Phases::transfer);
      static_cast<void>(cycle(at + 1));
      level.add_from(coarse, member_);
      spend(&Phases::transfer);
      exchange(at, level.x.data());
      level.forward(member_);
      product = level.backward(member_);
      spend(&Phases::smoother);
      return product;
    }

    // All members have written their x before, and see the columns of others after.
    void exchange(std::size_t at, double* x) {
      wait();
      if (s_.parts_[at].neighbours().empty())
        return;
      if (member_ == 0)
        s_.halos_[at].exchange(x);
      wait();
      spend(&Phases::halo);
    }

    // The sum over all threads and ranks, on each of them.
    double summed(double own) {
      s_.sums_[member_].value = own;
      wait();
      if (member_ == 0) {
        double all = 0;
        for (const auto& each : s_.sums_)
          all += each.value;
        MPI_Allreduce(&all, &s_.sum_, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      }
      wait();
      const double sum = s_.sum_;
      spend(&Phases::reduce);
      return sum;
    }

    void wait() {
      if (s_.team_.size() > 1)
        s_.team_.barrier().wait();
    }

    void spend(double Phases::*phase) {
      if (member_ != 0)
        return;
      const auto now = Clock::now();
      s_.spent.*phase += seconds(now - since_);
      since_ = now;
    }

    Solver& s_;
    std::size_t member_;
    Level& fine_;
    Clock::time_point since_;
  };

  struct alignas(128) Sum {
    double value = 0;
  };

  [[nodiscard]] Level& fine() const noexcept { return *levels_[0]; }
  void put(const std::vector<double>& from, double* to) const {
    for (std::size_t row = 0; row < from.size(); ++row)
      to[fine().order().positions[row]] = from[row];
  }
  [[nodiscard]] std::vector<double> got(const double* from) const {
    std::vector<double> to(parts_[0].rows());
    for (std::size_t row = 0; row < to.size(); ++row)
      to[row] = from[fine().order().positions[row]];
    return to;
  }

  const std::vector<Part>& parts_;
  Team& team_;
  std::vector<std::unique_ptr<Level>> levels_;
  std::vector<RankHalo> halos_;
  std::unique_ptr<Untouched<double>> b_;
  std::unique_ptr<Untouched<double>> x_;
  std::unique_ptr<Untouched<double>> p_;
  std::unique_ptr<Untouched<double>> q_;
  std::vector<Sum> sums_;
  double sum_ = 0;
};

} // namespace seatrial::multigrid
