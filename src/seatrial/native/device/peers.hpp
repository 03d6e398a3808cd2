// Two devices that copy to each other: their memory, copies through host memory, and peer access.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "mpi/pattern.hpp"

namespace seatrial::device {

inline constexpr std::uint64_t relay_piece = std::uint64_t{4} << 20;

// The buffers of one device: data to send, an inbox, and a queue for each direction.
struct PeerBuffers {
  PeerBuffers(Device& device, std::uint64_t bytes)
      : device(device), seed(static_cast<std::uint64_t>(device.facts().index) + 1), bytes(bytes),
        data(device.allocate(bytes, Where::device)), inbox(device.allocate(bytes, Where::device)),
        sending(device.queue()), receiving(device.queue()),
        back(bytes), pieces{device.allocate(std::min(bytes, relay_piece), Where::pinned),
                            device.allocate(std::min(bytes, relay_piece), Where::pinned)} {
    mpi::fill(back, seed);
    sending->write(*data, 0, back.data(), bytes);
    sending->finish();
  }

  void poison() {
    receiving->fill(*inbox, 0, 0xffffffff, bytes / 4 * 4);
    receiving->finish();
  }

  // The number of inbox bytes that differ from the data of the device with this seed.
  [[nodiscard]] double wrong(std::uint64_t sender, std::uint64_t size) {
    mpi::poison(back, sender);
    receiving->read(back.data(), *inbox, 0, size);
    receiving->finish();
    return static_cast<double>(mpi::wrong_bytes({back.data(), size}, sender));
  }

  Device& device;
  std::uint64_t seed;
  std::uint64_t bytes;
  std::unique_ptr<Memory> data;
  std::unique_ptr<Memory> inbox;
  std::unique_ptr<Queue> sending;
  std::unique_ptr<Queue> receiving;
  std::vector<std::byte> back;
  std::array<std::unique_ptr<Memory>, 2> pieces; // host memory for copies through the host
};

// Copies through host memory: while one piece is written to the target, the next one is read from
// the source.
class Relay {
public:
  Relay(PeerBuffers& source, PeerBuffers& target, std::uint64_t size, std::uint64_t copies)
      : source_(source), target_(target), size_(size),
        in_copy_((size + relay_piece - 1) / relay_piece), pieces_(copies * in_copy_) {}

  [[nodiscard]] bool is_done() const noexcept { return pieces_ == 0 || step_ > pieces_; }

  void enqueue() {
    if (step_ > 0 && step_ <= pieces_) {
      const auto last = step_ - 1;
      target_.receiving->write(*target_.inbox, at(last), host(last), length(last));
      target_.receiving->flush();
    }
    if (step_ < pieces_) {
      source_.sending->read(host(step_), *source_.data, at(step_), length(step_));
      source_.sending->flush();
    }
    ++step_;
  }

  void finish() {
    source_.sending->finish();
    target_.receiving->finish();
  }

private:
  [[nodiscard]] void* host(std::uint64_t number) const {
    return source_.pieces[number % source_.pieces.size()]->host();
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t number) const {
    return number % in_copy_ * relay_piece;
  }
  [[nodiscard]] std::uint64_t length(std::uint64_t number) const {
    return std::min(relay_piece, size_ - at(number));
  }

  PeerBuffers& source_;
  PeerBuffers& target_;
  std::uint64_t size_;
  std::uint64_t in_copy_; // pieces per copy
  std::uint64_t pieces_;  // pieces of all copies
  std::uint64_t step_ = 0;
};

// Enables peer access between two devices for its lifetime: drivers limit the number of peers
// enabled at once.
class PeerAccess {
public:
  PeerAccess(Device& a, Device& b, bool is_wanted) : a_(a), b_(b), is_wanted_(is_wanted) {
    set(true);
  }
  ~PeerAccess() {
    try {
      set(false);
    } catch (...) { // the next measurement does not depend on it
    }
  }
  PeerAccess(const PeerAccess&) = delete;
  PeerAccess& operator=(const PeerAccess&) = delete;

private:
  void set(bool is_on) {
    if (!is_wanted_)
      return;
    a_.reach(b_, is_on);
    b_.reach(a_, is_on);
  }

  Device& a_;
  Device& b_;
  bool is_wanted_;
};

} // namespace seatrial::device
