// Sharing one problem between devices: their parts of it, and an exchange of values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device_program.hpp"
#include "team.hpp"

namespace seatrial::device {

// Splits `count` elements into contiguous parts that differ by at most one, none of them empty:
// `make(device, count, member)` creates each member's part, in its own thread.
template <class Part, class Make>
[[nodiscard]] std::vector<std::unique_ptr<Part>>
split_evenly(Team& team, const ChosenDevices& chosen, std::uint64_t count, Make make) {
  std::vector<std::unique_ptr<Part>> parts(chosen.size());
  team.run([&](std::size_t member) {
    const auto first = count * member / chosen.size();
    const auto last = count * (member + 1) / chosen.size();
    parts[member] = make(chosen[member], std::max(last - first, std::uint64_t{1}), member);
  });
  return parts;
}

// One value per member, visible to all, as after MPI_Allgather.
template <class Value>
class Gathered {
public:
  explicit Gathered(Team& team) : team_(team), values_(team.size()) {}

  // Returns `use(values)`. Collective over all members.
  template <class Use>
  [[nodiscard]] auto exchange(std::size_t member, Value own, Use use) {
    values_[member] = own;
    team_.barrier().wait();
    const auto made = use(values_);
    team_.barrier().wait(); // no member changes a value that another still reads
    return made;
  }

private:
  Team& team_;
  std::vector<Value> values_;
};

} // namespace seatrial::device
