// The time integration: central differences. In a step, a thread computes the elements at its
// borders, sends their forces, computes all others and moves their nodes meanwhile, and moves the
// nodes of its borders last.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "impact/bisection.hpp"
#include "impact/domain.hpp"
#include "impact/exchange.hpp"
#include "impact/sharing.hpp"
#include "impact/time_step.hpp"
#include "mpi/mpi.hpp"
#include "mpi/own_cpus.hpp"
#include "team.hpp"

namespace seatrial::impact {

// A mesh of one material that meets the wall x = 0 at a speed (m/s).
struct Case {
  Mesh mesh;
  Material material;
  double speed;
};

// The masses of the nodes, an eighth of each element around them, kg.
[[nodiscard]] inline std::vector<double> lumped(const Case& crash) {
  std::vector<double> masses(crash.mesh.points.size());
  for (const auto& nodes : crash.mesh.elements) {
    const double share = crash.material.density * volume_of(crash.mesh, nodes) / 8;
    for (const auto node : nodes)
      masses[node] += share;
  }
  return masses;
}

template <class Real>
class Crash {
public:
  // Collective, with the same case on all ranks.
  Crash(const Case& crash, int rank, int ranks, std::size_t threads, Reduction reduction)
      : rank_(rank), steps_(crash.mesh, crash.material.sound_speed(), reduction), domains_(threads),
        smallest_(threads) {
    const auto part_of =
        bisected(crash.mesh, static_cast<std::uint32_t>(static_cast<std::size_t>(ranks) * threads));
    const Sharing sharing(crash.mesh, part_of);
    const auto masses = lumped(crash);
    if (threads > 1)
      team_.emplace(mpi::own_cpus(rank, threads));
    each([&](std::size_t t) {
      domains_[t] = std::make_unique<Domain<Real>>(crash.mesh, part_of, sharing, masses, part(t),
                                                   crash.material, crash.speed);
    });
    exchange_ = std::make_unique<Exchange<Real>>(domains_, rank);
  }

  // Collective.
  void advance(std::size_t steps) {
    each([&](std::size_t t) {
      for (std::size_t i = 0; i < steps; ++i)
        step(t, done_ + i);
    });
    done_ += steps;
  }

  // The largest difference between copies of a coordinate, m. Collective.
  [[nodiscard]] double copies_differ() {
    const std::size_t step = done_;
    for (std::size_t t = 0; t < domains_.size(); ++t)
      for (const auto& border : domains_[t]->borders())
        coordinates(t, border, exchange_->out(part(t), border.part, step));
    exchange_->start(step);
    exchange_->finish(step);
    exchange_->settle();
    steps_.settle();
    double worst = 0;
    for (std::size_t t = 0; t < domains_.size(); ++t)
      for (const auto& border : domains_[t]->borders()) {
        std::vector<Real> mine(3 * border.nodes.size());
        coordinates(t, border, mine.data());
        const Real* other = exchange_->in(border.part, part(t), step);
        for (std::size_t at = 0; at < mine.size(); ++at)
          worst = std::max(worst, std::abs(static_cast<double>(mine[at] - other[at])));
      }
    for (const double each : mpi::gather({worst}))
      worst = std::max(worst, each);
    return worst;
  }

  // Collective: kinetic energy and momentum, on all ranks.
  [[nodiscard]] std::array<double, 4> motion() const {
    std::array<double, 4> sums{};
    for (const auto& domain : domains_) {
      const auto mine = domain->motion();
      for (std::size_t i = 0; i < 4; ++i)
        sums[i] += mine[i];
    }
    for (auto& sum : sums)
      sum = mpi::sum(sum);
    return sums;
  }

  // Collective.
  [[nodiscard]] Energy energy() const {
    Energy all;
    for (const auto& domain : domains_) {
      all.internal += domain->energy.internal;
      all.hourglass += domain->energy.hourglass;
      all.wall += domain->energy.wall;
      all.impulse += domain->energy.impulse;
    }
    for (double* each : {&all.internal, &all.hourglass, &all.wall, &all.impulse})
      *each = mpi::sum(*each);
    return all;
  }

  // Collective: on rank 0 the plastic strain of all elements in the order of the mesh.
  [[nodiscard]] std::vector<double> plastic_strains() const {
    std::vector<int> elements;
    std::vector<double> strains;
    for (const auto& domain : domains_) {
      elements.insert(elements.end(), domain->elements().begin(), domain->elements().end());
      const auto mine = domain->plastic_strains();
      strains.insert(strains.end(), mine.begin(), mine.end());
    }
    const auto all_elements = mpi::gather_lists(elements);
    const auto all_strains = mpi::gather_lists(strains);
    std::vector<double> found;
    for (std::size_t r = 0; r < all_elements.size(); ++r)
      for (std::size_t at = 0; at < all_elements[r].size(); ++at) {
        const auto element = static_cast<std::size_t>(all_elements[r][at]);
        found.resize(std::max(found.size(), element + 1));
        found[element] = all_strains[r][at];
      }
    return found;
  }

  // The largest x and the largest distance from the x axis of all nodes, m. Collective, on rank 0.
  [[nodiscard]] std::array<double, 2> extent() const {
    std::array<double, 2> most{};
    for (const auto& domain : domains_) {
      for (std::size_t node = 0; node < domain->nodes().size(); ++node) {
        most[0] = std::max(most[0], static_cast<double>(domain->position(node, 0)));
        most[1] = std::max(most[1], std::hypot(static_cast<double>(domain->position(node, 1)),
                                               static_cast<double>(domain->position(node, 2))));
      }
    }
    const auto all = mpi::gather({most[0], most[1]});
    for (std::size_t at = 0; at < all.size(); ++at)
      most[at % 2] = std::max(most[at % 2], all[at]);
    return most;
  }

  [[nodiscard]] double time() const noexcept { return steps_.time(); }
  // See TimeStep.
  [[nodiscard]] double over_bound() const noexcept { return steps_.over_bound(); }
  [[nodiscard]] const Exchange<Real>& exchange() const noexcept { return *exchange_; }

private:
  [[nodiscard]] std::uint32_t part(std::size_t t) const noexcept {
    return static_cast<std::uint32_t>(static_cast<std::size_t>(rank_) * domains_.size() + t);
  }

  template <class Body>
  void each(Body body) {
    if (team_)
      team_->run(body);
    else
      body(0);
  }

  void wait() noexcept {
    if (team_)
      team_->barrier().wait();
  }

  void coordinates(std::size_t t, const Border& border, Real* out) const {
    for (const auto node : border.nodes)
      for (std::size_t i = 0; i < 3; ++i)
        *out++ = domains_[t]->position(node, i);
  }

  void step(std::size_t t, std::size_t number) {
    auto& domain = *domains_[t];
    const Real last = steps_.length(number);
    domain.forces_at_borders(last);
    for (const auto& border : domain.borders())
      domain.pack(border, exchange_->out(part(t), border.part, number));
    wait();
    if (t == 0) {
      exchange_->start(number);
      Real edge2 = smallest_[0].value;
      for (const auto& each : smallest_)
        edge2 = std::min(edge2, each.value);
      steps_.choose(number, edge2);
    }
    wait();
    const Real next = steps_.length(number + 1);
    const Real between = (last + next) / 2;
    smallest_[t].value = domain.forces_and_moves(last, between, next);
    if (t == 0)
      exchange_->finish(number);
    wait();
    domain.clear_borders();
    for (const auto& border : domain.borders())
      domain.add(border, exchange_->in(border.part, part(t), number));
    domain.move_borders(between, next);
  }

  struct alignas(128) Own {
    Real value;
  };

  int rank_;
  TimeStep<Real> steps_;
  std::vector<std::unique_ptr<Domain<Real>>> domains_;
  std::vector<Own> smallest_;
  std::unique_ptr<Exchange<Real>> exchange_;
  std::optional<Team> team_;
  std::size_t done_ = 0;
};

} // namespace seatrial::impact
