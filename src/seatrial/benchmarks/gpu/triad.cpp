// gpu.triad: a = b + s c with a, b and c in host memory, in blocks on two queues, so that one block
// is transferred while another is computed.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "available_memory.hpp"
#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/points.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "triad.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr unsigned groups_per_unit = 8;
constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;
constexpr std::uint64_t smallest = 64 * KiB;
constexpr std::uint64_t growth = 4;
// With inputs that are small multiples of 1/16, b + s c is a multiple of 1/64 below 1024: exact in
// fp32, with or without a fused multiply-add.
constexpr double factor = 1.75;

struct Settings {
  bool is_fp64;
  std::uint64_t largest; // bytes of a block of one array; 0: chosen for the device
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .largest = arguments.number<std::uint64_t>("--largest", 0, 0, std::uint64_t{1} << 53)};
}

// From 64 KiB to the largest, each 4 times the previous one.
[[nodiscard]] std::vector<std::uint64_t> blocks_for(const Facts& facts, std::uint64_t asked) {
  const auto largest = asked != 0 ? asked : facts.is_cpu ? 4 * MiB : 16 * MiB;
  std::vector<std::uint64_t> blocks;
  for (std::uint64_t block = smallest; block <= largest; block *= growth)
    blocks.push_back(block);
  if (blocks.empty())
    throw Failure(Exit::usage, "--largest: expected at least 64 KiB");
  return blocks;
}

template <class Real>
using Triad = Kernel<Real*, const Real*, const Real*, Real, std::uint64_t>;

template <class Real>
[[nodiscard]] Source source() {
  return {.name = "triad.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>()},
          .kernels = {Triad<Real>::declared("triad")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// A run is a pass over the complete arrays: two blocks of the largest size, so that adjacent blocks
// are on different queues and never share host memory.
[[nodiscard]] std::uint64_t pass_bytes(const std::vector<std::uint64_t>& blocks) {
  return 2 * blocks.back();
}

[[nodiscard]] std::vector<SeriesPoint> points_of(const std::vector<std::uint64_t>& blocks,
                                                 std::uint64_t element) {
  const auto bytes = pass_bytes(blocks);
  std::vector<SeriesPoint> points;
  for (const auto block : blocks)
    points.push_back({.series = "triad",
                      .axis = "block_B",
                      .at = block,
                      .work = {{"bytes", 3 * static_cast<double>(bytes)},
                               {"flops", 2 * static_cast<double>(bytes / element)}}});
  return points;
}

// Three arrays on the host and two blocks of each on the device, which have the same total size.
void require_room(const ChosenDevices& chosen, std::uint64_t array_bytes) {
  const auto host = available_memory();
  if (3 * array_bytes * chosen.size() > host.bytes / 2)
    throw Skip("three arrays of " + std::to_string(array_bytes) +
               " B for each device would take more than half of the available memory (" +
               host.source + ")");
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (3 * array_bytes > chosen[i].free_bytes() / 2)
      throw Skip("three arrays of " + std::to_string(array_bytes) +
                 " B would take more than half of the device's memory");
}

template <class Real>
class Pipeline : public PointRunner {
public:
  Pipeline(Device& device, bool is_optimised, std::vector<std::uint64_t> blocks)
      : blocks_(std::move(blocks)), count_(pass_bytes(blocks_) / sizeof(Real)),
        groups_(device.facts().is_cpu ? device.facts().compute_units
                                      : groups_per_unit * device.facts().compute_units),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        triad_(*module_, "triad"), lanes_{Lane(device, blocks_.back() / sizeof(Real)),
                                          Lane(device, blocks_.back() / sizeof(Real))},
        a_(device, count_, Where::pinned), b_(device, count_, Where::pinned),
        c_(device, count_, Where::pinned), timers_(blocks_.size()) {
    std::mt19937_64 random(1);
    std::uniform_int_distribution<int> any(-4096, 4096);
    for (std::uint64_t i = 0; i < count_; ++i) {
      b_.host()[i] = static_cast<Real>(any(random)) / 16;
      c_.host()[i] = static_cast<Real>(any(random)) / 16;
    }
  }

  [[nodiscard]] double error_before() override {
    double wrong = 0;
    for (const auto block : blocks_) {
      poison();
      static_cast<void>(passes_s(block, 1));
      wrong += error_after();
    }
    poison();
    return wrong;
  }

  [[nodiscard]] Timed sample(std::size_t point) override {
    auto& timer = timers_[point];
    if (!timer)
      timer = std::make_unique<BatchTimer>(
          [this, point](std::uint64_t passes) { return passes_s(blocks_[point], passes); });
    return timer->sample();
  }

  // The number of elements that are not exactly b + s c.
  [[nodiscard]] double error_after() override {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < count_; ++i) {
      const auto expected =
          static_cast<double>(b_.host()[i]) + factor * static_cast<double>(c_.host()[i]);
      wrong += static_cast<double>(a_.host()[i]) == expected ? 0 : 1;
    }
    return static_cast<double>(wrong);
  }

private:
  // A queue with memory for one block of each array.
  struct Lane {
    Lane(Device& device, std::uint64_t count)
        : queue(device.queue()), a(device, count), b(device, count), c(device, count) {}

    std::unique_ptr<Queue> queue;
    Array<Real> a;
    Array<Real> b;
    Array<Real> c;
  };

  void poison() {
    constexpr std::uint32_t nan = 0xffffffff;
    std::memset(a_.host(), 0xff, a_.bytes());
    for (auto& lane : lanes_) {
      for (const auto* array : {&lane.a, &lane.b, &lane.c})
        lane.queue->fill(array->memory(), 0, nan, array->bytes());
      lane.queue->finish();
    }
  }

  void enqueue_block(Lane& lane, std::uint64_t first, std::uint64_t count) {
    const auto bytes = count * sizeof(Real);
    auto& queue = *lane.queue;
    queue.write(lane.b.memory(), 0, b_.host() + first, bytes);
    queue.write(lane.c.memory(), 0, c_.host() + first, bytes);
    triad_(queue, {.groups = groups_, .items = group}, lane.a, lane.b, lane.c,
           static_cast<Real>(factor), count);
    queue.read(a_.host() + first, lane.a.memory(), 0, bytes);
    queue.flush(); // starts the work while the host enqueues the next block on the other queue
  }

  // Uses the host's clock: markers belong to a single queue, and there are two.
  [[nodiscard]] double passes_s(std::uint64_t block, std::uint64_t passes) {
    const auto count = block / sizeof(Real);
    const auto interval = timed([&] {
      for (std::uint64_t pass = 0; pass < passes; ++pass)
        for (std::uint64_t i = 0; i < count_ / count; ++i)
          enqueue_block(lanes_[i % lanes_.size()], i * count, count);
      for (auto& lane : lanes_)
        lane.queue->finish();
    });
    return interval.elapsed_s();
  }

  std::vector<std::uint64_t> blocks_;
  std::uint64_t count_; // elements per array
  unsigned groups_;
  std::unique_ptr<Module> module_;
  Triad<Real> triad_;
  std::array<Lane, 2> lanes_;
  Array<Real> a_;
  Array<Real> b_;
  Array<Real> c_;
  std::vector<std::unique_ptr<BatchTimer>> timers_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const auto blocks = blocks_for(chosen[0].facts(), settings.largest);
  require_room(chosen, pass_bytes(blocks));
  measure_points(program, team, chosen, points_of(blocks, sizeof(Real)), [&](Device& device) {
    return std::make_unique<Pipeline<Real>>(device, chosen.is_optimised(), blocks);
  });
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("triad", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
