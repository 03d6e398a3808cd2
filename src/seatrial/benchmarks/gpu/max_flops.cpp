// gpu.max-flops: the peak rate of additions, multiplications and multiply-adds on a device.
// untimed: -O1
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "max_flops.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr unsigned chains = 8;
constexpr unsigned unrolled = 16;
constexpr unsigned starts = group;
constexpr unsigned groups_per_unit = 8;
constexpr std::uint32_t blocks_on_gpu = 4096;
constexpr std::uint32_t blocks_on_cpu = 256;

struct Settings {
  bool is_fp64;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments)};
}

template <class Real>
using Chain = Kernel<const Real*, Real*, Real, Real, std::uint32_t>;

// The operation of a chain, as in the kernel of this name; `flops` per operation.
template <class Real>
struct Kind {
  const char* series;
  const char* kernel;
  double flops;
  Real (*step)(Real x, Real a, Real b);
};

template <class Real>
constexpr std::array<Kind<Real>, 4> kinds = {{
    {"add", "chain_add", 1, [](Real x, Real, Real b) { return static_cast<Real>(x + b); }},
    {"multiply", "chain_multiply", 1,
     [](Real x, Real a, Real) { return static_cast<Real>(x * a); }},
    {"fma", "chain_fma", 2, [](Real x, Real a, Real b) { return std::fma(x, a, b); }},
    {"mixed", "chain_mixed", 3,
     [](Real x, Real a, Real b) { return std::fma(static_cast<Real>(x * a), a, b); }},
}};

template <class Real>
[[nodiscard]] Source source() {
  Source found = {.name = "max_flops.cl",
                  .text = seatrial_kernels(),
                  .defines = {"REAL=" + type_name<Real>(), "CHAINS=" + std::to_string(chains),
                              "UNROLLED=" + std::to_string(unrolled),
                              "STARTS=" + std::to_string(starts)},
                  .kernels = {}};
  for (const auto& kind : kinds<Real>)
    found.kernels.push_back(Chain<Real>::declared(kind.kernel));
  return found;
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// All items of a device. Operations are rounded as IEEE 754 requires, on the device as on the host:
// results are compared with the same chains bit by bit.
template <class Real>
class Chains : public Workload {
public:
  Chains(Device& device, bool is_optimised, const Kind<Real>& kind)
      : kind_(kind), blocks_(device.facts().is_cpu ? blocks_on_cpu : blocks_on_gpu),
        groups_(device.facts().is_cpu ? device.facts().compute_units
                                      : groups_per_unit * device.facts().compute_units),
        queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        chain_(*module_, kind.kernel), start_(device, starts),
        out_(device, std::size_t{groups_} * group) {
    std::mt19937_64 random(3);
    std::uniform_real_distribution<double> any(1, 2);
    for (std::size_t i = 0; i < starts; ++i)
      values_.push_back(static_cast<Real>(any(random)));
    queue_->write(start_.memory(), 0, values_.data(), start_.bytes());
    queue_->finish();
    for (std::size_t item = 0; item < group; ++item)
      expected_.push_back(replayed(item));
  }

  [[nodiscard]] Queue& queue() override { return *queue_; }
  void enqueue() override {
    chain_(*queue_, {.groups = groups_, .items = group}, start_, out_, factor, addend, blocks_);
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return {
        {"flops", static_cast<double>(out_.size()) * blocks_ * unrolled * chains * kind_.flops}};
  }
  void poison() override { poison_arrays(*queue_, out_); }

  // The fraction of items whose result differs in any bit.
  [[nodiscard]] double error() override {
    const auto found = on_host(*queue_, out_);
    std::size_t different = 0;
    for (std::size_t i = 0; i < found.size(); ++i)
      different += std::memcmp(&found[i], &expected_[i % group], sizeof(Real)) != 0;
    return static_cast<double>(different) / static_cast<double>(found.size());
  }

private:
  // Close to one and close to zero: a state grows slightly with each operation and stays in range.
  static constexpr Real factor = static_cast<Real>(1 + 0x1p-20);
  static constexpr Real addend = static_cast<Real>(0x1p-20);

  [[nodiscard]] Real replayed(std::size_t item) const {
    Real sum = 0;
    for (std::size_t c = 0; c < chains; ++c) {
      Real x = values_[(item + c) % starts];
      for (std::uint32_t i = 0; i < blocks_ * unrolled; ++i)
        x = kind_.step(x, factor, addend);
      sum += x;
    }
    return sum;
  }

  const Kind<Real>& kind_;
  std::uint32_t blocks_;
  unsigned groups_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Chain<Real> chain_;
  Array<Real> start_;
  Array<Real> out_;
  std::vector<Real> values_;
  std::vector<Real> expected_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen) {
  WorstError worst;
  for (const auto& kind : kinds<Real>)
    worst.add(measured_each(program, team, chosen, kind.series, std::nullopt,
                            std::function<std::unique_ptr<Workload>(Device&)>([&](Device& device) {
                              return std::make_unique<Chains<Real>>(device, chosen.is_optimised(),
                                                                    kind);
                            })));
  program.check("different", worst.value());
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("max_flops", argc, argv, seatrial::prepare,
                                       seatrial::sources, seatrial::measure);
}
