// The order in which a part computes its elements and keeps its nodes.
//
// Elements at borders come first: while the others are computed, the forces of the borders are on
// their way. Nodes of borders come first too; the others follow in the order in which the last of
// their elements is computed, so that those that are complete are always the first ones: they are
// moved while they are still in a cache.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "impact/mesh.hpp"
#include "impact/sharing.hpp"

namespace seatrial::impact {

struct Order {
  Order(const Mesh& mesh, const std::vector<std::uint32_t>& part_of, const Sharing& sharing,
        std::uint32_t part) {
    for (std::size_t at = 0; at < mesh.elements.size(); ++at)
      if (part_of[at] == part)
        elements.push_back(static_cast<std::uint32_t>(at));
    const auto is_shared = [&](std::uint32_t node) { return sharing.is_shared(node); };
    const auto inner =
        std::stable_partition(elements.begin(), elements.end(), [&](std::uint32_t element) {
          return std::ranges::any_of(mesh.elements[element], is_shared);
        });
    border_elements = static_cast<std::size_t>(inner - elements.begin());
    std::unordered_map<std::uint32_t, std::uint32_t> last; // element, by node
    for (std::uint32_t at = 0; at < elements.size(); ++at)
      for (const auto node : mesh.elements[elements[at]]) {
        if (last.try_emplace(node, at).second)
          nodes.push_back(node);
        last[node] = at;
      }
    const auto inside = std::stable_partition(nodes.begin(), nodes.end(), is_shared);
    border_nodes = static_cast<std::size_t>(inside - nodes.begin());
    std::stable_sort(inside, nodes.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return last.at(a) < last.at(b); });
    complete.resize(elements.size() + 1);
    complete[0] = static_cast<std::uint32_t>(border_nodes);
    std::for_each(inside, nodes.end(), [&](std::uint32_t node) { ++complete[last.at(node) + 1]; });
    std::partial_sum(complete.begin(), complete.end(), complete.begin());
  }

  // The nodes of each element, as places in `nodes`.
  [[nodiscard]] std::vector<std::array<std::uint32_t, 8>> connected(const Mesh& mesh) const {
    std::unordered_map<std::uint32_t, std::uint32_t> place;
    for (std::uint32_t at = 0; at < nodes.size(); ++at)
      place.emplace(nodes[at], at);
    std::vector<std::array<std::uint32_t, 8>> found;
    found.reserve(elements.size());
    for (const auto element : elements) {
      auto& corners = found.emplace_back();
      std::ranges::transform(mesh.elements[element], corners.begin(),
                             [&](auto node) { return place.at(node); });
    }
    return found;
  }

  std::vector<std::uint32_t> elements; // of the mesh
  std::vector<std::uint32_t> nodes;    // of the mesh
  std::size_t border_elements = 0;     // the first ones: those with a node of a border
  std::size_t border_nodes = 0;        // the first ones
  // By number of elements computed: nodes before this one are of a border or complete.
  std::vector<std::uint32_t> complete;
};

} // namespace seatrial::impact
