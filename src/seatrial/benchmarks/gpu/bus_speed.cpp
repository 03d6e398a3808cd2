// gpu.bus-speed: copies between host and device memory, in both directions, by size.
// untimed: -O1
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "available_memory.hpp"
#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/points.hpp"

namespace seatrial {
namespace {

using namespace device;

constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;
constexpr std::uint64_t smallest = KiB;
constexpr std::uint64_t growth = 4;
// Below this size the device's markers cost as much as the copies between them.
constexpr std::uint64_t marked_from = 64 * KiB;

struct Settings {
  bool is_pinned;
  std::uint64_t largest; // 0: chosen for the device
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_pinned = arguments.choice("--host", "pinned", {"pinned", "pageable"}) == "pinned",
          .largest = arguments.number<std::uint64_t>("--largest", 0, 0, std::uint64_t{1} << 53)};
}

// The caches of a CPU used as a device hold little more than 16 MiB.
[[nodiscard]] std::uint64_t largest_for(const Facts& facts, std::uint64_t asked) {
  return asked != 0 ? std::max(asked, smallest) : facts.is_cpu ? 16 * MiB : 64 * MiB;
}

// Powers of 4 from 1 KiB, and the largest size itself.
[[nodiscard]] std::vector<std::uint64_t> sizes_to(std::uint64_t largest) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = smallest; size < largest; size *= growth)
    sizes.push_back(size);
  sizes.push_back(largest);
  return sizes;
}

// Both directions for each size.
[[nodiscard]] std::vector<SeriesPoint> points_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<SeriesPoint> points;
  for (const auto size : sizes)
    for (const char* series : {"download", "readback"})
      points.push_back({.series = series,
                        .axis = "size_B",
                        .at = size,
                        .work = {{"bytes", static_cast<double>(size)}}});
  return points;
}

// Host memory as source or target of copies.
class HostMemory {
public:
  HostMemory(Device& device, std::size_t bytes, bool is_pinned)
      : pinned_(is_pinned ? device.allocate(bytes, Where::pinned) : nullptr),
        pageable_(is_pinned ? 0 : bytes),
        start_(is_pinned ? static_cast<unsigned char*>(pinned_->host()) : pageable_.data()) {}

  [[nodiscard]] unsigned char* data() const { return start_; }

private:
  std::unique_ptr<Memory> pinned_;
  std::vector<unsigned char> pageable_;
  unsigned char* start_;
};

class Bus : public PointRunner {
public:
  Bus(Device& device, bool is_pinned, std::vector<std::uint64_t> sizes)
      : queue_(device.queue()), is_pinned_(is_pinned), sizes_(std::move(sizes)),
        bytes_((sizes_.back() + 3) / 4 * 4), near_(device.allocate(bytes_, Where::device)),
        far_(device.allocate(bytes_, Where::device)), sent_(device, bytes_, is_pinned),
        received_(device, bytes_, is_pinned), timers_(2 * sizes_.size()) {
    std::mt19937_64 random(1);
    for (std::size_t at = 0; at < bytes_; at += 4) {
      const auto word = static_cast<std::uint32_t>(random());
      std::memcpy(sent_.data() + at, &word, sizeof word);
    }
    random_size_ = 1 + random() % sizes_.back();
  }

  // To the device, from one device buffer to another, and back.
  [[nodiscard]] double error_before() override {
    double wrong = 0;
    for (const auto size : {sizes_.back(), random_size_}) {
      poison();
      queue_->write(*near_, 0, sent_.data(), size);
      queue_->copy(*far_, 0, *near_, 0, size);
      queue_->read(received_.data(), *far_, 0, size);
      queue_->finish();
      wrong += wrong_bytes(size);
    }
    poison();
    return wrong;
  }

  [[nodiscard]] Timed sample(std::size_t point) override {
    auto& timer = timers_[point];
    if (!timer)
      timer = std::make_unique<BatchTimer>(
          [this, point](std::uint64_t copies) { return batch_time_s(point, copies); });
    return timer->sample();
  }

  // The last download of the largest size was the source of its readback.
  [[nodiscard]] double error_after() override {
    const double wrong = wrong_bytes(sizes_.back());
    poison_host();
    queue_->read(received_.data(), *near_, 0, sizes_.back());
    queue_->finish();
    return wrong + wrong_bytes(sizes_.back());
  }

private:
  void poison_host() { std::memset(received_.data(), 0xff, bytes_); }

  void poison() {
    poison_host();
    queue_->fill(*near_, 0, 0xffffffff, bytes_);
    queue_->fill(*far_, 0, 0xffffffff, bytes_);
    queue_->finish();
  }

  [[nodiscard]] double wrong_bytes(std::uint64_t size) const {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < size; ++i)
      wrong += sent_.data()[i] != received_.data()[i] ? 1 : 0;
    return static_cast<double>(wrong);
  }

  // Copies one after another; waits only for the last.
  [[nodiscard]] double batch_time_s(std::size_t point, std::uint64_t copies) {
    const auto size = sizes_[point / 2];
    const auto enqueue = [&] {
      for (std::uint64_t i = 0; i < copies; ++i)
        if (point % 2 == 0)
          queue_->write(*near_, 0, sent_.data(), size);
        else
          queue_->read(received_.data(), *near_, 0, size);
    };
    if (!is_pinned_ || size < marked_from)
      return timed([&] {
               enqueue();
               queue_->finish();
             })
          .elapsed_s();
    const auto begin = queue_->mark();
    enqueue();
    const auto end = queue_->mark();
    queue_->finish();
    return queue_->seconds_between(*begin, *end);
  }

  std::unique_ptr<Queue> queue_;
  bool is_pinned_;
  std::vector<std::uint64_t> sizes_;
  std::uint64_t bytes_;
  std::unique_ptr<Memory> near_;
  std::unique_ptr<Memory> far_;
  HostMemory sent_;
  HostMemory received_;
  std::vector<std::unique_ptr<BatchTimer>> timers_;
  std::uint64_t random_size_ = 0;
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  const auto sizes = sizes_to(largest_for(chosen[0].facts(), settings.largest));
  const auto host = available_memory();
  if (sizes.back() > host.bytes / 4 / chosen.size())
    throw Skip("two buffers of " + std::to_string(sizes.back()) +
               " B for each device would take more than half of the available memory (" +
               host.source + ")");
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (sizes.back() > chosen[i].free_bytes() / 4)
      throw Skip("two buffers of " + std::to_string(sizes.back()) +
                 " B would take more than half of the device's memory");
  measure_points(program, team, chosen, points_of(sizes), [&](Device& device) {
    return std::make_unique<Bus>(device, settings.is_pinned, sizes);
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program(
      "bus_speed", argc, argv, seatrial::prepare,
      [] { return std::vector<seatrial::device::Source>{}; }, seatrial::measure);
}
