// One part of the mesh, computed by one thread, with copies of the nodes that it shares with
// others.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "impact/hexahedron.hpp"
#include "impact/lanes.hpp"
#include "impact/material.hpp"
#include "impact/mesh.hpp"

namespace seatrial::impact {

// Zeros that start at a cache line. The thread that makes it touches the pages first.
template <class T>
class Array {
public:
  explicit Array(std::size_t count = 0)
      : values_(static_cast<T*>(::operator new(count * sizeof(T) + 1, alignment))), count_(count) {
    std::memset(static_cast<void*>(values_.get()), 0, count * sizeof(T));
  }
  [[nodiscard]] T* data() noexcept { return values_.get(); }
  [[nodiscard]] const T* data() const noexcept { return values_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  T& operator[](std::size_t at) noexcept { return values_.get()[at]; }
  const T& operator[](std::size_t at) const noexcept { return values_.get()[at]; }

private:
  static constexpr std::align_val_t alignment{128};
  struct Free {
    void operator()(T* values) const noexcept { ::operator delete(values, alignment); }
  };
  std::unique_ptr<T, Free> values_;
  std::size_t count_;
};

// The nodes of a mesh and the parts that have copies of them.
class Sharing {
public:
  Sharing(const Mesh& mesh, const std::vector<std::uint32_t>& part_of)
      : parts_(mesh.points.size()) {
    for (std::size_t at = 0; at < mesh.elements.size(); ++at)
      for (const auto node : mesh.elements[at]) {
        auto& parts = parts_[node];
        if (std::ranges::find(parts, part_of[at]) == parts.end())
          parts.push_back(part_of[at]);
      }
    for (auto& parts : parts_)
      std::ranges::sort(parts);
  }
  [[nodiscard]] const std::vector<std::uint32_t>& of(std::uint32_t node) const {
    return parts_[node];
  }

private:
  std::vector<std::vector<std::uint32_t>> parts_; // ascending
};

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
    std::unordered_map<std::uint32_t, std::uint32_t> local;
    std::vector<std::array<std::uint32_t, 8>> found;
    for (std::size_t at = 0; at < mesh.elements.size(); ++at) {
      if (part_of[at] != part)
        continue;
      elements_.push_back(static_cast<std::uint32_t>(at));
      auto& nodes = found.emplace_back();
      for (std::size_t corner = 0; corner < corners; ++corner) {
        const auto node = mesh.elements[at][corner];
        const auto [place, is_new] =
            local.try_emplace(node, static_cast<std::uint32_t>(nodes_.size()));
        if (is_new)
          nodes_.push_back(node);
        nodes[corner] = place->second;
      }
    }
    const auto count = nodes_.size();
    // The last vector is filled with a cube of its own, which stays as it is.
    const auto first_dummy = static_cast<std::uint32_t>(count);
    while (found.size() % width != 0) {
      auto& nodes = found.emplace_back();
      for (std::size_t corner = 0; corner < corners; ++corner)
        nodes[corner] = first_dummy + static_cast<std::uint32_t>(corner);
    }
    x_ = Array<Real>(4 * (count + corners));
    v_ = Array<Real>(4 * (count + corners));
    f_ = Array<Real>(4 * (count + corners));
    is_mine_.resize(count);
    std::map<std::uint32_t, std::vector<std::uint32_t>> borders; // nodes of the mesh
    for (std::uint32_t at = 0; at < count; ++at) {
      const auto node = nodes_[at];
      for (std::size_t i = 0; i < 3; ++i)
        x_[4 * at + i] = static_cast<Real>(mesh.points[node][i]);
      v_[4 * at] = static_cast<Real>(-speed);
      v_[4 * at + 3] = static_cast<Real>(1 / masses[node]);
      const auto& parts = sharing.of(node);
      is_mine_[at] = parts.front() == part;
      if (parts.size() > 1)
        for (const auto other : parts)
          borders[other].push_back(node); // those with itself are all
    }
    for (std::size_t corner = 0; corner < corners; ++corner)
      for (std::size_t i = 0; i < 3; ++i)
        x_[4 * (count + corner) + i] = static_cast<Real>(corner >> i & 1);
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
  }

  // Stresses and forces at the end of a step of length `dt`. Returns the square of the smallest
  // edge (see ElementResult).
  Real forces(Real dt) noexcept {
    using V = Vector<Real>;
    V least = V{} + std::numeric_limits<Real>::infinity();
    V internal{};
    V hourglass{};
    const std::size_t blocks = corners_.size() / (corners * width);
    for (std::size_t block = 0; block < blocks; ++block) {
      const auto* nodes = corners_.data() + block * corners * width;
      Real* state = state_.data() + block * 7 * width;
      V x[3][corners];
      V v[3][corners];
      for (std::size_t corner = 0; corner < corners; ++corner) {
        V three[3];
        gather<Real>(x_.data(), nodes + corner * width, three);
        for (std::size_t i = 0; i < 3; ++i)
          x[i][corner] = three[i];
        gather<Real>(v_.data(), nodes + corner * width, three);
        for (std::size_t i = 0; i < 3; ++i)
          v[i][corner] = three[i];
      }
      Stress<V> stress;
      for (std::size_t i = 0; i < 6; ++i)
        stress.s[i] = load(state + i * width);
      stress.plastic = load(state + 6 * width);
      const auto result = element_step<LaneMath<Real>>(x, v, stress, constants_, dt);
      for (std::size_t i = 0; i < 6; ++i)
        store(state + i * width, stress.s[i]);
      store(state + 6 * width, stress.plastic);
      for (std::size_t corner = 0; corner < corners; ++corner) {
        const V three[3] = {v[0][corner], v[1][corner], v[2][corner]};
        scatter_add<Real>(f_.data(), nodes + corner * width, three);
      }
      least = LaneMath<Real>::smaller(least, result.edge2);
      internal += result.internal;
      hourglass += result.hourglass;
      if (block % 64 == 63 || block + 1 == blocks) { // sums of single precision stay short
        for (std::size_t lane = 0; lane < width; ++lane) {
          energy.internal += static_cast<double>(internal[lane]);
          energy.hourglass += static_cast<double>(hourglass[lane]);
        }
        internal = hourglass = V{};
      }
    }
    Real smallest = least[0];
    for (std::size_t lane = 1; lane < width; ++lane)
      smallest = std::min(smallest, least[lane]);
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

  // Velocities over `dv` and positions over `dt`. A node that would pass the wall x = 0 ends on it.
  void move(Real dv, Real dt) noexcept {
    const std::size_t count = nodes_.size();
    for (std::uint32_t node = 0; node < count; ++node) {
      auto v = node_at(v_.data(), node);
      const auto f = node_at(f_.data(), node);
      const Real inverse_mass = v[3];
      const Real old = v[0];
      v += f * (inverse_mass * dv);
      v[3] = inverse_mass; // the fourth number of a force is zero
      auto x = node_at(x_.data(), node);
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
      put_node<Real>(x_.data(), node, to);
      put_node<Real>(v_.data(), node, v);
      put_node<Real>(f_.data(), node, Four<Real>{});
    }
  }

  // Kinetic energy (J) and the momentum along x, y, z (N s) of the nodes that count here.
  [[nodiscard]] std::array<double, 4> motion() const noexcept {
    std::array<double, 4> sums{};
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!is_mine_[node])
        continue;
      const double mass = 1 / static_cast<double>(v_[4 * node + 3]);
      for (std::size_t i = 0; i < 3; ++i) {
        const double v = static_cast<double>(v_[4 * node + i]);
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
  [[nodiscard]] const Array<Real>& positions() const noexcept { return x_; }
  [[nodiscard]] bool counts(std::size_t node) const noexcept { return is_mine_[node]; }

  Energy energy;

private:
  ElementConstants<Real> constants_;
  std::vector<std::uint32_t> elements_; // of the mesh
  std::vector<std::uint32_t> nodes_;    // of the mesh
  std::vector<Border> borders_;         // ascending parts, itself among them
  std::vector<char> is_mine_;           // whether sums over nodes count it here
  Array<Real> x_;                       // m
  Array<Real> v_;                       // m/s; fourth: 1/kg
  Array<Real> f_;                       // N
  Array<std::uint32_t> corners_;        // by block, corner, lane
  Array<Real> state_;                   // by block, component, lane
};

} // namespace seatrial::impact
