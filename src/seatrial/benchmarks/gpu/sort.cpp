// gpu.sort: a stable radix sort of pairs of u32 on one device, or on several at once.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "sort.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
// Registers let 2 to 4 groups be there at once: all of these come in whole rounds.
constexpr unsigned groups_per_unit = 12;
constexpr unsigned per_item = 8; // pairs of a tile
constexpr unsigned digit_bits = 4;
constexpr unsigned digits = 1 << digit_bits;

struct Settings {
  std::uint64_t count; // of pairs
};

// Places are u32.
[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.count = arguments.number<std::uint64_t>("--count", 1 << 17, 1, std::uint64_t{1} << 31)};
}

using CountDigits = Kernel<const std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t>;
using ScanCounts = Kernel<std::uint32_t*, std::uint32_t>;
using MovePairs = Kernel<const std::uint32_t*, const std::uint32_t*, const std::uint32_t*,
                         std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t>;

[[nodiscard]] Source source() {
  return {.name = "sort.cl",
          .text = seatrial_kernels(),
          .defines = {"GROUP=" + std::to_string(group), "PER_ITEM=" + std::to_string(per_item)},
          .kernels = {CountDigits::declared("count_digits"), ScanCounts::declared("scan_counts"),
                      MovePairs::declared("move_pairs")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source()};
}

// No more than there are tiles.
[[nodiscard]] unsigned groups_for(const Facts& facts, std::uint64_t count) {
  constexpr std::uint64_t tile = group * per_item;
  const std::uint64_t most = (facts.is_cpu ? 1 : groups_per_unit) * facts.compute_units;
  return static_cast<unsigned>(std::min((count + tile - 1) / tile, most));
}

struct Pair {
  std::uint32_t key;
  std::uint32_t value;
};

// About half of the keys are among those before them, so that an unstable sort is seen; every value
// is another, and in no order.
[[nodiscard]] std::vector<Pair> random_pairs(std::uint64_t count) {
  std::mt19937_64 random(1);
  std::vector<Pair> pairs(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto drawn = random();
    const bool is_repeated = i > 0 && (drawn & 1) != 0;
    pairs[i].key =
        is_repeated ? pairs[(drawn >> 1) % i].key : static_cast<std::uint32_t>(drawn >> 32);
    pairs[i].value = static_cast<std::uint32_t>(i) * 2654435761U; // odd: no value twice
  }
  return pairs;
}

// Keys and values in memory of the device.
struct Arrays {
  Arrays(Device& device, std::size_t count) : keys(device, count), values(device, count) {}
  Array<std::uint32_t> keys;
  Array<std::uint32_t> values;
};

class Sort : public Workload {
public:
  Sort(Device& device, bool is_optimised, std::uint64_t count)
      : queue_(device.queue()), module_(device.build(source_for(device, source(), is_optimised))),
        count_digits_(*module_, "count_digits"), scan_counts_(*module_, "scan_counts"),
        move_pairs_(*module_, "move_pairs"), groups_(groups_for(device.facts(), count)),
        given_(device, count), odd_(device, count), sorted_(device, count),
        counts_(device, std::size_t{digits} * groups_), expected_(random_pairs(count)) {
    give(given_.keys, &Pair::key);
    give(given_.values, &Pair::value);
    std::stable_sort(expected_.begin(), expected_.end(),
                     [](const Pair& a, const Pair& b) { return a.key < b.key; });
  }

  [[nodiscard]] Queue& queue() override { return *queue_; }

  // The first pass takes what was given and leaves it as it is: every run sorts the same pairs, and
  // none is copied for it.
  void enqueue() override {
    const Arrays* from = &given_;
    for (std::uint32_t shift = 0; shift < 32; shift += digit_bits) {
      const Arrays& to = shift / digit_bits % 2 == 0 ? odd_ : sorted_;
      pass(*from, to, shift);
      from = &to;
    }
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    const auto pairs = static_cast<double>(expected_.size());
    return {{"ops", pairs}, {"bytes", pairs * sizeof(Pair)}};
  }
  void poison() override {
    constexpr std::uint32_t nan = 0xffffffff;
    for (const auto* each : {&odd_.keys, &odd_.values, &sorted_.keys, &sorted_.values, &counts_})
      queue_->fill(each->memory(), 0, nan, each->bytes());
  }
  // How many pairs are not where they must be.
  [[nodiscard]] double error() override {
    std::vector<std::uint32_t> keys(expected_.size());
    std::vector<std::uint32_t> values(expected_.size());
    queue_->read(keys.data(), sorted_.keys.memory(), 0, sorted_.keys.bytes());
    queue_->read(values.data(), sorted_.values.memory(), 0, sorted_.values.bytes());
    queue_->finish();
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < expected_.size(); ++i)
      wrong += keys[i] != expected_[i].key || values[i] != expected_[i].value;
    return static_cast<double>(wrong);
  }

private:
  void give(const Array<std::uint32_t>& to, std::uint32_t Pair::*member) {
    std::vector<std::uint32_t> numbers(expected_.size());
    std::transform(expected_.begin(), expected_.end(), numbers.begin(),
                   [member](const Pair& pair) { return pair.*member; });
    queue_->write(to.memory(), 0, numbers.data(), to.bytes());
    queue_->finish();
  }

  void pass(const Arrays& from, const Arrays& to, std::uint32_t shift) {
    const Grid grid{.groups = groups_, .items = group};
    const std::uint64_t count = expected_.size();
    count_digits_(*queue_, grid, from.keys, counts_, shift, count);
    scan_counts_(*queue_, {.groups = 1, .items = group}, counts_,
                 static_cast<std::uint32_t>(counts_.size()));
    move_pairs_(*queue_, grid, from.keys, from.values, counts_, to.keys, to.values, shift, count);
  }

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  CountDigits count_digits_;
  ScanCounts scan_counts_;
  MovePairs move_pairs_;
  unsigned groups_;
  Arrays given_;
  Arrays odd_; // after the 1st, 3rd, 5th and 7th pass
  Arrays sorted_;
  Array<std::uint32_t> counts_;
  std::vector<Pair> expected_;
};

void measure(Program& program, Team& team, const Chosen& chosen, const Settings& settings) {
  measure_each(program, team, chosen, "sort", [&](Device& device) {
    return std::make_unique<Sort>(device, chosen.is_optimised(), settings.count);
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("sort", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
