// gpu.montecarlo: European calls priced by simulation, on one device or distributed over several,
// driven by one thread each or by a single thread.
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

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "montecarlo.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr std::uint32_t seed = 20121;
constexpr double rate = 0.03; // interest per year

struct Settings {
  bool is_fp64;
  bool is_streamed;
  std::uint32_t options;
  std::uint32_t paths;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  const Settings settings = {
      .is_fp64 = fp64_requested(arguments),
      .is_streamed =
          arguments.choice("--drive", "threaded", {"threaded", "streamed"}) == "streamed",
      .options = arguments.number<std::uint32_t>("--options", 1024, 32, 1U << 24),
      .paths = arguments.number<std::uint32_t>("--paths", 262144, 4096, 1U << 30)};
  if (settings.paths % 4 != 0)
    throw Failure(Exit::usage, "--paths: expected a multiple of 4");
  return settings;
}

template <class Real>
using Price = Kernel<const Real*, const Real*, const Real*, const Real*, Real*, Real*,
                     std::uint32_t, std::uint32_t, std::uint32_t>;

template <class Real>
constexpr bool is_double = sizeof(Real) == sizeof(double);

template <class Real>
[[nodiscard]] Source source() {
  Source found = {.name = "montecarlo.cl",
                  .text = seatrial_kernels(),
                  .defines = {"REAL=" + type_name<Real>(), "GROUP=" + std::to_string(group)},
                  .kernels = {Price<Real>::declared("price")}};
  if (is_double<Real>)
    found.defines.emplace_back("REAL_IS_DOUBLE=1");
  return found;
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// The same random numbers as in the kernel.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c,
                                                  std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * c[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(product1 >> 32) ^ c[1] ^ key0,
         static_cast<std::uint32_t>(product1),
         static_cast<std::uint32_t>(product0 >> 32) ^ c[3] ^ key1,
         static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return c;
}

template <class Real>
struct Options {
  explicit Options(std::size_t count) {
    std::mt19937_64 random(11);
    const auto within = [&](double low, double high) {
      return std::uniform_real_distribution<double>(low, high)(random);
    };
    for (std::size_t i = 0; i < count; ++i) {
      spot.push_back(static_cast<Real>(within(10, 100)));
      strike.push_back(static_cast<Real>(static_cast<double>(spot.back()) * within(0.8, 1.2)));
      years.push_back(within(0.25, 2));
      const double volatility = within(0.2, 0.4);
      mean.push_back(static_cast<Real>((rate - volatility * volatility / 2) * years.back()));
      spread.push_back(static_cast<Real>(volatility * std::sqrt(years.back())));
    }
  }

  // The expected payoff (F. Black and M. Scholes, "The pricing of options and corporate
  // liabilities", 1973), for the rounded mean and spread that the devices use.
  [[nodiscard]] double expected(std::size_t i) const {
    const auto of = [i](const std::vector<Real>& values) { return static_cast<double>(values[i]); };
    const auto normal = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
    const double s = of(spread);
    const double d2 = (std::log(of(spot) / of(strike)) + of(mean)) / s;
    const double forward = of(spot) * std::exp(of(mean) + s * s / 2);
    return forward * normal(d2 + s) - of(strike) * normal(d2);
  }

  // The sum of an option's payoffs, with its paths recomputed in higher precision.
  [[nodiscard]] long double sum(std::size_t i, std::uint32_t paths) const {
    constexpr std::uint32_t drawn = is_double<Real> ? 2 : 4;
    const auto of = [i](const std::vector<Real>& values) {
      return static_cast<long double>(values[i]);
    };
    long double total = 0;
    for (std::uint32_t draw = 0; draw < paths / drawn; ++draw) {
      const auto c = philox({draw, 0, static_cast<std::uint32_t>(i), 0}, seed, 0);
      for (std::uint32_t pair = 0; pair < drawn / 2; ++pair) {
        const long double u = is_double<Real> ? uniform53(c[0], c[1]) : uniform24(c[2 * pair]);
        const long double v = is_double<Real> ? uniform53(c[2], c[3]) : uniform24(c[2 * pair + 1]);
        const long double radius = std::sqrt(-2 * std::log(u));
        const long double angle = 2 * std::acos(-1.0L) * v;
        for (const long double normal : {radius * std::cos(angle), radius * std::sin(angle)})
          total += std::max(of(spot) * std::exp(of(mean) + of(spread) * normal) - of(strike), 0.0L);
      }
    }
    return total;
  }

  std::vector<Real> spot;
  std::vector<Real> strike;
  std::vector<double> years;
  std::vector<Real> mean;
  std::vector<Real> spread;

private:
  [[nodiscard]] static long double uniform53(std::uint32_t a, std::uint32_t b) {
    const std::uint64_t bits = (std::uint64_t{a} << 32 | b) >> 11;
    return static_cast<long double>(bits + 1) * 0x1p-53L;
  }
  [[nodiscard]] static long double uniform24(std::uint32_t a) {
    return static_cast<long double>((a >> 8) + 1) * 0x1p-24L;
  }
};

// One device's share of the options.
template <class Real>
class OptionShare {
public:
  OptionShare(Device& device, bool is_optimised, const Options<Real>& options, std::uint32_t first,
              std::uint32_t count, std::uint32_t paths)
      : options_(options), first_(first), count_(count), paths_(paths), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        price_(*module_, "price"), spot_(device, count), strike_(device, count),
        mean_(device, count), spread_(device, count), sums_(device, count),
        squares_(device, count) {
    const auto send = [&](const Array<Real>& to, const std::vector<Real>& from) {
      queue_->write(to.memory(), 0, from.data() + first, to.bytes());
    };
    send(spot_, options.spot);
    send(strike_, options.strike);
    send(mean_, options.mean);
    send(spread_, options.spread);
    queue_->finish();
  }

  [[nodiscard]] Queue& queue() { return *queue_; }
  void enqueue() {
    price_(*queue_, {.groups = count_, .items = group}, spot_, strike_, mean_, spread_, sums_,
           squares_, paths_, first_, seed);
  }
  void poison() { poison_arrays(*queue_, sums_, squares_); }

  // The relative error of the sums of some options, sampled from the first to the last.
  [[nodiscard]] double error() {
    constexpr std::size_t looked_at = 4;
    read();
    WorstError worst;
    for (std::size_t k = 0; k < looked_at; ++k) {
      const std::size_t i = k * (count_ - 1) / (looked_at - 1);
      const long double expected = options_.sum(first_ + i, paths_);
      worst.add(static_cast<double>(std::fabs(static_cast<long double>(sums_read_[i]) - expected) /
                                    expected));
    }
    return worst.value();
  }

  // The sum over options of z squared, where z is the deviation of a mean from the formula in
  // standard errors.
  [[nodiscard]] double chi_square() {
    read();
    const double n = paths_;
    double total = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const double mean = static_cast<double>(sums_read_[i]) / n;
      const double variance =
          (static_cast<double>(squares_read_[i]) / n - mean * mean) * n / (n - 1);
      const double z = (mean - options_.expected(first_ + i)) / std::sqrt(variance / n);
      total += z * z;
    }
    return total;
  }

private:
  void read() {
    sums_read_.resize(count_);
    squares_read_.resize(count_);
    queue_->read(sums_read_.data(), sums_.memory(), 0, sums_.bytes());
    queue_->read(squares_read_.data(), squares_.memory(), 0, squares_.bytes());
    queue_->finish();
  }

  const Options<Real>& options_;
  std::uint32_t first_;
  std::uint32_t count_;
  std::uint32_t paths_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Price<Real> price_;
  Array<Real> spot_;
  Array<Real> strike_;
  Array<Real> mean_;
  Array<Real> spread_;
  Array<Real> sums_;
  Array<Real> squares_;
  std::vector<Real> sums_read_;
  std::vector<Real> squares_read_;
};

template <class Real>
using OptionShares = std::vector<std::unique_ptr<OptionShare<Real>>>;

// Each member prices its own share, or the first member enqueues all shares before it waits for
// any.
template <class Real>
class Part : public Share {
public:
  Part(OptionShares<Real>& shares, std::size_t member, const Settings& settings)
      : shares_(shares), member_(member), is_streamed_(settings.is_streamed),
        options_(settings.options), paths_(options_ * settings.paths) {}

  void run() override {
    if (!is_streamed_) {
      own().enqueue();
      own().queue().finish();
    } else if (member_ == 0) {
      for (auto& share : shares_) {
        share->enqueue();
        share->queue().flush();
      }
      for (auto& share : shares_)
        share->queue().finish();
    }
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return {{"ops", paths_}, {"options", options_}};
  }
  void poison() override {
    own().poison();
    own().queue().finish();
  }
  [[nodiscard]] double error() override { return own().error(); }

private:
  [[nodiscard]] OptionShare<Real>& own() { return *shares_[member_]; }

  OptionShares<Real>& shares_;
  std::size_t member_;
  bool is_streamed_;
  double options_; // over all shares
  double paths_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const Options<Real> options(settings.options);
  const auto devices = static_cast<std::uint32_t>(chosen.size());
  OptionShares<Real> shares(devices);
  team.run([&](std::size_t member) {
    const auto k = static_cast<std::uint32_t>(member);
    const auto first = static_cast<std::uint32_t>(std::uint64_t{settings.options} * k / devices);
    const auto last =
        static_cast<std::uint32_t>(std::uint64_t{settings.options} * (k + 1) / devices);
    shares[member] = std::make_unique<OptionShare<Real>>(
        chosen[member], chosen.is_optimised(), options, first, last - first, settings.paths);
  });
  measure_together(program, team, chosen, "pricing", [&](std::size_t member) {
    return std::make_unique<Part<Real>>(shares, member, settings);
  });
  double chi_square = 0;
  for (auto& share : shares)
    chi_square += share->chi_square();
  program.check("chi_square", chi_square);
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("montecarlo", argc, argv, seatrial::prepare,
                                       seatrial::sources, seatrial::measure);
}
