// gpu.device-memory: the read and write bandwidth of a device's global, local and texture memory.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "device/device_memory_data.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/points.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "device_memory.cl")

namespace seatrial {
namespace {

using namespace device;
using namespace device_memory;

constexpr unsigned groups_per_unit = 8;
constexpr std::uint32_t lanes = 32;     // items that read adjacent words
constexpr std::uint32_t in_flight = 16; // words in flight per item
constexpr std::uint32_t wide = 4;       // words per wide access, 16 B
constexpr std::uint32_t chunk = 512;    // words per item in strided access
constexpr std::uint32_t factor = 2654435761U;

// The work of a run in local memory and with textures, the same on each device.
struct Extent {
  std::uint32_t groups;
  std::uint32_t rounds; // rounds in local memory
};

// A GPU's compute units hold 4, 6 or 8 such groups at once: a multiple of all of these leaves no
// unit idle at the end.
[[nodiscard]] Extent extent_for(const Facts& facts) {
  if (facts.is_cpu)
    return {.groups = 4 * facts.compute_units, .rounds = 64};
  return {.groups = 24 * facts.compute_units, .rounds = 512};
}

struct Settings {
  std::uint64_t words;
  bool has_textures;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  const Settings settings = {.words = arguments.number<std::uint64_t>("--bytes", 1 << 20, 1 << 16,
                                                                      std::uint64_t{1} << 34) /
                                      sizeof(std::uint32_t),
                             .has_textures = arguments.flag("--textures", true)};
  if ((settings.words & (settings.words - 1)) != 0)
    throw Failure(Exit::usage, "--bytes: expected a power of two");
  return settings;
}

using Read = Kernel<const std::uint32_t*, std::uint32_t*, std::uint64_t>;
using Write = Kernel<std::uint32_t*, std::uint32_t, std::uint64_t>;
using ReadLocal =
    Kernel<const std::uint32_t*, std::uint32_t*, std::uint32_t, std::uint32_t, std::uint32_t>;
using WriteLocal =
    Kernel<std::uint32_t*, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
using ReadTexture =
    Kernel<const Image*, float*, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

using Copy = Kernel<const float*, float*, std::uint64_t>;
using Triad = Kernel<float*, const float*, const float*, float, std::uint64_t>;

[[nodiscard]] Source source(bool has_textures) {
  Source made = {
      .name = "device_memory.cl",
      .text = seatrial_kernels(),
      .defines = {"GROUP=" + std::to_string(group), "LANES=" + std::to_string(lanes),
                  "IN_FLIGHT=" + std::to_string(in_flight), "CHUNK=" + std::to_string(chunk),
                  "STEPS=" + std::to_string(steps), "TILE=" + std::to_string(tile),
                  "SLOTS=" + std::to_string(slots), "SIDE=" + std::to_string(side),
                  "WIDE_IN_FLIGHT=" + std::to_string(in_flight / wide)},
      .kernels = {Read::declared("read_coalesced"), Read::declared("read_strided"),
                  Write::declared("write_coalesced"), Write::declared("write_strided"),
                  Copy::declared("copy"), Triad::declared("triad"),
                  ReadLocal::declared("read_local"), WriteLocal::declared("write_local")}};
  if (has_textures)
    for (const auto* name : textures)
      made.kernels.push_back(ReadTexture::declared(name));
  return made;
}

// The points of all series, with the bytes that a run reads or writes.
[[nodiscard]] std::vector<SeriesPoint> points(const Settings& settings, const Extent& extent) {
  std::vector<SeriesPoint> all;
  const auto add = [&](const char* series, double bytes) {
    all.push_back({.series = series, .axis = "", .at = 0, .work = {{"bytes", bytes}}});
  };
  const double global = static_cast<double>(settings.words) * sizeof(std::uint32_t);
  for (const auto* series : {"read", "write", "read_strided", "write_strided"})
    add(series, global);
  add("copy", 2 * global);
  add("triad", 3 * global);
  for (const auto* series : {"local_read", "local_write"})
    add(series, 1.0 * extent.groups * group * extent.rounds * steps * sizeof(std::uint32_t));
  if (settings.has_textures)
    for (const auto* series : textures)
      add(series, 1.0 * extent.groups * group * reads_of_item * texel_words * sizeof(float));
  return all;
}

// The outputs of a run, and the number of wrong elements.
struct Access {
  std::function<void()> enqueue;
  Memory* results;
  std::function<double()> wrong;
};

class Memories : public PointRunner {
public:
  Memories(Device& device, bool is_optimised, const Data& data, const Extent& extent)
      : data_(data), extent_(extent), queue_(device.queue()),
        image_(data.texels.empty() ? nullptr : device.image(data.width, data.height, data.texels)),
        module_(device.build(source_for(device, source(!data.texels.empty()), is_optimised))),
        groups_(device.facts().is_cpu ? device.facts().compute_units
                                      : groups_per_unit * device.facts().compute_units),
        in_(device, data.words.size()) {
    queue_->write(in_.memory(), 0, data.words.data(), in_.bytes());
    queue_->finish();
    // In the order of `points`.
    add_read(device, "read_coalesced", 1);
    add_write(device, "write_coalesced", 1);
    add_read(device, "read_strided", chunk);
    add_write(device, "write_strided", chunk);
    add_copy_and_triad(device);
    add_read_local(device);
    add_write_local(device);
    for (std::size_t kind = 0; image_ && kind < textures.size(); ++kind)
      add_texture(device, kind);
    timers_.resize(accesses_.size());
  }

  [[nodiscard]] double error_before() override {
    WorstError worst;
    for (const auto& access : accesses_) {
      poison(access);
      access.enqueue();
      queue_->finish();
      worst.add(access.wrong());
      poison(access);
    }
    return worst.value();
  }

  [[nodiscard]] Timed sample(std::size_t point) override {
    if (!timers_[point])
      timers_[point].emplace(device_timer(*queue_, accesses_[point].enqueue));
    return timers_[point]->sample();
  }

  [[nodiscard]] double error_after() override {
    WorstError worst;
    for (const auto& access : accesses_)
      worst.add(access.wrong());
    return worst.value();
  }

private:
  template <class Element>
  [[nodiscard]] Array<Element>& results(Device& device, std::size_t count,
                                        std::vector<std::unique_ptr<Array<Element>>>& all) {
    all.push_back(std::make_unique<Array<Element>>(device, count));
    return *all.back();
  }

  template <class Element>
  [[nodiscard]] std::vector<Element> read_back(const Array<Element>& array) {
    std::vector<Element> found(array.size());
    queue_->read(found.data(), array.memory(), 0, array.bytes());
    queue_->finish();
    return found;
  }

  // The number of elements that are not `expected(i)`.
  template <class Element, class Expected>
  [[nodiscard]] double wrong_of(const Array<Element>& array, Expected expected) {
    const auto found = read_back(array);
    double wrong = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      wrong += found[i] == expected(i) ? 0 : 1; // NaN compares unequal to everything
    return wrong;
  }

  void add_read(Device& device, const char* name, std::uint32_t run) {
    const auto kernel = std::make_shared<Read>(*module_, name);
    auto& sums = results(device, std::size_t{groups_} * group, words_);
    accesses_.push_back({.enqueue =
                             [this, kernel, run, &sums] {
                               (*kernel)(*queue_, {.groups = groups_, .items = group}, in_, sums,
                                         std::uint64_t{in_.size() / run});
                             },
                         .results = &sums.memory(),
                         .wrong =
                             [this, &sums] {
                               const auto found = read_back(sums);
                               const auto sum =
                                   std::accumulate(found.begin(), found.end(), std::uint32_t{0});
                               return sum == data_.sum ? 0.0 : 1.0;
                             }});
  }

  void add_write(Device& device, const char* name, std::uint32_t run) {
    const auto kernel = std::make_shared<Write>(*module_, name);
    auto& out = results(device, in_.size(), words_);
    accesses_.push_back({.enqueue =
                             [this, kernel, run, &out] {
                               (*kernel)(*queue_, {.groups = groups_, .items = group}, out, factor,
                                         std::uint64_t{out.size() / run});
                             },
                         .results = &out.memory(),
                         .wrong =
                             [this, &out] {
                               return wrong_of(out, [](std::size_t i) {
                                 return static_cast<std::uint32_t>(i) * factor;
                               });
                             }});
  }

  // One operand array, made of one part of each word.
  [[nodiscard]] Array<float>& operand(Device& device, float (*part)(std::uint32_t)) {
    auto& array = results(device, in_.size(), floats_);
    std::vector<float> numbers(in_.size());
    std::ranges::transform(data_.words, numbers.begin(), part);
    queue_->write(array.memory(), 0, numbers.data(), array.bytes());
    queue_->finish();
    return array;
  }

  void add_copy_and_triad(Device& device) {
    const auto& b = operand(device, Data::high_bits);
    const auto& c = operand(device, Data::low_bits);
    // On a GPU one group per tile keeps the compute units full: the work is balanced to the end.
    const auto items = std::uint32_t{in_flight} * group;
    const Grid grid = {.groups = device.facts().is_cpu
                                     ? groups_
                                     : static_cast<unsigned>((b.size() + items - 1) / items),
                       .items = group};
    const auto copy = std::make_shared<Copy>(*module_, "copy");
    auto& copied = results(device, b.size(), floats_);
    const auto triad = std::make_shared<Triad>(*module_, "triad");
    auto& a = results(device, b.size(), floats_);
    accesses_.push_back(
        {.enqueue = [this, copy, grid, &b,
                     &copied] { (*copy)(*queue_, grid, b, copied, std::uint64_t{b.size()}); },
         .results = &copied.memory(),
         .wrong =
             [this, &copied] {
               return wrong_of(copied,
                               [&](std::size_t i) { return Data::high_bits(data_.words[i]); });
             }});
    accesses_.push_back(
        {.enqueue = [this, triad, grid, &a, &b,
                     &c] { (*triad)(*queue_, grid, a, b, c, scale, std::uint64_t{b.size()}); },
         .results = &a.memory(),
         .wrong =
             [this, &a] {
               return wrong_of(a, [&](std::size_t i) {
                 const auto word = data_.words[i];
                 return Data::high_bits(word) + scale * Data::low_bits(word);
               });
             }});
  }

  void add_read_local(Device& device) {
    const auto kernel = std::make_shared<ReadLocal>(*module_, "read_local");
    auto& sums = results(device, std::size_t{extent_.groups} * group, words_);
    // Each group's words are larger by its number.
    const auto of_first = local_sums(data_.words, extent_.rounds);
    accesses_.push_back({.enqueue =
                             [this, kernel, &sums] {
                               (*kernel)(*queue_, {.groups = extent_.groups, .items = group}, in_,
                                         sums, extent_.rounds, reading.step, reading.mask);
                             },
                         .results = &sums.memory(),
                         .wrong =
                             [this, of_first, &sums] {
                               return wrong_of(sums, [&](std::size_t i) {
                                 return of_first[i % group] +
                                        static_cast<std::uint32_t>(i / group) * extent_.rounds *
                                            steps;
                               });
                             }});
  }

  void add_write_local(Device& device) {
    const auto kernel = std::make_shared<WriteLocal>(*module_, "write_local");
    auto& sums = results(device, std::size_t{extent_.groups} * group, words_);
    const auto last = last_writes(extent_.rounds);
    accesses_.push_back({.enqueue =
                             [this, kernel, &sums] {
                               (*kernel)(*queue_, {.groups = extent_.groups, .items = group}, sums,
                                         factor, extent_.rounds, writing.step, writing.mask);
                             },
                         .results = &sums.memory(),
                         .wrong =
                             [this, last, &sums] {
                               return wrong_of(sums, [&](std::size_t i) {
                                 std::uint32_t sum = 0;
                                 for (std::uint32_t slot = 0; slot < slots; ++slot)
                                   sum += (static_cast<std::uint32_t>(i) + last[slot]) * factor *
                                          (2 * slot + 1);
                                 return sum;
                               });
                             }});
  }

  void add_texture(Device& device, std::size_t kind) {
    const auto kernel = std::make_shared<ReadTexture>(*module_, textures[kind]);
    auto& sums = results(device, std::size_t{extent_.groups} * group, floats_);
    accesses_.push_back(
        {.enqueue =
             [this, kernel, &sums] {
               (*kernel)(*queue_, {.groups = extent_.groups, .items = group}, *image_, sums,
                         data_.width, data_.height, data_.apart, reads_of_item);
             },
         .results = &sums.memory(),
         .wrong =
             [this, kind, &sums] {
               return wrong_of(sums, [&](std::size_t i) { return data_.texel_sums[kind][i]; });
             }});
  }

  void poison(const Access& access) {
    queue_->fill(*access.results, 0, 0xffffffff, access.results->bytes());
    queue_->finish();
  }

  const Data& data_;
  Extent extent_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Image> image_;
  std::unique_ptr<Module> module_;
  unsigned groups_;
  Array<std::uint32_t> in_;
  std::vector<std::unique_ptr<Array<std::uint32_t>>> words_;
  std::vector<std::unique_ptr<Array<float>>> floats_;
  std::vector<Access> accesses_;
  std::vector<std::optional<BatchTimer>> timers_;
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  const Extent extent = extent_for(chosen[0].facts());
  const Data data(settings.words, settings.has_textures, extent.groups);
  measure_points(program, team, chosen, points(settings, extent), [&](Device& device) {
    return std::make_unique<Memories>(device, chosen.is_optimised(), data, extent);
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program(
      "device_memory", argc, argv, seatrial::prepare,
      [] { return std::vector{seatrial::source(true)}; }, seatrial::measure);
}
