// gpu.gemm: D = alpha A B + beta C of square matrices by our own tiled kernel, with B and with its
// transpose in memory. D is not C, as in cuBLASLt, so that every run does and gives the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/device_program.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "gemm.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group_side = 16;
constexpr std::uint32_t largest_tile = 128; // the order is a multiple of it
constexpr double alpha = 1.5;
constexpr double beta = -0.5;
constexpr std::array kernel_names = {"gemm", "gemm_transposed"};

struct Settings {
  bool is_fp64;
  std::uint32_t order;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  const Settings settings = {
      .is_fp64 = asks_for_fp64(arguments),
      .order = arguments.number<std::uint32_t>("--order", 256, largest_tile, 1 << 17)};
  if (settings.order % largest_tile != 0)
    throw Failure(Exit::usage, "--order: a multiple of " + std::to_string(largest_tile));
  return settings;
}

template <class Real>
using Multiply = Kernel<const Real*, const Real*, const Real*, Real*, Real, Real, std::uint32_t>;

// Elements of an item in each direction: as many as its registers hold.
template <class Real>
[[nodiscard]] constexpr unsigned per_item(bool is_cpu) {
  return std::is_same_v<Real, float> && !is_cpu ? 8 : 4;
}

template <class Real>
[[nodiscard]] Source source(unsigned per) {
  const auto real = type_name<Real>();
  return {.name = "gemm.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + real, "real4=" + real + "4", "PER=" + std::to_string(per)},
          .kernels = {Multiply<Real>::declared(kernel_names[0]),
                      Multiply<Real>::declared(kernel_names[1])}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(per_item<float>(false)), source<double>(per_item<double>(false))};
}

// Random matrices, and some elements of the result in higher precision: one at random in each of
// 256 x 256 equal blocks, or all. Every tile and every item of a group has some.
template <class Real>
class Problem {
public:
  explicit Problem(std::uint32_t wanted) : order(wanted) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> any(-1, 1);
    for (auto* matrix : {&a, &b_transposed, &c}) {
      matrix->resize(std::size_t{order} * order);
      for (auto& element : *matrix)
        element = static_cast<Real>(any(random));
    }
    b.resize(b_transposed.size());
    constexpr std::size_t block = 32;
    for (std::size_t i0 = 0; i0 < order; i0 += block)
      for (std::size_t j0 = 0; j0 < order; j0 += block)
        for (std::size_t i = i0; i < i0 + block; ++i)
          for (std::size_t j = j0; j < j0 + block; ++j)
            b[i * order + j] = b_transposed[j * order + i];
    choose(random);
  }

  [[nodiscard]] double error(const std::vector<Real>& d) const {
    WorstError worst;
    for (const Real value : d)
      if (std::isnan(value))
        return std::numeric_limits<double>::quiet_NaN();
    for (const auto& sample : samples_)
      worst.add(static_cast<double>(std::fabs(d[sample.at] - sample.value) / sample.magnitude));
    return worst.value();
  }

  const std::uint32_t order;
  std::vector<Real> a;
  std::vector<Real> b;
  std::vector<Real> b_transposed;
  std::vector<Real> c;

private:
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;
  struct Sample {
    std::size_t at;
    Wide value;
    Wide magnitude; // |alpha| sum |a| |b| + |beta| |c|
  };

  void choose(std::mt19937_64& random) {
    const std::uint32_t blocks = std::min(order, 256U);
    const auto within = [&](std::uint32_t block) {
      const auto first = std::uint64_t{order} * block / blocks;
      const auto last = std::uint64_t{order} * (block + 1) / blocks;
      return static_cast<std::size_t>(first + random() % (last - first));
    };
    for (std::uint32_t i = 0; i < blocks; ++i)
      for (std::uint32_t j = 0; j < blocks; ++j)
        samples_.push_back(element(within(i), within(j)));
  }

  [[nodiscard]] Sample element(std::size_t row, std::size_t column) const {
    Wide sum = 0;
    Wide magnitude = 0;
    for (std::size_t k = 0; k < order; ++k) {
      const Wide term = static_cast<Wide>(a[row * order + k]) * b_transposed[column * order + k];
      sum += term;
      magnitude += std::fabs(term);
    }
    const auto at = row * order + column;
    return {.at = at,
            .value = alpha * sum + beta * static_cast<Wide>(c[at]),
            .magnitude = alpha * magnitude + std::fabs(beta * static_cast<Wide>(c[at]))};
  }

  std::vector<Sample> samples_;
};

template <class Real>
class Product : public Workload {
public:
  Product(Device& device, bool is_optimised, const Problem<Real>& problem, bool is_transposed)
      : problem_(problem), per_(per_item<Real>(device.facts().is_cpu)), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(per_), is_optimised))),
        multiply_(*module_, kernel_names[is_transposed ? 1 : 0]), a_(device, problem.a.size()),
        b_(device, problem.a.size()), c_(device, problem.a.size()), d_(device, problem.a.size()) {
    const auto& b = is_transposed ? problem.b_transposed : problem.b;
    queue_->write(a_.memory(), 0, problem.a.data(), a_.bytes());
    queue_->write(b_.memory(), 0, b.data(), b_.bytes());
    queue_->write(c_.memory(), 0, problem.c.data(), c_.bytes());
    queue_->finish();
  }

  [[nodiscard]] Queue& queue() override { return *queue_; }
  void enqueue() override {
    const unsigned groups = problem_.order / (group_side * per_);
    multiply_(*queue_,
              {.groups = groups, .items = group_side, .groups_y = groups, .items_y = group_side},
              a_, b_, c_, d_, static_cast<Real>(alpha), static_cast<Real>(beta), problem_.order);
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    const auto n = static_cast<double>(problem_.order);
    return {{"ops", 2 * n * n * n}};
  }
  void poison() override { queue_->fill(d_.memory(), 0, 0xffffffff, d_.bytes()); }
  [[nodiscard]] double error() override {
    std::vector<Real> d(d_.size(), std::numeric_limits<Real>::quiet_NaN());
    queue_->read(d.data(), d_.memory(), 0, d_.bytes());
    queue_->finish();
    return problem_.error(d);
  }

private:
  const Problem<Real>& problem_;
  unsigned per_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Multiply<Real> multiply_;
  Array<Real> a_;
  Array<Real> b_;
  Array<Real> c_;
  Array<Real> d_;
};

template <class Real>
void measure_as(Program& program, Team& team, const Chosen& chosen, const Settings& settings) {
  const Problem<Real> problem(settings.order);
  WorstError worst;
  for (const bool is_transposed : {false, true})
    worst.add(measured_each(program, team, chosen, "product",
                            json::Object().add("transposed", is_transposed ? 1 : 0),
                            [&](Device& device) {
                              return std::make_unique<Product<Real>>(device, chosen.is_optimised(),
                                                                     problem, is_transposed);
                            }));
  program.check("error", worst.value());
}

void measure(Program& program, Team& team, const Chosen& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("gemm", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
