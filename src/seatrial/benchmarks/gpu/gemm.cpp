// gpu.gemm: products of square matrices, with B and with its transpose in memory: D = alpha A B +
// beta C with our own tiled kernel, D = alpha A B with a tuned library. D is separate from C, so
// that every run does the same work with the same result; libraries would overwrite C.
// untimed: -O1
#include <algorithm>
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

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/narrow_floats.hpp"
#include "device/tiled_gemm.hpp"
#include "device/vendor_blas.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "gemm.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr double alpha = 1.5;
constexpr double beta = -0.5; // for our own kernel

struct Settings {
  Precision precision;
  bool uses_vendor_library;
  std::string blas; // file of the library
  std::uint32_t order;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  const Settings settings = {
      .precision = precision_named(
          arguments.choice("--precision", "fp32", {"fp64", "fp32", "tf32", "fp16", "bf16"})),
      .uses_vendor_library =
          arguments.choice("--library", "portable", {"portable", "vendor"}) == "vendor",
      .blas = std::string(arguments.find("--blas").value_or("")),
      .order = arguments.number<std::uint32_t>("--order", 256, gemm_unit, 1 << 17)};
  if (settings.order % gemm_unit != 0)
    throw Failure(Exit::usage, "--order: expected a multiple of " + std::to_string(gemm_unit));
  if (!settings.uses_vendor_library && settings.precision != Precision::fp32 &&
      settings.precision != Precision::fp64)
    throw Failure(Exit::usage, "--library portable supports fp32 and fp64 only");
  return settings;
}

[[nodiscard]] std::vector<Source> sources() {
  return {gemm_source<float>(seatrial_kernels()), gemm_source<double>(seatrial_kernels())};
}

// Rounds to the nearest number of the precision.
template <class Real>
[[nodiscard]] Real rounded(double number, Precision precision) {
  const auto nearest = static_cast<Real>(number);
  if constexpr (std::is_same_v<Real, float>) {
    if (precision == Precision::tf32)
      return to_tf32(nearest);
    if (precision == Precision::fp16)
      return from_fp16(to_fp16(nearest));
    if (precision == Precision::bf16)
      return from_bf16(to_bf16(nearest));
  }
  return nearest;
}

// Random matrices, and reference elements of the result in higher precision: a random one in each
// of 256 x 256 equal blocks, or all. Every tile and every item of a group is covered.
template <class Real>
class Problem {
public:
  explicit Problem(const Settings& settings)
      : order(settings.order), precision(settings.precision),
        beta_(settings.uses_vendor_library ? 0 : beta) {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> any(-1, 1);
    for (auto* matrix : {&a, &b_transposed, &c}) {
      matrix->resize(std::size_t{order} * order);
      for (auto& element : *matrix)
        element = rounded<Real>(any(random), precision);
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
  const Precision precision;
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
            .value = alpha * sum + beta_ * static_cast<Wide>(c[at]),
            .magnitude = alpha * magnitude + std::fabs(beta_ * static_cast<Wide>(c[at]))};
  }

  double beta_;
  std::vector<Sample> samples_;
};

template <class Real>
class Product : public Workload {
public:
  Product(Device& device, const Problem<Real>& problem)
      : problem_(problem), queue_(device.queue()), d_(device, problem.a.size()) {}

  [[nodiscard]] Queue& queue() override { return *queue_; }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    const auto n = static_cast<double>(problem_.order);
    return {{"ops", 2 * n * n * n}};
  }
  void poison() override { poison_arrays(*queue_, d_); }
  [[nodiscard]] double error() override { return problem_.error(on_host(*queue_, d_)); }

protected:
  [[nodiscard]] const Problem<Real>& problem() const { return problem_; }
  [[nodiscard]] const Array<Real>& d() const { return d_; }

private:
  const Problem<Real>& problem_;
  std::unique_ptr<Queue> queue_;
  Array<Real> d_;
};

template <class Real>
class TiledProduct : public Product<Real> {
public:
  TiledProduct(Device& device, bool is_optimised, const Problem<Real>& problem, bool is_transposed)
      : Product<Real>(device, problem),
        grid_(gemm_grid<Real>(problem.order, problem.order, device.facts().is_cpu)),
        module_(
            device.build(source_for(device, gemm_source<Real>(seatrial_kernels()), is_optimised))),
        multiply_(*module_, gemm_kernels[is_transposed ? 1 : 0]),
        a_(on_device(device, this->queue(), problem.a)),
        b_(on_device(device, this->queue(), is_transposed ? problem.b_transposed : problem.b)),
        c_(on_device(device, this->queue(), problem.c)) {}

  void enqueue() override {
    const auto n = this->problem().order;
    multiply_(this->queue(), grid_, a_, b_, c_, this->d(), static_cast<Real>(alpha),
              static_cast<Real>(beta), n, n, n, n);
  }

private:
  Grid grid_;
  std::unique_ptr<Module> module_;
  TiledGemm<Real> multiply_;
  Array<Real> a_;
  Array<Real> b_;
  Array<Real> c_;
};

template <class Real>
class VendorProduct : public Product<Real> {
public:
  VendorProduct(Device& device, const std::string& blas, const Problem<Real>& problem,
                bool is_transposed)
      : Product<Real>(device, problem), blas_(vendor_blas(device, this->queue(), blas)),
        is_transposed_(is_transposed), a_(narrowed(device, problem.a)),
        b_(narrowed(device, is_transposed ? problem.b_transposed : problem.b)) {}

  void enqueue() override {
    const auto n = this->problem().order;
    blas_->multiply({.precision = this->problem().precision,
                     .rows = n,
                     .columns = n,
                     .depth = n,
                     .is_transposed = is_transposed_,
                     .alpha = alpha,
                     .beta = 0},
                    {*a_, 0, n}, {*b_, 0, n}, {this->d().memory(), 0, n});
  }

private:
  [[nodiscard]] std::unique_ptr<Memory> narrowed(Device& device, const std::vector<Real>& matrix) {
    const auto precision = this->problem().precision;
    if (precision != Precision::fp16 && precision != Precision::bf16)
      return with(device, matrix);
    std::vector<std::uint16_t> narrow(matrix.size());
    std::ranges::transform(matrix, narrow.begin(), [precision](Real element) {
      const auto number = static_cast<float>(element);
      return precision == Precision::fp16 ? to_fp16(number) : to_bf16(number);
    });
    return with(device, narrow);
  }
  template <class Element>
  [[nodiscard]] std::unique_ptr<Memory> with(Device& device, const std::vector<Element>& elements) {
    auto memory = device.allocate(elements.size() * sizeof(Element), Where::device);
    this->queue().write(*memory, 0, elements.data(), memory->bytes());
    this->queue().finish();
    return memory;
  }

  std::unique_ptr<Blas> blas_;
  bool is_transposed_;
  std::unique_ptr<Memory> a_;
  std::unique_ptr<Memory> b_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const Problem<Real> problem(settings);
  WorstError worst;
  for (const bool is_transposed : {false, true})
    worst.add(measured_each(
        program, team, chosen, "product", json::Object().add("transposed", is_transposed ? 1 : 0),
        [&](Device& device) -> std::unique_ptr<Workload> {
          if (settings.uses_vendor_library)
            return std::make_unique<VendorProduct<Real>>(device, settings.blas, problem,
                                                         is_transposed);
          return std::make_unique<TiledProduct<Real>>(device, chosen.is_optimised(), problem,
                                                      is_transposed);
        }));
  program.check("error", worst.value());
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  if (settings.uses_vendor_library) {
    const auto queue = chosen[0].queue();
    const auto blas = vendor_blas(chosen[0], *queue, settings.blas);
    blas->require(settings.precision);
    program.note("library", blas->name());
  }
  in_precision(chosen, settings.precision == Precision::fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("gemm", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
