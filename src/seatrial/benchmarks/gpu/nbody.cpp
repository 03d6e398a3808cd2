// gpu.nbody: the gravity between n bodies, all pairs, on one device or distributed over several.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "nbody.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 128;
constexpr unsigned bodies_of_item = 2;
constexpr unsigned block = group * bodies_of_item;
constexpr double softening2 = 1e-4;

struct Settings {
  bool is_fp64;
  std::uint32_t bodies;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  const Settings settings = {
      .is_fp64 = fp64_requested(arguments),
      .bodies = arguments.number<std::uint32_t>("--bodies", 4096, block, 1U << 26)};
  if (settings.bodies % block != 0)
    throw Failure(Exit::usage, "--bodies: expected a multiple of " + std::to_string(block));
  return settings;
}

template <class Real>
using Accelerate = Kernel<const Real*, const Real*, const Real*, const Real*, Real*, Real*, Real*,
                          Real, std::uint32_t, std::uint32_t>;

template <class Real>
[[nodiscard]] Source source() {
  return {.name = "nbody.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>(), "GROUP=" + std::to_string(group),
                      "BODIES=" + std::to_string(bodies_of_item)},
          .kernels = {Accelerate<Real>::declared("accelerate")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// Positions and masses, the same on every device.
template <class Real>
struct Bodies {
  explicit Bodies(std::size_t count) {
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> place(-1, 1);
    std::uniform_real_distribution<double> mass(0.5, 1.5);
    for (auto& axis : places)
      for (std::size_t i = 0; i < count; ++i)
        axis.push_back(static_cast<Real>(place(random)));
    for (std::size_t i = 0; i < count; ++i)
      masses.push_back(static_cast<Real>(mass(random) / static_cast<double>(count)));
  }

  [[nodiscard]] std::size_t size() const { return masses.size(); }

  // The error of an acceleration against the sum in higher precision, relative to the sum of the
  // terms' magnitudes; the worst axis.
  [[nodiscard]] double error(std::size_t i, const std::array<Real, 3>& found) const {
    using Exact = long double;
    std::array<Exact, 3> sum{};
    std::array<Exact, 3> magnitude{};
    for (std::size_t j = 0; j < size(); ++j) {
      std::array<Exact, 3> d{};
      Exact r2 = static_cast<Exact>(static_cast<Real>(softening2));
      for (std::size_t axis = 0; axis < 3; ++axis) {
        d[axis] = static_cast<Exact>(places[axis][j]) - static_cast<Exact>(places[axis][i]);
        r2 += d[axis] * d[axis];
      }
      const Exact strength = static_cast<Exact>(masses[j]) / (r2 * std::sqrt(r2));
      for (std::size_t axis = 0; axis < 3; ++axis) {
        sum[axis] += strength * d[axis];
        magnitude[axis] += std::fabs(strength * d[axis]);
      }
    }
    WorstError worst;
    for (std::size_t axis = 0; axis < 3; ++axis)
      worst.add(static_cast<double>(std::fabs(static_cast<Exact>(found[axis]) - sum[axis]) /
                                    magnitude[axis]));
    return worst.value();
  }

  std::array<std::vector<Real>, 3> places;
  std::vector<Real> masses;
};

// One device's share: it holds all bodies and computes some of them.
template <class Real>
class Gravity {
public:
  Gravity(Device& device, bool is_optimised, const Bodies<Real>& bodies, std::uint32_t first,
          std::uint32_t count)
      : bodies_(bodies), first_(first), count_(count), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        accelerate_(*module_, "accelerate"), x_(device, bodies.size()), y_(device, bodies.size()),
        z_(device, bodies.size()), m_(device, bodies.size()), ax_(device, count),
        ay_(device, count), az_(device, count) {
    queue_->write(x_.memory(), 0, bodies.places[0].data(), x_.bytes());
    queue_->write(y_.memory(), 0, bodies.places[1].data(), y_.bytes());
    queue_->write(z_.memory(), 0, bodies.places[2].data(), z_.bytes());
    queue_->write(m_.memory(), 0, bodies.masses.data(), m_.bytes());
    queue_->finish();
  }

  [[nodiscard]] Queue& queue() { return *queue_; }
  [[nodiscard]] double interactions() const {
    return static_cast<double>(count_) * static_cast<double>(bodies_.size());
  }

  void enqueue() {
    accelerate_(*queue_, {.groups = count_ / block, .items = group}, x_, y_, z_, m_, ax_, ay_, az_,
                static_cast<Real>(softening2), first_, static_cast<std::uint32_t>(bodies_.size()));
  }

  void poison() { poison_arrays(*queue_, ax_, ay_, az_); }

  // Checks that all results are finite, and recomputes some bodies from the first to the last.
  [[nodiscard]] double error() {
    constexpr std::size_t looked_at = 32;
    std::array<std::vector<Real>, 3> found;
    const std::array<const Array<Real>*, 3> axes = {&ax_, &ay_, &az_};
    WorstError worst;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      found[axis] = on_host(*queue_, *axes[axis]);
      for (const Real value : found[axis])
        if (!std::isfinite(value))
          worst.add(std::numeric_limits<double>::quiet_NaN());
    }
    for (std::size_t k = 0; k < looked_at; ++k) {
      const std::size_t i = k * (count_ - 1) / (looked_at - 1);
      worst.add(bodies_.error(first_ + i, {found[0][i], found[1][i], found[2][i]}));
    }
    return worst.value();
  }

private:
  const Bodies<Real>& bodies_;
  std::uint32_t first_;
  std::uint32_t count_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Accelerate<Real> accelerate_;
  Array<Real> x_;
  Array<Real> y_;
  Array<Real> z_;
  Array<Real> m_;
  Array<Real> ax_;
  Array<Real> ay_;
  Array<Real> az_;
};

// Counted as in published figures: 20 flop per interaction in single precision, 30 in double
// (CUDA's nbody sample).
template <class Real>
[[nodiscard]] std::vector<std::pair<std::string, double>> counted(double interactions) {
  const double flops = sizeof(Real) == sizeof(double) ? 30 : 20;
  return {{"ops", interactions}, {"flops", flops * interactions}};
}

template <class Real>
class Alone : public Workload {
public:
  Alone(Device& device, bool is_optimised, const Bodies<Real>& bodies)
      : gravity_(device, is_optimised, bodies, 0, static_cast<std::uint32_t>(bodies.size())) {}

  [[nodiscard]] Queue& queue() override { return gravity_.queue(); }
  void enqueue() override { gravity_.enqueue(); }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return counted<Real>(gravity_.interactions());
  }
  void poison() override { gravity_.poison(); }
  [[nodiscard]] double error() override { return gravity_.error(); }

private:
  Gravity<Real> gravity_;
};

template <class Real>
class Part : public Share {
public:
  Part(Device& device, bool is_optimised, const Bodies<Real>& bodies, std::uint32_t first,
       std::uint32_t count)
      : all_(static_cast<double>(bodies.size())),
        gravity_(device, is_optimised, bodies, first, count) {}

  void run() override {
    gravity_.enqueue();
    gravity_.queue().finish();
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return counted<Real>(all_ * all_);
  }
  void poison() override { gravity_.poison(); }
  [[nodiscard]] double error() override { return gravity_.error(); }

private:
  double all_;
  Gravity<Real> gravity_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen, std::uint32_t count) {
  const bool is_optimised = chosen.is_optimised();
  const Bodies<Real> bodies(count);
  if (chosen.size() == 1) {
    measure_each(program, team, chosen, "forces", [&](Device& device) {
      return std::make_unique<Alone<Real>>(device, is_optimised, bodies);
    });
    return;
  }
  const auto blocks = count / block;
  const auto devices = static_cast<std::uint32_t>(chosen.size());
  if (blocks < devices)
    throw Skip("fewer blocks of bodies than devices");
  measure_together(program, team, chosen, "forces", [&](std::size_t member) {
    const auto k = static_cast<std::uint32_t>(member);
    const auto first = blocks * k / devices * block;
    const auto last = blocks * (k + 1) / devices * block;
    return std::make_unique<Part<Real>>(chosen[member], is_optimised, bodies, first, last - first);
  });
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings.bodies); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("nbody", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
