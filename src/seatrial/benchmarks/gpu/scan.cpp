// gpu.scan: the exclusive prefix sum of n numbers on one device, on several at once, or shared out.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "scan.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr unsigned groups_per_unit = 5; // that fit at once: 48 registers of an item
constexpr std::size_t item_bytes = 32;  // of a tile

struct Settings {
  bool is_fp64;
  bool is_shared;
  std::uint64_t count; // of numbers; shared out, of all devices together
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = asks_for_fp64(arguments),
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
[[nodiscard]] Source source() {
  return {.name = "scan.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>(), "GROUP=" + std::to_string(group),
                      "PER_ITEM=" + std::to_string(item_bytes / sizeof(Real))},
          .kernels = {AddParts<Real>::declared("add_parts"), ScanSums<Real>::declared("scan_sums"),
                      AddOffset<Real>::declared("add_offset"),
                      ScanParts<Real>::declared("scan_parts")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// A prefix of numbers in higher precision: its sum, and the sum of its squares, whose root is how
// far a walk of such steps gets. That, not the sum of magnitudes, is what one number is still
// seen beside after 2^28 of them.
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
  Scan(Device& device, bool is_optimised, std::uint64_t count, std::uint64_t seed)
      : queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        add_parts_(*module_, "add_parts"), scan_sums_(*module_, "scan_sums"),
        add_offset_(*module_, "add_offset"), scan_parts_(*module_, "scan_parts"),
        parts_(device.facts().is_cpu ? device.facts().compute_units
                                     : groups_per_unit * device.facts().compute_units),
        numbers_(count), in_(device, count), sums_(device, parts_ + 1), out_(device, count) {
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

  void enqueue_sums() {
    add_parts_(*queue_, {.groups = parts_, .items = group}, in_, sums_,
               std::uint64_t{numbers_.size()});
    scan_sums_(*queue_, {.groups = 1, .items = group}, sums_, std::uint32_t{parts_});
  }
  [[nodiscard]] Real total() {
    Real value = std::numeric_limits<Real>::quiet_NaN();
    queue_->read(&value, sums_.memory(), parts_ * sizeof value, sizeof value);
    queue_->finish();
    return value;
  }
  void enqueue_offset(Real offset) {
    add_offset_(*queue_, {.groups = 1, .items = group}, sums_, std::uint32_t{parts_}, offset);
  }
  void enqueue_scan() {
    scan_parts_(*queue_, {.groups = parts_, .items = group}, in_, sums_, out_,
                std::uint64_t{numbers_.size()});
  }

  void poison() {
    constexpr std::uint32_t nan = 0xffffffff;
    queue_->fill(sums_.memory(), 0, nan, sums_.bytes());
    queue_->fill(out_.memory(), 0, nan, out_.bytes());
  }

  // Of the worst result, with what stands before the first number.
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
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  AddParts<Real> add_parts_;
  ScanSums<Real> scan_sums_;
  AddOffset<Real> add_offset_;
  ScanParts<Real> scan_parts_;
  unsigned parts_;
  std::vector<Real> numbers_;
  Array<Real> in_;
  Array<Real> sums_; // of the parts, and their total
  Array<Real> out_;
  Prefix<Real> whole_;
};

template <class Real>
class Alone : public Workload {
public:
  Alone(Device& device, bool is_optimised, std::uint64_t count)
      : scan_(device, is_optimised, count, 1) {}

  [[nodiscard]] Queue& queue() override { return scan_.queue(); }
  void enqueue() override {
    scan_.enqueue_sums();
    scan_.enqueue_scan();
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return {{"bytes", scan_.bytes()}};
  }
  void poison() override { scan_.poison(); }
  [[nodiscard]] double error() override { return scan_.error({}); }

private:
  Scan<Real> scan_;
};

// What the members know of each other: each one's total, as after MPI_Exscan's exchange.
template <class Real>
struct Parts {
  explicit Parts(std::size_t members) : of(members), totals(members) {}
  std::vector<std::unique_ptr<Scan<Real>>> of;
  std::vector<Real> totals;
};

template <class Real>
class Part : public Share {
public:
  Part(Team& team, Parts<Real>& parts, std::size_t member)
      : team_(team), parts_(parts), member_(member) {}

  // The offset goes to the few sums of parts: no further pass over the numbers.
  void run() override {
    own().enqueue_sums();
    parts_.totals[member_] = own().total();
    team_.barrier().wait();
    Real offset = 0;
    for (std::size_t i = 0; i < member_; ++i)
      offset += parts_.totals[i];
    team_.barrier().wait(); // nobody changes a total that another still reads
    own().enqueue_offset(offset);
    own().enqueue_scan();
    own().queue().finish();
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    double bytes = 0;
    for (const auto& each : parts_.of)
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
      before.add(parts_.of[i]->whole());
    return own().error(before);
  }

private:
  [[nodiscard]] Scan<Real>& own() { return *parts_.of[member_]; }

  Team& team_;
  Parts<Real>& parts_;
  std::size_t member_;
};

using MakeAlone = std::function<std::unique_ptr<Workload>(Device&)>;
using MakeShare = std::function<std::unique_ptr<Share>(std::size_t)>;

template <class Real>
void measure_shared(Program& program, Team& team, const Chosen& chosen, std::uint64_t count) {
  Parts<Real> parts(chosen.size());
  team.run([&](std::size_t member) {
    const auto first = count * member / chosen.size();
    const auto last = count * (member + 1) / chosen.size();
    parts.of[member] =
        std::make_unique<Scan<Real>>(chosen[member], chosen.is_optimised(),
                                     std::max(last - first, std::uint64_t{1}), member + 1);
  });
  measure_together(program, team, chosen, "scan", MakeShare([&](std::size_t member) {
                     return std::make_unique<Part<Real>>(team, parts, member);
                   }));
}

template <class Real>
void measure_as(Program& program, Team& team, const Chosen& chosen, const Settings& settings) {
  if (settings.is_shared)
    measure_shared<Real>(program, team, chosen, settings.count);
  else
    measure_each(program, team, chosen, "scan", MakeAlone([&](Device& device) {
                   return std::make_unique<Alone<Real>>(device, chosen.is_optimised(),
                                                        settings.count);
                 }));
}

void measure(Program& program, Team& team, const Chosen& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("scan", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
