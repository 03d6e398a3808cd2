// gpu.fft: batches of 512-point complex transforms, forward and inverse.
// untimed: -O1
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "fft.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr std::size_t points = 512;
constexpr unsigned items = 64;

struct Settings {
  bool is_fp64;
  std::uint32_t batches;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .batches = arguments.number<std::uint32_t>("--batches", 256, 1, 1U << 24)};
}

template <class Real>
using Fft = Kernel<const Real*, const Real*, Real*, Real*, const Real*, const Real*, Real>;

template <class Real>
[[nodiscard]] Source source() {
  return {.name = "fft.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>()},
          .kernels = {Fft<Real>::declared("fft512")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

template <class Real>
class Transforms : public Workload {
public:
  Transforms(Device& device, bool is_optimised, std::uint32_t batches, double sign)
      : sign_(sign), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        fft_(*module_, "fft512"), in_re_(device, batches * points),
        in_im_(device, batches * points), out_re_(device, batches * points),
        out_im_(device, batches * points), cosines_(device, points), sines_(device, points) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> any(-1, 1);
    for (auto* values : {&re_, &im_})
      for (std::size_t i = 0; i < batches * points; ++i)
        values->push_back(static_cast<Real>(any(random)));
    std::vector<Real> cosines;
    std::vector<Real> sines;
    for (std::size_t i = 0; i < points; ++i) {
      cosines.push_back(static_cast<Real>(std::cos(angle(i))));
      sines.push_back(static_cast<Real>(std::sin(angle(i))));
    }
    queue_->write(in_re_.memory(), 0, re_.data(), in_re_.bytes());
    queue_->write(in_im_.memory(), 0, im_.data(), in_im_.bytes());
    queue_->write(cosines_.memory(), 0, cosines.data(), cosines_.bytes());
    queue_->write(sines_.memory(), 0, sines.data(), sines_.bytes());
    queue_->finish();
  }

  [[nodiscard]] Queue& queue() override { return *queue_; }
  void enqueue() override {
    fft_(*queue_, {.groups = static_cast<unsigned>(batches()), .items = items}, in_re_, in_im_,
         out_re_, out_im_, cosines_, sines_, static_cast<Real>(sign_));
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    constexpr double flops = 5 * 512 * 9; // 5 N log2 N, the usual count for any FFT algorithm
    return {{"flops", flops * static_cast<double>(batches())},
            {"bytes", 4 * static_cast<double>(in_re_.bytes())}};
  }
  void poison() override { poison_arrays(*queue_, out_re_, out_im_); }

  // The error of transforms sampled from the first to the last, relative to the norm of their
  // input; all results must be finite.
  [[nodiscard]] double error() override {
    constexpr std::size_t looked_at = 8;
    const auto re = on_host(*queue_, out_re_);
    const auto im = on_host(*queue_, out_im_);
    WorstError worst;
    for (const auto* values : {&re, &im})
      for (const Real value : *values)
        if (!std::isfinite(value))
          worst.add(std::numeric_limits<double>::quiet_NaN());
    const Roots of_unity = roots();
    for (std::size_t k = 0; k < looked_at; ++k) {
      const std::size_t batch = k * (batches() - 1) / (looked_at - 1);
      worst.add(error_of(batch, re, im, of_unity));
    }
    return worst.value();
  }

private:
  using Exact = std::complex<long double>;
  using Roots = std::vector<Exact>;

  // The roots of unity of the definition, in the order of their angles.
  [[nodiscard]] Roots roots() const {
    Roots found;
    for (std::size_t i = 0; i < points; ++i)
      found.push_back(std::polar(1.0L, -static_cast<long double>(sign_) * angle(i)));
    return found;
  }
  [[nodiscard]] static long double angle(std::size_t i) {
    return 2 * std::numbers::pi_v<long double> * static_cast<long double>(i) / points;
  }
  [[nodiscard]] std::size_t batches() const { return in_re_.size() / points; }

  // Compares one transform with the definition.
  [[nodiscard]] double error_of(std::size_t batch, const std::vector<Real>& re,
                                const std::vector<Real>& im, const Roots& roots) const {
    const auto start = batch * points;
    long double worst = 0;
    long double norm = 0;
    for (std::size_t n = 0; n < points; ++n)
      norm += std::norm(Exact(re_[start + n], im_[start + n]));
    for (std::size_t k = 0; k < points; ++k) {
      Exact sum = 0;
      for (std::size_t n = 0; n < points; ++n)
        sum += Exact(re_[start + n], im_[start + n]) * roots[n * k % points];
      worst = std::max(worst, std::abs(sum - Exact(re[start + k], im[start + k])));
    }
    return static_cast<double>(worst / std::sqrt(norm));
  }

  double sign_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Fft<Real> fft_;
  Array<Real> in_re_;
  Array<Real> in_im_;
  Array<Real> out_re_;
  Array<Real> out_im_;
  Array<Real> cosines_;
  Array<Real> sines_;
  std::vector<Real> re_;
  std::vector<Real> im_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen, std::uint32_t batches) {
  WorstError worst;
  for (const double sign : {1.0, -1.0})
    worst.add(measured_each(
        program, team, chosen, sign > 0 ? "forward" : "inverse", std::nullopt, [&](Device& device) {
          return std::make_unique<Transforms<Real>>(device, chosen.is_optimised(), batches, sign);
        }));
  program.check("error", worst.value());
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64, [&](auto real) {
    measure_as<decltype(real)>(program, team, chosen, settings.batches);
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("fft", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
