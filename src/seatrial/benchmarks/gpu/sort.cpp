// gpu.sort: a stable radix sort of pairs of u32, on one device or on several at once.
// untimed: -O1
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "sort.cl")

namespace seatrial {
namespace {

using namespace device;

// How the work is divided. An LSD sort uses as many groups as fit at once (registers allow 2 to 4;
// a multiple of 12 gives complete rounds), Onesweep one group per tile; its larger tiles make
// longer runs.
struct Shape {
  bool is_onesweep;
  unsigned group;
  unsigned per_item; // keys per item of a tile
};
constexpr Shape lsd = {.is_onesweep = false, .group = 256, .per_item = 8};
constexpr Shape onesweep = {.is_onesweep = true, .group = 256, .per_item = 8};
constexpr Shape onesweep_cuda = {.is_onesweep = true, .group = 512, .per_item = 16};
constexpr unsigned groups_per_unit = 12;

struct Settings {
  std::string algorithm;
  bool has_values;
  std::uint64_t count; // number of keys
};

// Onesweep uses two bits of a count for its status.
[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.algorithm =
              std::string(arguments.choice("--algorithm", "auto", {"auto", "lsd", "onesweep"})),
          .has_values = arguments.choice("--payload", "pairs", {"pairs", "keys"}) == "pairs",
          .count =
              arguments.number<std::uint64_t>("--count", 1 << 17, 1, (std::uint64_t{1} << 30) - 1)};
}

[[nodiscard]] Shape shape_for(const Facts& facts, const std::string& algorithm) {
  const bool is_cuda = facts.backend == "cuda";
  if (algorithm == "lsd" || (algorithm == "auto" && !is_cuda))
    return lsd;
  return is_cuda ? onesweep_cuda : onesweep;
}

using Words = Array<std::uint32_t>;
using CountDigits = Kernel<const std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t>;
using ScanCounts = Kernel<std::uint32_t*, std::uint32_t>;
using MovePairs = Kernel<const std::uint32_t*, const std::uint32_t*, const std::uint32_t*,
                         std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t>;
using CountAll = Kernel<const std::uint32_t*, std::uint32_t*, std::uint64_t>;
using ScanDigits = Kernel<std::uint32_t*>;
using SortTiles =
    Kernel<const std::uint32_t*, const std::uint32_t*, const std::uint32_t*, std::uint32_t*,
           std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint64_t>;

[[nodiscard]] Source source(const Shape& shape, bool has_values) {
  Source source = {.name = "sort.cl",
                   .text = seatrial_kernels(),
                   .defines = {"GROUP=" + std::to_string(shape.group),
                               "PER_ITEM=" + std::to_string(shape.per_item),
                               std::string("PAIRS=") + (has_values ? "1" : "0")},
                   .kernels = {CountDigits::declared("count_digits"),
                               ScanCounts::declared("scan_counts"),
                               MovePairs::declared("move_pairs")}};
  if (shape.is_onesweep) {
    source.defines.insert(source.defines.end(), {"ONESWEEP=1", "GROUPS_AT_ONCE=2"});
    source.kernels = {CountAll::declared("count_all"), ScanDigits::declared("scan_digits"),
                      SortTiles::declared("sort_tiles")};
  }
  return source;
}

[[nodiscard]] std::vector<Source> sources() {
  return {source(lsd, true), source(lsd, false), source(onesweep_cuda, true),
          source(onesweep_cuda, false)};
}

// About half of the keys are duplicates of earlier ones, so that an unstable sort is detected.
[[nodiscard]] std::vector<std::uint32_t> random_keys(std::uint64_t count) {
  std::mt19937_64 random(1);
  std::vector<std::uint32_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto drawn = random();
    const bool is_repeated = i > 0 && (drawn & 1) != 0;
    keys[i] = is_repeated ? keys[(drawn >> 1) % i] : static_cast<std::uint32_t>(drawn >> 32);
  }
  return keys;
}

// Distinct values in no particular order.
[[nodiscard]] std::uint32_t value_at(std::uint64_t place) {
  return static_cast<std::uint32_t>(place) * 2654435761U; // odd
}

// Keys and values in device memory; without values, one placeholder word.
struct Arrays {
  Arrays(Device& device, std::size_t count, bool has_values)
      : keys(device, count), values(device, has_values ? count : 1) {}
  Words keys;
  Words values;
};

// The input and the expected result. The first pass does not overwrite the input: every run sorts
// the same data without copying it.
class Sort : public Workload {
public:
  Sort(Device& device, const Settings& settings)
      : queue_(device.queue()), count_(settings.count), has_values_(settings.has_values),
        given_(device, count_, has_values_), odd_(device, count_, has_values_),
        sorted_(device, count_, has_values_) {
    const auto keys = random_keys(count_);
    write(given_.keys, keys);
    expected_.resize(count_); // equal keys keep their order
    for (std::uint64_t i = 0; i < count_; ++i)
      expected_[i] = std::uint64_t{keys[i]} << 32 | i;
    std::sort(expected_.begin(), expected_.end());
    if (!has_values_)
      return;
    std::vector<std::uint32_t> values(count_);
    for (std::uint64_t i = 0; i < count_; ++i)
      values[i] = value_at(i);
    write(given_.values, values);
  }

  [[nodiscard]] Queue& queue() override { return *queue_; }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    const auto keys = static_cast<double>(count_);
    return {{"ops", keys}, {"bytes", keys * sizeof(std::uint32_t) * (has_values_ ? 2 : 1)}};
  }
  void poison() override {
    for (const auto* each : {&odd_.keys, &odd_.values, &sorted_.keys, &sorted_.values})
      fill(*each, 0xffffffff);
  }
  // The number of wrong keys and values.
  [[nodiscard]] double error() override {
    const auto keys = on_host(*queue_, sorted_.keys);
    const auto values = on_host(*queue_, sorted_.values);
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < count_; ++i)
      wrong += keys[i] != expected_[i] >> 32 ||
               (has_values_ && values[i] != value_at(expected_[i] & 0xffffffff));
    return static_cast<double>(wrong);
  }

protected:
  // Calls `pass(from, to, number)` for each of an even number of passes.
  template <class Pass>
  void in_passes(unsigned passes, Pass pass) {
    for (unsigned number = 0; number < passes; ++number)
      pass(number == 0 ? given_ : (number % 2 == 0 ? sorted_ : odd_),
           number % 2 == 0 ? odd_ : sorted_, number);
  }
  void fill(const Words& words, std::uint32_t pattern) {
    queue_->fill(words.memory(), 0, pattern, words.bytes());
  }
  [[nodiscard]] std::uint64_t count() const { return count_; }
  [[nodiscard]] const Words& keys() const { return given_.keys; }

private:
  void write(const Words& to, const std::vector<std::uint32_t>& numbers) {
    queue_->write(to.memory(), 0, numbers.data(), to.bytes());
    queue_->finish();
  }

  std::unique_ptr<Queue> queue_;
  std::uint64_t count_;
  bool has_values_;
  Arrays given_;
  Arrays odd_; // after the 1st, 3rd, ... pass
  Arrays sorted_;
  std::vector<std::uint64_t> expected_; // a key and its original position
};

[[nodiscard]] std::uint64_t tiles_of(const Shape& shape, std::uint64_t count) {
  const std::uint64_t tile = shape.group * shape.per_item;
  return (count + tile - 1) / tile;
}

class LsdSort : public Sort {
public:
  LsdSort(Device& device, bool is_optimised, const Settings& settings)
      : Sort(device, settings),
        module_(device.build(source_for(device, source(lsd, settings.has_values), is_optimised))),
        count_digits_(*module_, "count_digits"), scan_counts_(*module_, "scan_counts"),
        move_pairs_(*module_, "move_pairs"), groups_(groups_for(device.facts(), settings.count)),
        counts_(device, std::size_t{digits} * groups_) {}

  void enqueue() override {
    in_passes(32 / digit_bits, [this](const Arrays& from, const Arrays& to, unsigned number) {
      const std::uint32_t shift = number * digit_bits;
      const Grid grid{.groups = groups_, .items = lsd.group};
      count_digits_(queue(), grid, from.keys, counts_, shift, count());
      scan_counts_(queue(), {.groups = 1, .items = lsd.group}, counts_,
                   static_cast<std::uint32_t>(counts_.size()));
      move_pairs_(queue(), grid, from.keys, from.values, counts_, to.keys, to.values, shift,
                  count());
    });
  }
  void poison() override {
    Sort::poison();
    fill(counts_, 0xffffffff);
  }

private:
  static constexpr unsigned digit_bits = 4;
  static constexpr unsigned digits = 1 << digit_bits;

  // At most the number of tiles.
  [[nodiscard]] static unsigned groups_for(const Facts& facts, std::uint64_t count) {
    const std::uint64_t most = (facts.is_cpu ? 1 : groups_per_unit) * facts.compute_units;
    return static_cast<unsigned>(std::min(tiles_of(lsd, count), most));
  }

  std::unique_ptr<Module> module_;
  CountDigits count_digits_;
  ScanCounts scan_counts_;
  MovePairs move_pairs_;
  unsigned groups_;
  Words counts_;
};

class Onesweep : public Sort {
public:
  Onesweep(Device& device, bool is_optimised, const Shape& shape, const Settings& settings)
      : Sort(device, settings), shape_(shape),
        module_(device.build(source_for(device, source(shape, settings.has_values), is_optimised))),
        count_all_(*module_, "count_all"), scan_digits_(*module_, "scan_digits"),
        sort_tiles_(*module_, "sort_tiles"),
        tiles_(static_cast<unsigned>(tiles_of(shape, settings.count))),
        counters_(std::min(tiles_, (device.facts().is_cpu ? 1 : counters_per_unit) *
                                       device.facts().compute_units)),
        counts_(device, std::size_t{passes} * digits),
        states_(device, std::size_t{digits} * (tiles_ + 1)) {}

  void enqueue() override {
    fill(counts_, 0);
    count_all_(queue(), grid(counters_), keys(), counts_, count());
    scan_digits_(queue(), grid(passes), counts_);
    in_passes(passes, [this](const Arrays& from, const Arrays& to, unsigned number) {
      fill(states_, 0); // no ticket taken, nothing published
      sort_tiles_(queue(), grid(tiles_), from.keys, from.values, counts_, states_, to.keys,
                  to.values, std::uint32_t{number * digit_bits}, count());
    });
  }
  void poison() override {
    Sort::poison();
    fill(counts_, 0xffffffff);
    fill(states_, 0xffffffff);
  }

private:
  static constexpr unsigned digit_bits = 8;
  static constexpr unsigned digits = 1 << digit_bits;
  static constexpr unsigned passes = 32 / digit_bits;
  static constexpr unsigned counters_per_unit = 4; // counting groups, 2048 items in total

  [[nodiscard]] Grid grid(unsigned groups) const {
    return {.groups = groups, .items = shape_.group};
  }

  Shape shape_;
  std::unique_ptr<Module> module_;
  CountAll count_all_;
  ScanDigits scan_digits_;
  SortTiles sort_tiles_;
  unsigned tiles_;
  unsigned counters_;
  Words counts_;
  Words states_;
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  const auto shape = shape_for(chosen[0].facts(), settings.algorithm);
  program.note("algorithm", shape.is_onesweep ? "onesweep" : "lsd");
  measure_each(program, team, chosen, "sort", [&](Device& device) -> std::unique_ptr<Workload> {
    if (shape.is_onesweep)
      return std::make_unique<Onesweep>(device, chosen.is_optimised(), shape, settings);
    return std::make_unique<LsdSort>(device, chosen.is_optimised(), settings);
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("sort", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
