// gpu.scan: the exclusive prefix sum of n numbers on one device, on several at once, or distributed
// over several.
// untimed: -O1
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/shared_problem.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "scan.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned groups_per_unit =
    5; // groups of the three kernels resident at once: 48 registers per item

// How the work is divided. A single pass needs large tiles, so that fewer sums are passed on, and
// has warps for this on CUDA; elsewhere few devices support groups of more than 256.
struct Shape {
  bool is_single_pass;
  unsigned group;
  std::size_t item_bytes; // bytes per item of a tile
};
constexpr Shape three_kernels = {.is_single_pass = false, .group = 256, .item_bytes = 32};
constexpr Shape single_pass = {.is_single_pass = true, .group = 256, .item_bytes = 64};
constexpr Shape single_pass_cuda = {.is_single_pass = true, .group = 512, .item_bytes = 64};

struct Settings {
  bool is_fp64;
  std::string algorithm;
  bool is_shared;
  std::uint64_t count; // of numbers; over all devices if distributed
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .algorithm = std::string(
              arguments.choice("--algorithm", "auto", {"auto", "three-kernels", "single-pass"})),
          .is_shared = arguments.flag("--together", false),
          .count = arguments.number<std::uint64_t>("--count", 1 << 18, 1, std::uint64_t{1} << 36)};
}

template <class Real>
using AddParts = Kernel<const Real*, Real*, std::uint64_t>;
template <class Real>
using ScanSums = Kernel<Real*, std::uint32_t>;
template <class Real>
using AddOffset = Kernel<Real*, std::uint32_t, Real>;
template <class Real>
using ScanParts = Kernel<const Real*, const Real*, Real*, std::uint64_t>;
template <class Real>
using ScanTiles = Kernel<const Real*, Real*, std::uint64_t*, Real, std::uint64_t>;

[[nodiscard]] Shape shape_for(const Facts& facts, const std::string& algorithm) {
  const bool is_cuda = facts.backend == "cuda";
  if (algorithm == "three-kernels" || (algorithm == "auto" && !is_cuda))
    return three_kernels;
  return is_cuda ? single_pass_cuda : single_pass;
}

template <class Real>
[[nodiscard]] Source source(const Shape& shape) {
  constexpr std::size_t vector_bytes = 16;
  const auto width = std::to_string(vector_bytes / sizeof(Real));
  Source source = {.name = "scan.cl",
                   .text = seatrial_kernels(),
                   .defines = {"REAL=" + type_name<Real>(), "GROUP=" + std::to_string(shape.group),
                               "PER_ITEM=" + std::to_string(shape.item_bytes / sizeof(Real)),
                               "WIDTH=" + width, "VECTOR=" + type_name<Real>() + width},
                   .kernels = {AddParts<Real>::declared("add_parts"),
                               ScanSums<Real>::declared("scan_sums"),
                               AddOffset<Real>::declared("add_offset"),
                               ScanParts<Real>::declared("scan_parts")}};
  if (shape.is_single_pass) {
    source.defines.emplace_back("SINGLE_PASS=1");
    source.kernels.push_back(ScanTiles<Real>::declared("scan_tiles"));
  }
  return source;
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(three_kernels), source<double>(three_kernels),
          source<float>(single_pass_cuda), source<double>(single_pass_cuda)};
}

// A prefix sum in higher precision, and the sum of squares, whose root is the typical magnitude of
// a random walk with such steps. Relative to that, not to the sum of magnitudes, a single number is
// still visible after 2^28 of them.
template <class Real>
struct Prefix {
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;

  void add(Real number) {
    sum += static_cast<Wide>(number);
    squares += static_cast<double>(number) * static_cast<double>(number);
  }
  void add(const Prefix& other) {
    sum += other.sum;
    squares += other.squares;
  }

  Wide sum = 0;
  double squares = 0;
};

// The numbers of a device and their prefix sums.
template <class Real>
class Scan {
public:
  Scan(Device& device, bool is_optimised, const std::string& algorithm, std::uint64_t count,
       std::uint64_t seed)
      : shape_(shape_for(device.facts(), algorithm)), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(shape_), is_optimised))),
        add_parts_(*module_, "add_parts"), scan_sums_(*module_, "scan_sums"),
        add_offset_(*module_, "add_offset"), scan_parts_(*module_, "scan_parts"),
        parts_(device.facts().is_cpu ? device.facts().compute_units
                                     : groups_per_unit * device.facts().compute_units),
        tiles_(tiles_of(shape_, count)), numbers_(count), in_(device, count),
        sums_(device, parts_ + 1), states_(device, 2 * (std::size_t{tiles_} + 1)),
        out_(device, count) {
    if (shape_.is_single_pass)
      scan_tiles_.emplace(*module_, "scan_tiles");
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> any(-1, 1);
    for (auto& number : numbers_) {
      number = static_cast<Real>(any(random));
      whole_.add(number);
    }
    queue_->write(in_.memory(), 0, numbers_.data(), in_.bytes());
    queue_->finish();
  }

  [[nodiscard]] Queue& queue() { return *queue_; }
  [[nodiscard]] double bytes() const { return static_cast<double>(in_.bytes()); }
  [[nodiscard]] const Prefix<Real>& whole() const { return whole_; }

  // Runs before the totals of other devices are known.
  void enqueue_sums() {
    add_parts_(*queue_, grid(parts_), in_, sums_, std::uint64_t{numbers_.size()});
    scan_sums_(*queue_, grid(1), sums_, std::uint32_t{parts_});
  }
  [[nodiscard]] Real total() {
    Real value = std::numeric_limits<Real>::quiet_NaN();
    queue_->read(&value, sums_.memory(), parts_ * sizeof value, sizeof value);
    queue_->finish();
    return value;
  }
  // The offset is added to a few sums: no further pass over the numbers.
  void enqueue_after(Real offset) {
    if (shape_.is_single_pass) {
      enqueue_tiles(offset);
    } else {
      add_offset_(*queue_, grid(1), sums_, std::uint32_t{parts_}, offset);
      enqueue_parts();
    }
  }
  // Without preceding numbers.
  void enqueue() {
    if (shape_.is_single_pass) {
      enqueue_tiles(0);
    } else {
      enqueue_sums();
      enqueue_parts();
    }
  }

  void poison() { poison_arrays(*queue_, sums_, states_, out_); }

  // The error of the worst result; `prefix` is that before the first number.
  [[nodiscard]] double error(Prefix<Real> prefix) {
    constexpr std::size_t piece = 1 << 22;
    std::vector<Real> results(std::min(piece, numbers_.size()));
    WorstError worst;
    for (std::size_t begin = 0; begin < numbers_.size(); begin += piece) {
      const auto count = std::min(piece, numbers_.size() - begin);
      queue_->read(results.data(), out_.memory(), begin * sizeof(Real), count * sizeof(Real));
      queue_->finish();
      for (std::size_t i = 0; i < count; ++i) {
        const auto expected = prefix.sum;
        prefix.add(numbers_[begin + i]);
        const auto off = static_cast<double>(results[i] - expected);
        worst.add(std::fabs(off) / std::sqrt(prefix.squares));
      }
    }
    return worst.value();
  }

private:
  [[nodiscard]] static unsigned tiles_of(const Shape& shape, std::uint64_t count) {
    const std::uint64_t tile = shape.group * shape.item_bytes / sizeof(Real);
    return static_cast<unsigned>((count + tile - 1) / tile);
  }
  [[nodiscard]] Grid grid(unsigned groups) const {
    return {.groups = groups, .items = shape_.group};
  }

  void enqueue_parts() {
    scan_parts_(*queue_, grid(parts_), in_, sums_, out_, std::uint64_t{numbers_.size()});
  }
  void enqueue_tiles(Real offset) {
    queue_->fill(states_.memory(), 0, 0, states_.bytes()); // no ticket taken, no sum published
    (*scan_tiles_)(*queue_, grid(tiles_), in_, out_, states_, offset,
                   std::uint64_t{numbers_.size()});
  }

  Shape shape_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  AddParts<Real> add_parts_;
  ScanSums<Real> scan_sums_;
  AddOffset<Real> add_offset_;
  ScanParts<Real> scan_parts_;
  std::optional<ScanTiles<Real>> scan_tiles_;
  unsigned parts_;
  unsigned tiles_; // tiles of a single pass
  std::vector<Real> numbers_;
  Array<Real> in_;
  Array<Real> sums_; // sums of the parts, and their total
  Array<std::uint64_t> states_;
  Array<Real> out_;
  Prefix<Real> whole_;
};

template <class Real>
class Alone : public Workload {
public:
  Alone(Device& device, bool is_optimised, const Settings& settings)
      : scan_(device, is_optimised, settings.algorithm, settings.count, 1) {}

  [[nodiscard]] Queue& queue() override { return scan_.queue(); }
  void enqueue() override { scan_.enqueue(); }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return {{"bytes", scan_.bytes()}};
  }
  void poison() override { scan_.poison(); }
  [[nodiscard]] double error() override { return scan_.error({}); }

private:
  Scan<Real> scan_;
};

template <class Real>
using Scans = std::vector<std::unique_ptr<Scan<Real>>>;

// Each member adds the totals of the preceding members, as after MPI_Exscan.
template <class Real>
class Part : public Share {
public:
  Part(const Scans<Real>& scans, Gathered<Real>& gathered, std::size_t member)
      : scans_(scans), gathered_(gathered), member_(member) {}

  void run() override {
    own().enqueue_sums();
    own().enqueue_after(
        gathered_.exchange(member_, own().total(), [this](const std::vector<Real>& totals) {
          return std::accumulate(totals.data(), totals.data() + member_, Real{0});
        }));
    own().queue().finish();
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    double bytes = 0;
    for (const auto& each : scans_)
      bytes += each->bytes();
    return {{"bytes", bytes}};
  }
  void poison() override {
    own().poison();
    own().queue().finish();
  }
  [[nodiscard]] double error() override {
    Prefix<Real> before;
    for (std::size_t i = 0; i < member_; ++i)
      before.add(scans_[i]->whole());
    return own().error(before);
  }

private:
  [[nodiscard]] Scan<Real>& own() { return *scans_[member_]; }

  const Scans<Real>& scans_;
  Gathered<Real>& gathered_;
  std::size_t member_;
};

using MakeAlone = std::function<std::unique_ptr<Workload>(Device&)>;
using MakeShare = std::function<std::unique_ptr<Share>(std::size_t)>;

template <class Real>
void measure_shared(Program& program, Team& team, const ChosenDevices& chosen,
                    const Settings& settings) {
  const auto scans = split_evenly<Scan<Real>>(
      team, chosen, settings.count, [&](Device& device, std::uint64_t count, std::size_t member) {
        return std::make_unique<Scan<Real>>(device, chosen.is_optimised(), settings.algorithm,
                                            count, member + 1);
      });
  Gathered<Real> gathered(team);
  measure_together(program, team, chosen, "scan", MakeShare([&](std::size_t member) {
                     return std::make_unique<Part<Real>>(scans, gathered, member);
                   }));
}

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  program.note("algorithm", shape_for(chosen[0].facts(), settings.algorithm).is_single_pass
                                ? "single-pass"
                                : "three-kernels");
  if (settings.is_shared)
    measure_shared<Real>(program, team, chosen, settings);
  else
    measure_each(program, team, chosen, "scan", MakeAlone([&](Device& device) {
                   return std::make_unique<Alone<Real>>(device, chosen.is_optimised(), settings);
                 }));
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("scan", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
