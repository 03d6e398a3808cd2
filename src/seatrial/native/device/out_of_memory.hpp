// Running out of device memory is not a driver fault: the point does not fit on this device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>

#include "device/driver_library.hpp"
#include "device/facts.hpp"
#include "failure.hpp"

namespace seatrial::device {

// Returns the result of `allocate()`. Throws Skip if the driver fails with one of
// `out_of_memory_codes`, with the requested size and the device's total.
template <class Allocate>
[[nodiscard]] auto or_out_of_memory(const Facts& facts, std::size_t bytes,
                                    std::initializer_list<int> out_of_memory_codes,
                                    Allocate allocate) {
  try {
    return allocate();
  } catch (const CallFailed& failed) {
    if (std::ranges::find(out_of_memory_codes, failed.code()) == out_of_memory_codes.end())
      throw;
    throw Skip(facts.name + " cannot allocate " + std::to_string(bytes >> 10) +
               " KiB more; it has " + std::to_string(facts.memory_bytes >> 20) + " MiB in total");
  }
}

} // namespace seatrial::device
