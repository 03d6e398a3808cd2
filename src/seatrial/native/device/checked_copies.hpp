// Copies random data between pinned host memory and device memory, and checks every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.hpp"
#include "device/host_memory.hpp"
#include "mpi/pattern.hpp"

namespace seatrial::device {

enum class Copy { download, readback, both };

// Copies run one after another on their own queue; `rank` seeds the data, so that they differ
// between ranks.
class Copies {
public:
  Copies(Device& device, std::uint64_t bytes, int rank)
      : bytes_(bytes), seed_(2 * static_cast<std::uint64_t>(rank) + 1), queue_(device.queue()),
        in_(device.allocate(bytes, Where::device)), out_(device.allocate(bytes, Where::device)),
        sent_(device, HostKind::pinned, bytes, std::nullopt),
        received_(device, HostKind::pinned, bytes, std::nullopt), back_(bytes) {
    mpi::fill(back_, seed_ + 1);
    queue_->write(*out_, 0, back_.data(), bytes_);
    queue_->finish();
    mpi::fill(sent_.first(bytes_), seed_);
  }

  // Overwrites the targets with wrong data.
  void poison() {
    mpi::poison(received_.first(bytes_), seed_ + 1);
    queue_->fill(*in_, 0, 0xffffffff, bytes_ / 4 * 4);
    queue_->finish();
  }

  void verify(Copy copy) {
    if (copy != Copy::readback) {
      mpi::poison(back_, seed_);
      queue_->read(back_.data(), *in_, 0, bytes_);
      queue_->finish();
      wrong_ += mpi::wrong_bytes(back_, seed_);
    }
    if (copy != Copy::download)
      wrong_ += mpi::wrong_bytes(received_.first(bytes_), seed_ + 1);
  }

  // Enqueues this many copies without waiting; for both directions, this many of each, alternating.
  void begin(Copy copy, std::uint64_t copies) {
    first_ = queue_->mark();
    for (std::uint64_t i = 0; i < copies; ++i) {
      if (copy != Copy::readback)
        queue_->write(*in_, 0, sent_.data(), bytes_);
      if (copy != Copy::download)
        queue_->read(received_.data(), *out_, 0, bytes_);
    }
    last_ = queue_->mark();
    queue_->flush();
  }

  // Waits for the copies; returns their time on the device.
  double end_s() {
    queue_->finish();
    return queue_->seconds_between(*first_, *last_);
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  std::uint64_t bytes_;
  std::uint64_t seed_; // for data to the device; seed + 1 is for data to the host
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Memory> in_;
  std::unique_ptr<Memory> out_;
  HostMemory sent_;
  HostMemory received_;
  std::vector<std::byte> back_;
  std::unique_ptr<Mark> first_;
  std::unique_ptr<Mark> last_;
  std::size_t wrong_ = 0;
};

} // namespace seatrial::device
