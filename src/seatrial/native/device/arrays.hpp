// Copies between device arrays and host vectors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "device/device.hpp"
#include "device/kernel.hpp"

namespace seatrial::device {

// A device array with these elements (at least one). Waits for the copy.
template <class Element>
[[nodiscard]] Array<Element> on_device(Device& device, Queue& queue,
                                       const std::vector<Element>& elements) {
  Array<Element> array(device, std::max(elements.size(), std::size_t{1}));
  queue.write(array.memory(), 0, elements.data(), elements.size() * sizeof(Element));
  queue.finish();
  return array;
}

// All elements of an array. Waits for the copy.
template <class Element>
[[nodiscard]] std::vector<Element> on_host(Queue& queue, const Array<Element>& array) {
  std::vector<Element> elements(array.size());
  queue.read(elements.data(), array.memory(), 0, array.bytes());
  queue.finish();
  return elements;
}

// Fills arrays with a value that no correct result has: NaN, or the largest integer.
template <class... Elements>
void poison_arrays(Queue& queue, const Array<Elements>&... arrays) {
  constexpr std::uint32_t nan = 0xffffffff;
  (queue.fill(arrays.memory(), 0, nan, arrays.bytes()), ...);
}

} // namespace seatrial::device
