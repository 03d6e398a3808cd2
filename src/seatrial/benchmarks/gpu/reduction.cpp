// gpu.reduction: the sum of n numbers on one device, on several at once, or distributed over
// several.
// untimed: -O1
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/shared_problem.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "reduction.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr unsigned groups_per_unit = 8;
constexpr std::size_t wide_bytes = 16; // size of the widest load
constexpr unsigned lanes = 32;         // items that read adjacent words
constexpr unsigned in_flight = 4;      // wide loads in flight per item

struct Settings {
  bool is_fp64;
  bool is_shared;
  std::uint64_t count; // of numbers; over all devices if distributed
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .is_shared = arguments.flag("--together", false),
          .count = arguments.number<std::uint64_t>("--count", 1 << 18, 1, std::uint64_t{1} << 36)};
}

template <class Real>
using Reduce = Kernel<const Real*, Real*, std::uint64_t>;

template <class Real>
[[nodiscard]] Source source() {
  const std::string width = std::to_string(wide_bytes / sizeof(Real));
  return {.name = "reduction.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>(), "WIDE=" + type_name<Real>() + width,
                      "WIDTH=" + width, "GROUP=" + std::to_string(group),
                      "LANES=" + std::to_string(lanes), "IN_FLIGHT=" + std::to_string(in_flight)},
          .kernels = {Reduce<Real>::declared("reduce")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// The numbers of a device, their sum, and the expected sum.
template <class Real>
class Sum {
public:
  Sum(Device& device, bool is_optimised, std::uint64_t count, std::uint64_t seed)
      : queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        reduce_(*module_, "reduce"),
        groups_(device.facts().is_cpu ? device.facts().compute_units
                                      : groups_per_unit * device.facts().compute_units),
        in_(device, count), sums_(device, groups_), total_(device, 1) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> any(-1, 1);
    std::vector<Real> numbers(count);
    for (auto& number : numbers) {
      number = static_cast<Real>(any(random));
      expected_ += static_cast<long double>(number);
      magnitude_ += std::fabs(static_cast<long double>(number));
    }
    queue_->write(in_.memory(), 0, numbers.data(), in_.bytes());
    queue_->finish();
  }

  [[nodiscard]] Queue& queue() { return *queue_; }
  [[nodiscard]] double bytes() const { return static_cast<double>(in_.bytes()); }
  [[nodiscard]] long double expected() const { return expected_; }
  [[nodiscard]] long double magnitude() const { return magnitude_; }

  void enqueue() {
    reduce_(*queue_, {.groups = groups_, .items = group}, in_, sums_, std::uint64_t{in_.size()});
    reduce_(*queue_, {.groups = 1, .items = group}, sums_, total_, std::uint64_t{groups_});
  }

  void poison() {
    constexpr std::uint32_t nan = 0xffffffff;
    queue_->fill(sums_.memory(), 0, nan, sums_.bytes());
    queue_->fill(total_.memory(), 0, nan, total_.bytes());
  }

  [[nodiscard]] Real result() {
    Real value = std::numeric_limits<Real>::quiet_NaN();
    queue_->read(&value, total_.memory(), 0, sizeof value);
    queue_->finish();
    return value;
  }

private:
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Reduce<Real> reduce_;
  unsigned groups_;
  Array<Real> in_;
  Array<Real> sums_;
  Array<Real> total_;
  long double expected_ = 0;
  long double magnitude_ = 0;
};

[[nodiscard]] double relative(long double result, long double expected, long double magnitude) {
  return static_cast<double>(std::fabs(result - expected) / magnitude);
}

template <class Real>
class Alone : public Workload {
public:
  Alone(Device& device, bool is_optimised, std::uint64_t count)
      : sum_(device, is_optimised, count, 1) {}

  [[nodiscard]] Queue& queue() override { return sum_.queue(); }
  void enqueue() override { sum_.enqueue(); }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return {{"bytes", sum_.bytes()}};
  }
  void poison() override { sum_.poison(); }
  [[nodiscard]] double error() override {
    return relative(static_cast<long double>(sum_.result()), sum_.expected(), sum_.magnitude());
  }

private:
  Sum<Real> sum_;
};

template <class Real>
using Sums = std::vector<std::unique_ptr<Sum<Real>>>;

// Every member ends up with the total sum, as after MPI_Allreduce.
template <class Real>
class Part : public Share {
public:
  Part(const Sums<Real>& sums, Gathered<Real>& gathered, std::size_t member)
      : sums_(sums), gathered_(gathered), member_(member) {}

  void run() override {
    own().enqueue();
    total_ = gathered_.exchange(member_, own().result(), [](const std::vector<Real>& sums) {
      return std::accumulate(sums.begin(), sums.end(), Real{0});
    });
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    double bytes = 0;
    for (const auto& each : sums_)
      bytes += each->bytes();
    return {{"bytes", bytes}};
  }
  void poison() override {
    total_ = std::numeric_limits<Real>::quiet_NaN();
    own().poison();
  }
  [[nodiscard]] double error() override {
    long double expected = 0;
    long double magnitude = 0;
    for (const auto& each : sums_) {
      expected += each->expected();
      magnitude += each->magnitude();
    }
    return relative(static_cast<long double>(total_), expected, magnitude);
  }

private:
  [[nodiscard]] Sum<Real>& own() { return *sums_[member_]; }

  const Sums<Real>& sums_;
  Gathered<Real>& gathered_;
  std::size_t member_;
  Real total_ = 0;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const bool is_optimised = chosen.is_optimised();
  if (!settings.is_shared) {
    measure_each(program, team, chosen, "sum", [&](Device& device) {
      return std::make_unique<Alone<Real>>(device, is_optimised, settings.count);
    });
    return;
  }
  const auto sums = split_evenly<Sum<Real>>(
      team, chosen, settings.count, [&](Device& device, std::uint64_t count, std::size_t member) {
        return std::make_unique<Sum<Real>>(device, is_optimised, count, member + 1);
      });
  Gathered<Real> gathered(team);
  measure_together(program, team, chosen, "sum", [&](std::size_t member) {
    return std::make_unique<Part<Real>>(sums, gathered, member);
  });
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("reduction", argc, argv, seatrial::prepare,
                                       seatrial::sources, seatrial::measure);
}
