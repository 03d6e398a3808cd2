// The nodes of a mesh and the parts that have copies of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "impact/mesh.hpp"

namespace seatrial::impact {

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
  [[nodiscard]] bool is_shared(std::uint32_t node) const { return parts_[node].size() > 1; }

private:
  std::vector<std::vector<std::uint32_t>> parts_; // ascending
};

} // namespace seatrial::impact
