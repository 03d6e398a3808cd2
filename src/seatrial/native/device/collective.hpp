// A collective operation between devices, one per rank, with the counts of nccl-tests
// (github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "device/device.hpp"
#include "failure.hpp"
#include "mpi/reduction.hpp"

namespace seatrial::device {

enum class Collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive, // every rank sends to the next one and receives from the one before it
};

inline constexpr std::array<std::string_view, 7> collective_names = {
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall", "sendrecv"};

enum class Element { fp32, fp64, int8, int32, int64 };

inline constexpr std::array<std::string_view, 5> element_names = {"float", "double", "int8",
                                                                  "int32", "int64"};

[[nodiscard]] constexpr std::size_t bytes_of(Element element) noexcept {
  constexpr std::array<std::size_t, 5> bytes = {4, 8, 1, 4, 8};
  return bytes[static_cast<std::size_t>(element)];
}

// The bytes of a rank's buffers for a size as nccl-tests counts it: the larger of the two. A part
// is what belongs to one rank.
struct Shape {
  std::size_t size = 0; // rounded down to whole parts
  std::size_t part = 0;
  std::size_t sent = 0;
  std::size_t received = 0;
  double bus = 0; // bus bandwidth over size / time
};

[[nodiscard]] inline Shape shape_of(Collective collective, std::size_t size, std::size_t ranks,
                                    Element element) {
  const auto whole = static_cast<double>(ranks);
  const double share = (whole - 1) / whole;
  const bool has_parts = collective == Collective::all_gather ||
                         collective == Collective::reduce_scatter ||
                         collective == Collective::all_to_all;
  const auto unit = bytes_of(element) * (has_parts ? ranks : 1);
  const auto rounded = size / unit * unit;
  if (rounded == 0)
    throw Skip(std::to_string(size) + " B are less than one element for each of " +
               std::to_string(ranks) + " ranks");
  Shape shape{.size = rounded, .part = rounded, .sent = rounded, .received = rounded, .bus = 1};
  if (has_parts) {
    shape.part = rounded / ranks;
    shape.bus = share;
    if (collective == Collective::all_gather)
      shape.sent = shape.part;
    if (collective == Collective::reduce_scatter)
      shape.received = shape.part;
  }
  if (collective == Collective::all_reduce)
    shape.bus = 2 * share;
  return shape;
}

// Where a rank's data lie: memory of its device, or of the host.
struct Part {
  Memory* memory;
  std::size_t at;
};

struct Operation {
  Collective collective;
  Element element;
  mpi::Reduction reduction;
  Shape shape;
  Part send;
  Part receive;
  bool is_in_place;
};

inline constexpr int collective_root = 0;

// What differs between libraries.
struct Convention {
  bool is_asynchronous;   // `start` returns before the operation ends
  bool root_receives;     // the root of a broadcast receives its own data as well
  bool scatters_in_order; // in place, the result of reduce_scatter is at the rank's own part
};

// How operations are carried out: by a library of the vendor, or by MPI.
class Communicator {
public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual Convention convention() const = 0;
  virtual void start(const Operation& operation) = 0;
  // Waits for all operations that were started.
  virtual void finish() = 0;
};

} // namespace seatrial::device
