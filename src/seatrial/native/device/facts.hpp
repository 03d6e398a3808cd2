// What a driver reports about a device.
#pragma once

#include <cstdint>
#include <string>

#include "json.hpp"

namespace seatrial::device {

// 0 and "" mean "not reported".
struct Facts {
  std::string backend; // cuda, opencl
  int index = 0;       // the backend's index
  std::string name;
  std::string vendor;
  std::string driver; // version
  std::string pci;    // 0000:3b:00.0
  std::uint64_t memory_bytes = 0;
  std::uint64_t cache_bytes = 0; // last-level cache
  std::uint64_t local_bytes = 0; // per work-group
  unsigned compute_units = 0;
  unsigned warp = 0; // items that run in lockstep
  unsigned largest_group = 0;
  double clock_Hz = 0; // maximum
  double memory_clock_Hz = 0;
  unsigned memory_bus_bits = 0;
  int capability = 0; // CUDA compute capability: 10 x major + minor
  unsigned copy_engines = 0;
  bool has_fp64 = false;
  bool is_cpu = false;
  bool shares_memory_with_host = false;

  [[nodiscard]] json::Object document() const {
    return json::Object()
        .add("backend", backend)
        .add("index", index)
        .add("name", name)
        .add("vendor", vendor)
        .add("driver", driver)
        .add("pci", pci)
        .add("memory_bytes", memory_bytes)
        .add("cache_bytes", cache_bytes)
        .add("local_bytes", local_bytes)
        .add("compute_units", compute_units)
        .add("warp", warp)
        .add("largest_group", largest_group)
        .add("clock_Hz", clock_Hz)
        .add("memory_clock_Hz", memory_clock_Hz)
        .add("memory_bus_bits", memory_bus_bits)
        .add("capability", capability)
        .add("copy_engines", copy_engines)
        .add("fp64", has_fp64)
        .add("cpu", is_cpu)
        .add("shares_memory_with_host", shares_memory_with_host);
  }
};

} // namespace seatrial::device
