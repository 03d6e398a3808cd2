// Meshes of hexahedra, made here: a ring of elements (and what is inside it) swept along a line.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace seatrial::impact {

using Point = std::array<double, 3>;

// Corner k of an element is at the end of axis i of its reference cube if bit i of k is set.
struct Mesh {
  std::vector<Point> points; // m
  std::vector<std::array<std::uint32_t, 8>> elements;
};

// A cross-section of quadrilaterals, corner k as above with two axes.
struct Section {
  std::vector<std::array<double, 2>> points;
  std::vector<std::array<std::uint32_t, 4>> cells;
};

// The point `share` (0..1) of the way round the square from -1 to 1, from its corner (-1, -1).
[[nodiscard]] inline std::array<double, 2> on_square(double share) {
  const double along = share * 4;
  const double at = 2 * (along - std::floor(along)) - 1;
  switch (static_cast<int>(along) % 4) {
  case 0:
    return {at, -1};
  case 1:
    return {1, at};
  case 2:
    return {-at, 1};
  default:
    return {-1, -at};
  }
}

// Rings of 4 * side cells around a hole; point(share, layer) places them, layer from 0 to layers.
template <class Place>
void add_rings(Section& section, const std::vector<std::uint32_t>& innermost, std::size_t side,
               std::size_t layers, Place place) {
  auto inner = innermost;
  const std::size_t around = 4 * side;
  for (std::size_t layer = 1; layer <= layers; ++layer) {
    std::vector<std::uint32_t> outer(around);
    for (std::size_t at = 0; at < around; ++at) {
      outer[at] = static_cast<std::uint32_t>(section.points.size());
      section.points.push_back(place(static_cast<double>(at) / static_cast<double>(around), layer));
    }
    for (std::size_t at = 0; at < around; ++at) {
      const std::size_t next = (at + 1) % around;
      section.cells.push_back({inner[at], outer[at], inner[next], outer[next]});
    }
    inner = outer;
  }
}

// The Jacobian matrix at the centre of an element: d position i / d axis j of its reference cube.
inline void jacobian_of(const Mesh& mesh, const std::array<std::uint32_t, 8>& nodes,
                        double (&jacobian)[3][3]) {
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      jacobian[i][axis] = 0;
      for (std::size_t corner = 0; corner < 8; ++corner)
        jacobian[i][axis] +=
            ((corner >> axis & 1) != 0 ? 0.125 : -0.125) * mesh.points[nodes[corner]][i];
    }
}

// Eight times the Jacobian determinant at the centre of an element: its volume, m^3.
[[nodiscard]] inline double volume_of(const Mesh& mesh, const std::array<std::uint32_t, 8>& nodes) {
  double j[3][3];
  jacobian_of(mesh, nodes, j);
  return 8 * (j[0][0] * (j[1][1] * j[2][2] - j[1][2] * j[2][1]) -
              j[0][1] * (j[1][0] * j[2][2] - j[1][2] * j[2][0]) +
              j[0][2] * (j[1][0] * j[2][1] - j[1][1] * j[2][0]));
}

// Sweeps a section along `layers` planes; place(point, layer) gives positions. Layers of elements
// follow each other.
template <class Place>
[[nodiscard]] Mesh swept(const Section& section, std::size_t layers, Place place) {
  Mesh mesh;
  const auto per_plane = static_cast<std::uint32_t>(section.points.size());
  mesh.points.reserve(section.points.size() * (layers + 1));
  mesh.elements.reserve(section.cells.size() * layers);
  for (std::size_t layer = 0; layer <= layers; ++layer)
    for (const auto& point : section.points)
      mesh.points.push_back(place(point, layer));
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto low = static_cast<std::uint32_t>(layer) * per_plane;
    const auto high = low + per_plane;
    for (const auto& c : section.cells)
      mesh.elements.push_back({low + c[0], low + c[1], low + c[2], low + c[3], high + c[0],
                               high + c[1], high + c[2], high + c[3]});
  }
  for (auto& nodes : mesh.elements) // the axes of each in a right-handed order
    if (volume_of(mesh, nodes) < 0)
      for (std::size_t corner = 0; corner < 8; corner += 2)
        std::swap(nodes[corner], nodes[corner + 1]);
  return mesh;
}

// The parts of a beam of about this many elements: a square tube 0.1 m wide with walls of 5 mm and
// 1.2 m long, its elements nearly cubes.
struct BeamParts {
  explicit BeamParts(std::size_t elements) {
    for (std::size_t more = 4;; ++more) {
      const std::size_t thick = std::max<std::size_t>(2, (more * 5 + 50) / 100);
      if (more > 4 && 4 * more * thick * 12 * more > elements)
        break;
      side = more;
      layers = thick;
    }
    const std::size_t section = 4 * side * layers;
    length = std::max<std::size_t>(1, (elements + section / 2) / section);
  }
  std::size_t side = 4;   // elements along a side of the tube
  std::size_t layers = 2; // through its wall
  std::size_t length = 1; // along the beam
};

// A bumper beam: a tube along y, bowed so that its middle meets the wall x = 0 first.
[[nodiscard]] inline Mesh beam(std::size_t elements) {
  constexpr double width = 0.1;
  constexpr double wall = 0.005;
  constexpr double half_length = 0.6;
  constexpr double bow = 0.06;
  const BeamParts parts(elements);
  Section section;
  const auto place = [&](double share, std::size_t layer) -> std::array<double, 2> {
    const double depth = static_cast<double>(layer) / static_cast<double>(parts.layers);
    const double half = width / 2 - wall * (1 - depth);
    const auto at = on_square(share);
    return {at[0] * half, at[1] * half};
  };
  const std::size_t around = 4 * parts.side;
  std::vector<std::uint32_t> inner(around);
  for (std::size_t at = 0; at < around; ++at) {
    inner[at] = static_cast<std::uint32_t>(at);
    section.points.push_back(place(static_cast<double>(at) / static_cast<double>(around), 0));
  }
  add_rings(section, inner, parts.side, parts.layers, place);
  return swept(section, parts.length, [&](const auto& point, std::size_t layer) -> Point {
    const double share =
        2 * static_cast<double>(layer) / static_cast<double>(parts.length) - 1; // -1..1
    return {point[1] + width / 2 + bow * share * share, half_length * share, point[0]};
  });
}

// A cylinder along x that stands on the wall x = 0: a square core and rings that become round.
[[nodiscard]] inline Mesh cylinder(double radius, double length, std::size_t side,
                                   std::size_t rings, std::size_t layers) {
  Section section;
  constexpr double core = 0.5; // half the width of the core over the radius
  const auto n = side;
  for (std::size_t j = 0; j <= n; ++j)
    for (std::size_t i = 0; i <= n; ++i) {
      const double a = 2 * static_cast<double>(i) / static_cast<double>(n) - 1;
      const double b = 2 * static_cast<double>(j) / static_cast<double>(n) - 1;
      // Sides of the core bulge a little, so that no corner is flat.
      const double swell = 1.15;
      section.points.push_back({core * radius * a * (swell - (swell - 1) * b * b),
                                core * radius * b * (swell - (swell - 1) * a * a)});
    }
  const auto core_point = [&](std::size_t i, std::size_t j) {
    return static_cast<std::uint32_t>(j * (n + 1) + i);
  };
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0; i < n; ++i)
      section.cells.push_back(
          {core_point(i, j), core_point(i + 1, j), core_point(i, j + 1), core_point(i + 1, j + 1)});
  std::vector<std::uint32_t> edge;
  for (std::size_t i = 0; i < n; ++i)
    edge.push_back(core_point(i, 0));
  for (std::size_t j = 0; j < n; ++j)
    edge.push_back(core_point(n, j));
  for (std::size_t i = n; i > 0; --i)
    edge.push_back(core_point(i, n));
  for (std::size_t j = n; j > 0; --j)
    edge.push_back(core_point(0, j));
  const auto inner = section.points;
  add_rings(section, edge, n, rings, [&](double share, std::size_t layer) -> std::array<double, 2> {
    const double out = static_cast<double>(layer) / static_cast<double>(rings);
    const double angle = 2 * std::numbers::pi * share - 0.75 * std::numbers::pi;
    const auto at = static_cast<std::size_t>(std::lround(share * 4 * static_cast<double>(n)));
    const auto& from = inner[edge[at]];
    return {from[0] + out * (radius * std::cos(angle) - from[0]),
            from[1] + out * (radius * std::sin(angle) - from[1])};
  });
  return swept(section, layers, [&](const auto& point, std::size_t layer) -> Point {
    return {length * static_cast<double>(layer) / static_cast<double>(layers), point[0], point[1]};
  });
}

} // namespace seatrial::impact
