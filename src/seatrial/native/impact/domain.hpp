// One part of the mesh, computed by one thread, with copies of the nodes that it shares with
// others.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <vector>

#include "impact/array.hpp"
#include "impact/hexahedron.hpp"
#include "impact/lanes.hpp"
#include "impact/material.hpp"
#include "impact/mesh.hpp"
#include "impact/order.hpp"
#include "impact/sharing.hpp"

namespace seatrial::impact {

// Nodes that this part shares with another, in an order that both have.
struct Border {
  std::uint32_t part;
  std::vector<std::uint32_t> nodes;
};

struct Energy {
  double internal = 0;  // J
  double hourglass = 0; // J
  double wall = 0;      // taken by contact with the wall, J
  double impulse = 0;   // of the wall on the mesh, along x, N s
};

template <class Real>
class Domain {
public:
  static constexpr std::size_t width = lanes<Real>;

  // `masses` of all nodes of the mesh, kg.
  Domain(const Mesh& mesh, const std::vector<std::uint32_t>& part_of, const Sharing& sharing,
         const std::vector<double>& masses, std::uint32_t part, const Material& material,
         double speed)
      : constants_(material) {
    const Order order(mesh, part_of, sharing, part);
    elements_ = order.elements;
    nodes_ = order.nodes;
    border_nodes_ = static_cast<std::uint32_t>(order.border_nodes);
    border_blocks_ = (order.border_elements + width - 1) / width;
    auto found = order.connected(mesh);
    const auto count = nodes_.size();
    // The last vector is filled with a cube of its own, which stays as it is.
    const auto first_dummy = static_cast<std::uint32_t>(count);
    while (found.size() % width != 0) {
      auto& nodes = found.emplace_back();
      for (std::size_t corner = 0; corner < corners; ++corner)
        nodes[corner] = first_dummy + static_cast<std::uint32_t>(corner);
    }
    motion_ = Array<Real>(of_motion * (count + corners));
    f_ = Array<Real>(4 * (count + corners));
    is_mine_.resize(count);
    std::map<std::uint32_t, std::vector<std::uint32_t>> borders; // nodes of the mesh
    std::unordered_map<std::uint32_t, std::uint32_t> local;      // of the borders
    for (std::uint32_t at = 0; at < count; ++at) {
      const auto node = nodes_[at];
      for (std::size_t i = 0; i < 3; ++i)
        motion_[of_motion * at + i] = static_cast<Real>(mesh.points[node][i]);
      motion_[of_motion * at + 4] = static_cast<Real>(-speed);
      motion_[of_motion * at + 7] = static_cast<Real>(1 / masses[node]);
      const auto& parts = sharing.of(node);
      is_mine_[at] = parts.front() == part;
      if (at >= border_nodes_)
        continue;
      local.emplace(node, at);
      for (const auto other : parts)
        borders[other].push_back(node); // those with itself are all
    }
    for (std::size_t corner = 0; corner < corners; ++corner)
      for (std::size_t i = 0; i < 3; ++i)
        motion_[of_motion * (count + corner) + i] = static_cast<Real>(corner >> i & 1);
    for (auto& [other, nodes] : borders) {
      std::ranges::sort(nodes);
      Border border{.part = other, .nodes = {}};
      for (const auto node : nodes)
        border.nodes.push_back(local.at(node));
      borders_.push_back(std::move(border));
    }
    const auto blocks = found.size() / width;
    corners_ = Array<std::uint32_t>(blocks * corners * width);
    state_ = Array<Real>(blocks * 7 * width);
    for (std::size_t at = 0; at < found.size(); ++at)
      for (std::size_t corner = 0; corner < corners; ++corner)
        corners_[(at / width * corners + corner) * width + at % width] = found[at][corner];
    for (std::size_t block = border_blocks_; block < blocks; block += chunk)
      complete_.push_back(
          order.complete[std::min(elements_.size(), std::min(blocks, block + chunk) * width)]);
  }

  // Stresses and forces of the elements at borders, at the end of a step of length `dt`.
  void forces_at_borders(Real dt) noexcept {
    least_ = infinite();
    for (std::size_t block = 0; block < border_blocks_; block += chunk)
      forces(block, std::min(border_blocks_, block + chunk), dt);
  }

  // The same of all others. Nodes that are complete are moved, all but those of borders. Returns
  // the square of the smallest edge (see ElementResult).
  Real forces_and_moves(Real dt, Real dv, Real next_dt) noexcept {
    const std::size_t blocks = corners_.size() / (corners * width);
    std::size_t block = border_blocks_;
    std::uint32_t moved = border_nodes_;
    for (const auto complete : complete_) {
      forces(block, std::min(blocks, block + chunk), dt);
      block += chunk;
      move(moved, complete, dv, next_dt);
      moved = complete;
    }
    move(moved, static_cast<std::uint32_t>(nodes_.size()), dv, next_dt); // if all are at borders
    Real smallest = least_[0];
    for (std::size_t lane = 1; lane < width; ++lane)
      smallest = std::min(smallest, least_[lane]);
    return smallest;
  }

  // Copies the forces of a border, three numbers a node.
  void pack(const Border& border, Real* out) const noexcept {
    for (const auto node : border.nodes)
      for (std::size_t i = 0; i < 3; ++i)
        *out++ = f_[4 * std::size_t{node} + i];
  }

  void clear_borders() noexcept {
    for (const auto& border : borders_)
      for (const auto node : border.nodes)
        for (std::size_t i = 0; i < 3; ++i)
          f_[4 * std::size_t{node} + i] = 0;
  }

  void add(const Border& border, const Real* in) noexcept {
    for (const auto node : border.nodes)
      for (std::size_t i = 0; i < 3; ++i)
        f_[4 * std::size_t{node} + i] += *in++;
  }

  void move_borders(Real dv, Real dt) noexcept { move(0, border_nodes_, dv, dt); }

  // Kinetic energy (J) and the momentum along x, y, z (N s) of the nodes that count here.
  [[nodiscard]] std::array<double, 4> motion() const noexcept {
    std::array<double, 4> sums{};
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!is_mine_[node])
        continue;
      const double mass = 1 / static_cast<double>(motion_[of_motion * node + 7]);
      for (std::size_t i = 0; i < 3; ++i) {
        const double v = static_cast<double>(motion_[of_motion * node + 4 + i]);
        sums[0] += mass / 2 * v * v;
        sums[1 + i] += mass * v;
      }
    }
    return sums;
  }

  // The plastic strain of each element, in the order of elements().
  [[nodiscard]] std::vector<double> plastic_strains() const {
    std::vector<double> strains(elements_.size());
    for (std::size_t at = 0; at < strains.size(); ++at)
      strains[at] = static_cast<double>(state_[(at / width * 7 + 6) * width + at % width]);
    return strains;
  }

  [[nodiscard]] const std::vector<std::uint32_t>& elements() const noexcept { return elements_; }
  [[nodiscard]] const std::vector<std::uint32_t>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] const std::vector<Border>& borders() const noexcept { return borders_; }
  // A coordinate of a node, m.
  [[nodiscard]] Real position(std::size_t node, std::size_t axis) const noexcept {
    return motion_[of_motion * node + axis];
  }

  Energy energy;

private:
  using V = Vector<Real>;
  static constexpr std::size_t of_motion = 8; // numbers of a node
  static constexpr std::size_t chunk = 64;    // vectors of elements whose nodes stay in a cache

  [[nodiscard]] static V infinite() noexcept { return V{} + std::numeric_limits<Real>::infinity(); }

  // Elements of at most a chunk: sums of single precision stay short.
  void forces(std::size_t block, std::size_t end, Real dt) noexcept {
    const Real* const motion = motion_.data(); // stores may alias members
    Real* const f = f_.data();
    const auto constants = constants_;
    const auto* nodes = corners_.data() + block * corners * width;
    Real* state = state_.data() + block * 7 * width;
    V least = least_;
    V internal{};
    V hourglass{};
    for (; block < end; ++block, nodes += corners * width, state += 7 * width) {
      V x[3][corners];
      V v[3][corners];
      for (std::size_t corner = 0; corner < corners; ++corner) {
        V three[3];
        gather<Real, of_motion>(motion, nodes + corner * width, three);
        for (std::size_t i = 0; i < 3; ++i)
          x[i][corner] = three[i];
        gather<Real, of_motion>(motion + 4, nodes + corner * width, three);
        for (std::size_t i = 0; i < 3; ++i)
          v[i][corner] = three[i];
      }
      Stress<V> stress;
      for (std::size_t i = 0; i < 6; ++i)
        stress.s[i] = load(state + i * width);
      stress.plastic = load(state + 6 * width);
      const auto result = element_step<LaneMath<Real>>(x, v, stress, constants, dt);
      for (std::size_t i = 0; i < 6; ++i)
        store(state + i * width, stress.s[i]);
      store(state + 6 * width, stress.plastic);
      for (std::size_t corner = 0; corner < corners; ++corner) {
        const V three[3] = {v[0][corner], v[1][corner], v[2][corner]};
        scatter_add<Real, 4>(f, nodes + corner * width, three);
      }
      least = LaneMath<Real>::smaller(least, result.edge2);
      internal += result.internal;
      hourglass += result.hourglass;
    }
    least_ = least;
    for (std::size_t lane = 0; lane < width; ++lane) {
      energy.internal += static_cast<double>(internal[lane]);
      energy.hourglass += static_cast<double>(hourglass[lane]);
    }
  }

  // Velocities over `dv` and positions over `dt`, of the nodes before `end`. A node that would pass
  // the wall x = 0 ends on it.
  void move(std::uint32_t first, std::uint32_t end, Real dv, Real dt) noexcept {
    Real* const positions = motion_.data();
    Real* const velocities = positions + 4;
    Real* const forces = f_.data();
    for (std::uint32_t node = first; node < end; ++node) {
      auto v = node_at<Real, of_motion>(velocities, node);
      const auto f = node_at<Real, 4>(forces, node);
      const Real inverse_mass = v[3];
      const Real old = v[0];
      v += f * (inverse_mass * dv);
      v[3] = inverse_mass; // the fourth number of a force is zero
      auto x = node_at<Real, of_motion>(positions, node);
      auto to = x + v * dt;
      if (to[0] < 0) {
        const Real stopped = -x[0] / dt;
        if (is_mine_[node]) {
          const double mass = 1 / static_cast<double>(inverse_mass);
          const double impulse = mass * static_cast<double>(stopped - v[0]);
          energy.impulse += impulse;
          // At the mean velocity of the two half steps, as the work of the other forces.
          energy.wall -= impulse * static_cast<double>(old + stopped) / 2;
        }
        v[0] = stopped;
        to[0] = 0;
      }
      to[3] = 0;
      put_node<Real, of_motion>(positions, node, to);
      put_node<Real, of_motion>(velocities, node, v);
      put_node<Real, 4>(forces, node, Four<Real>{});
    }
  }

  ElementConstants<Real> constants_;
  std::vector<std::uint32_t> elements_; // of the mesh
  std::vector<std::uint32_t> nodes_;    // of the mesh; first those of borders
  std::uint32_t border_nodes_ = 0;
  std::size_t border_blocks_ = 0;       // vectors that hold the elements at borders
  std::vector<std::uint32_t> complete_; // after each chunk: nodes before this one
  V least_{};
  std::vector<Border> borders_;  // ascending parts, itself among them
  std::vector<char> is_mine_;    // whether sums over nodes count it here
  Array<Real> motion_;           // m, a zero; m/s, 1/kg: a cache line in double precision
  Array<Real> f_;                // N, a zero
  Array<std::uint32_t> corners_; // by block, corner, lane
  Array<Real> state_;            // by block, component, lane
};

} // namespace seatrial::impact
