// gpu.s3d: reaction rates of hydrogen combustion at every point of a grid.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "s3d.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 128;
constexpr unsigned groups_per_unit = 32;
constexpr double flops_per_point = 973; // as counted in the benchmark's declaration

// In the kernel's order; the last two take part only as third bodies.
enum Species : std::size_t { H2, H, O, O2, OH, H2O, HO2, H2O2, AR, N2, all_species };
constexpr std::size_t reacting = AR;

struct Settings {
  bool is_fp64;
  std::uint64_t edge; // edge of the grid, in points
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .edge = arguments.number<std::uint64_t>("--edge", 24, 1, 1024)};
}

template <class Real>
using Rates = Kernel<const Real*, const Real*, const Real*, Real*, std::uint64_t>;

template <class Real>
[[nodiscard]] Source source() {
  return {.name = "s3d.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + type_name<Real>()},
          .kernels = {Rates<Real>::declared("rates")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// a T^b exp(-E / R T) in mol, cm, s and cal.
struct Arrhenius {
  double a;
  double b;
  double activation;
};

struct Reaction {
  Arrhenius rate;
  std::vector<Species> from;
  std::vector<Species> to;
  // If any molecule can be the third body: efficiencies other than 1.
  std::optional<std::map<Species, double>> partners = std::nullopt;
  std::optional<Arrhenius> low =
      std::nullopt; // low-pressure limit: Troe's formula leads from it to `rate`
};

// The reactions of GRI-Mech 3.0 without those of carbon and nitrogen, in its order.
[[nodiscard]] const std::vector<Reaction>& mechanism() {
  using Partners = std::map<Species, double>;
  static const std::vector<Reaction> all = {
      {{1.2e17, -1, 0}, {O, O}, {O2}, Partners{{H2, 2.4}, {H2O, 15.4}, {AR, 0.83}}},
      {{5e17, -1, 0}, {O, H}, {OH}, Partners{{H2, 2}, {H2O, 6}, {AR, 0.7}}},
      {{3.87e4, 2.7, 6260}, {O, H2}, {H, OH}},
      {{2e13, 0, 0}, {O, HO2}, {OH, O2}},
      {{9.63e6, 2, 4000}, {O, H2O2}, {OH, HO2}},
      {{2.8e18, -0.86, 0}, {H, O2}, {HO2}, Partners{{O2, 0}, {H2O, 0}, {N2, 0}, {AR, 0}}},
      {{2.08e19, -1.24, 0}, {H, O2, O2}, {HO2, O2}},
      {{1.126e19, -0.76, 0}, {H, O2, H2O}, {HO2, H2O}},
      {{2.6e19, -1.24, 0}, {H, O2, N2}, {HO2, N2}},
      {{7e17, -0.8, 0}, {H, O2, AR}, {HO2, AR}},
      {{2.65e16, -0.6707, 17041}, {H, O2}, {O, OH}},
      {{1e18, -1, 0}, {H, H}, {H2}, Partners{{H2, 0}, {H2O, 0}, {AR, 0.63}}},
      {{9e16, -0.6, 0}, {H, H, H2}, {H2, H2}},
      {{6e19, -1.25, 0}, {H, H, H2O}, {H2, H2O}},
      {{2.2e22, -2, 0}, {H, OH}, {H2O}, Partners{{H2, 0.73}, {H2O, 3.65}, {AR, 0.38}}},
      {{3.97e12, 0, 671}, {H, HO2}, {O, H2O}},
      {{4.48e13, 0, 1068}, {H, HO2}, {O2, H2}},
      {{8.4e13, 0, 635}, {H, HO2}, {OH, OH}},
      {{1.21e7, 2, 5200}, {H, H2O2}, {HO2, H2}},
      {{1e13, 0, 3600}, {H, H2O2}, {OH, H2O}},
      {{2.16e8, 1.51, 3430}, {OH, H2}, {H, H2O}},
      {{7.4e13, -0.37, 0},
       {OH, OH},
       {H2O2},
       Partners{{H2, 2}, {H2O, 6}, {AR, 0.7}},
       Arrhenius{2.3e18, -0.9, -1700}},
      {{3.57e4, 2.4, -2110}, {OH, OH}, {O, H2O}},
      {{1.45e13, 0, -500}, {OH, HO2}, {O2, H2O}},
      {{2e12, 0, 427}, {OH, H2O2}, {HO2, H2O}},
      {{1.7e18, 0, 29410}, {OH, H2O2}, {HO2, H2O}},
      {{1.3e11, 0, -1630}, {HO2, HO2}, {O2, H2O2}},
      {{4.2e14, 0, 12000}, {HO2, HO2}, {O2, H2O2}},
      {{5e15, 0, 17330}, {OH, HO2}, {O2, H2O}}};
  return all;
}

using Polynomial = std::array<double, 7>;

// NASA coefficients below 1000 K and above, of the reacting species.
constexpr std::array<std::array<Polynomial, 2>, reacting> polynomials = {{
    {{{2.34433112, 7.98052075e-03, -1.9478151e-05, 2.01572094e-08, -7.37611761e-12, -917.935173,
       0.683010238},
      {3.3372792, -4.94024731e-05, 4.99456778e-07, -1.79566394e-10, 2.00255376e-14, -950.158922,
       -3.20502331}}},
    {{{2.5, 7.05332819e-13, -1.99591964e-15, 2.30081632e-18, -9.27732332e-22, 2.54736599e+04,
       -0.446682853},
      {2.50000001, -2.30842973e-11, 1.61561948e-14, -4.73515235e-18, 4.98197357e-22, 2.54736599e+04,
       -0.446682914}}},
    {{{3.1682671, -3.27931884e-03, 6.64306396e-06, -6.12806624e-09, 2.11265971e-12, 2.91222592e+04,
       2.05193346},
      {2.56942078, -8.59741137e-05, 4.19484589e-08, -1.00177799e-11, 1.22833691e-15, 2.92175791e+04,
       4.78433864}}},
    {{{3.78245636, -2.99673416e-03, 9.84730201e-06, -9.68129509e-09, 3.24372837e-12, -1063.94356,
       3.65767573},
      {3.28253784, 1.48308754e-03, -7.57966669e-07, 2.09470555e-10, -2.16717794e-14, -1088.45772,
       5.45323129}}},
    {{{3.99201543, -2.40131752e-03, 4.61793841e-06, -3.88113333e-09, 1.3641147e-12, 3615.08056,
       -0.103925458},
      {3.09288767, 5.48429716e-04, 1.26505228e-07, -8.79461556e-11, 1.17412376e-14, 3858.657,
       4.4766961}}},
    {{{4.19864056, -2.0364341e-03, 6.52040211e-06, -5.48797062e-09, 1.77197817e-12, -3.02937267e+04,
       -0.849032208},
      {3.03399249, 2.17691804e-03, -1.64072518e-07, -9.7041987e-11, 1.68200992e-14, -3.00042971e+04,
       4.9667701}}},
    {{{4.30179801, -4.74912051e-03, 2.11582891e-05, -2.42763894e-08, 9.29225124e-12, 294.80804,
       3.71666245},
      {4.0172109, 2.23982013e-03, -6.3365815e-07, 1.1424637e-10, -1.07908535e-14, 111.856713,
       3.78510215}}},
    {{{4.27611269, -5.42822417e-04, 1.67335701e-05, -2.15770813e-08, 8.62454363e-12,
       -1.77025821e+04, 3.43505074},
      {4.16500285, 4.90831694e-03, -1.90139225e-06, 3.71185986e-10, -2.87908305e-14,
       -1.78617877e+04, 2.91615662}}},
}};
constexpr std::array<double, all_species> grams_per_mol = {2.016,  1.008,  15.999, 31.998, 17.007,
                                                           18.015, 33.006, 34.014, 39.95,  28.014};

// The reference in higher precision: every reaction separately, from the tables, with the
// equilibrium from enthalpies and entropies.
template <class Wide>
class State {
public:
  State(Wide temperature, Wide pressure, const std::array<Wide, all_species>& fractions)
      : temperature_(temperature) {
    Wide sum = 0;
    for (std::size_t s = 0; s < all_species; ++s)
      sum += fractions[s] / static_cast<Wide>(grams_per_mol[s]);
    for (std::size_t s = 0; s < all_species; ++s)
      concentration_[s] = fractions[s] / static_cast<Wide>(grams_per_mol[s]) / sum * pressure /
                          (gas_constant * temperature_);
    for (const auto& reaction : mechanism())
      add(reaction);
    for (std::size_t s = 0; s < reacting; ++s) {
      made[s] *= static_cast<Wide>(grams_per_mol[s]) / 1000;
      turned[s] *= static_cast<Wide>(grams_per_mol[s]) / 1000;
    }
  }

  // Net production in kg/m^3/s, and the sum of the magnitudes of all forward and reverse
  // contributions.
  std::array<Wide, all_species> made{};
  std::array<Wide, all_species> turned{};

private:
  static constexpr Wide gas_constant = static_cast<Wide>(8.31446261815324L); // J/mol/K
  static constexpr Wide standard_pressure = 101325;

  // `order` is that of the reaction.
  [[nodiscard]] Wide constant(const Arrhenius& of, std::size_t order) const {
    const Wide kelvin = static_cast<Wide>(of.activation) * static_cast<Wide>(4.184L) / gas_constant;
    return static_cast<Wide>(of.a) *
           std::pow(static_cast<Wide>(1e-6L), static_cast<int>(order) - 1) *
           std::pow(temperature_, static_cast<Wide>(of.b)) * std::exp(-kelvin / temperature_);
  }

  // Molar Gibbs energy over R T; third bodies cancel.
  [[nodiscard]] Wide gibbs(Species species) const {
    if (species >= reacting)
      return 0;
    const auto& a = polynomials[species][temperature_ < 1000 ? 0 : 1];
    Wide enthalpy = static_cast<Wide>(a[5]) / temperature_;
    Wide entropy = static_cast<Wide>(a[6]) + static_cast<Wide>(a[0]) * std::log(temperature_);
    for (int power = 0; power < 5; ++power) {
      const Wide term =
          static_cast<Wide>(a[static_cast<std::size_t>(power)]) * std::pow(temperature_, power);
      enthalpy += term / static_cast<Wide>(power + 1);
      entropy += power > 0 ? term / static_cast<Wide>(power) : 0;
    }
    return enthalpy - entropy;
  }

  // J. Troe's broadening (R. G. Gilbert et al., "Theory of thermal unimolecular reactions in the
  // fall-off range. II", 1983), with the constants of 2 OH (+ M) <=> H2O2 (+ M).
  [[nodiscard]] Wide falloff(Wide low, Wide high, Wide partners) const {
    const Wide alpha = static_cast<Wide>(0.7346L);
    const Wide reduced = low * partners / high;
    const Wide centre = (1 - alpha) * std::exp(-temperature_ / 94) +
                        alpha * std::exp(-temperature_ / 1756) + std::exp(-5182 / temperature_);
    const Wide c = static_cast<Wide>(-0.4L) - static_cast<Wide>(0.67L) * std::log10(centre);
    const Wide n = static_cast<Wide>(0.75L) - static_cast<Wide>(1.27L) * std::log10(centre);
    const Wide x = std::log10(reduced) + c;
    const Wide f = x / (n - static_cast<Wide>(0.14L) * x);
    return high * reduced / (1 + reduced) * std::pow(centre, 1 / (1 + f * f));
  }

  void add(const Reaction& reaction) {
    Wide partners = reaction.partners ? 0 : 1;
    for (std::size_t s = 0; reaction.partners && s < all_species; ++s) {
      const auto other = reaction.partners->find(static_cast<Species>(s));
      partners += concentration_[s] *
                  static_cast<Wide>(other == reaction.partners->end() ? 1.0 : other->second);
    }
    const auto order = reaction.from.size();
    const bool is_falloff = reaction.low.has_value();
    Wide k = constant(reaction.rate, order + (reaction.partners && !is_falloff ? 1 : 0));
    k = is_falloff ? falloff(constant(*reaction.low, order + 1), k, partners) : k * partners;
    Wide equilibrium = 0; // its logarithm, in concentration units
    Wide forward = k;
    Wide reverse = k;
    const Wide standard = std::log(standard_pressure / (gas_constant * temperature_));
    for (const auto s : reaction.from) {
      equilibrium += gibbs(s) - standard;
      forward *= concentration_[s];
    }
    for (const auto s : reaction.to) {
      equilibrium -= gibbs(s) - standard;
      reverse *= concentration_[s];
    }
    reverse *= std::exp(-equilibrium);
    for (const auto& [all, sign] : {std::pair(&reaction.from, -1), std::pair(&reaction.to, 1)})
      for (const auto s : *all) {
        made[s] += static_cast<Wide>(sign) * (forward - reverse);
        turned[s] += forward + reverse;
      }
  }

  Wide temperature_;
  std::array<Wide, all_species> concentration_{};
};

// Random states with their rates; points of large grids share them, in an order that avoids powers
// of two.
template <class Real>
struct States {
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;
  static constexpr std::size_t distinct = 16381;

  explicit States(std::size_t points) : count(std::min(points, distinct)) {
    std::mt19937_64 random(17);
    const auto within = [&](double low, double high) {
      return static_cast<Real>(std::uniform_real_distribution<double>(low, high)(random));
    };
    for (std::size_t i = 0; i < count; ++i) {
      temperature.push_back(within(800, 2500));
      pressure.push_back(within(0.9 * 101325, 1.1 * 101325));
      std::array<Real, all_species> parts{};
      for (auto& part : parts)
        part = within(0.001, 1);
      Real sum = 0;
      for (const auto part : parts)
        sum += part;
      std::array<Wide, all_species> exact{};
      for (std::size_t s = 0; s < all_species; ++s) {
        parts[s] /= sum;
        exact[s] = static_cast<Wide>(parts[s]);
      }
      fractions.push_back(parts);
      rates.emplace_back(static_cast<Wide>(temperature[i]), static_cast<Wide>(pressure[i]), exact);
    }
  }

  std::size_t count;
  std::vector<Real> temperature;
  std::vector<Real> pressure;
  std::vector<std::array<Real, all_species>> fractions;
  std::vector<State<Wide>> rates;
};

template <class Real>
class Chemistry : public Workload {
public:
  Chemistry(Device& device, bool is_optimised, const States<Real>& states, std::size_t points)
      : states_(states), points_(points), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        rates_(*module_, "rates"), groups_(groups_for(device.facts(), points)),
        temperature_(device, points), pressure_(device, points),
        fractions_(device, all_species * points), made_(device, reacting * points) {
    std::vector<Real> values(points);
    const auto send = [&](const Array<Real>& to, std::size_t at, auto value) {
      for (std::size_t i = 0; i < points; ++i)
        values[i] = value(i % states.count);
      queue_->write(to.memory(), at * sizeof(Real), values.data(), points * sizeof(Real));
      queue_->finish();
    };
    send(temperature_, 0, [&](std::size_t i) { return states.temperature[i]; });
    send(pressure_, 0, [&](std::size_t i) { return states.pressure[i]; });
    for (std::size_t s = 0; s < all_species; ++s)
      send(fractions_, s * points, [&](std::size_t i) { return states.fractions[i][s]; });
  }

  [[nodiscard]] Queue& queue() override { return *queue_; }
  void enqueue() override {
    rates_(*queue_, {.groups = groups_, .items = group}, temperature_, pressure_, fractions_, made_,
           std::uint64_t{points_});
  }
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    const auto points = static_cast<double>(points_);
    return {{"flops", flops_per_point * points}, {"ops", points}};
  }
  void poison() override { poison_arrays(*queue_, made_); }

  [[nodiscard]] double error() override {
    const auto made = on_host(*queue_, made_);
    WorstError worst;
    for (std::size_t s = 0; s < reacting; ++s)
      for (std::size_t i = 0; i < points_; ++i) {
        const auto& expected = states_.rates[i % states_.count];
        worst.add(static_cast<double>(std::fabs(made[s * points_ + i] - expected.made[s]) /
                                      expected.turned[s]));
      }
    return worst.value();
  }

private:
  [[nodiscard]] static unsigned groups_for(const Facts& facts, std::size_t points) {
    const auto most = (points + group - 1) / group;
    return static_cast<unsigned>(std::min<std::size_t>(
        most, facts.is_cpu ? facts.compute_units : groups_per_unit * facts.compute_units));
  }

  const States<Real>& states_;
  std::size_t points_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Rates<Real> rates_;
  unsigned groups_;
  Array<Real> temperature_;
  Array<Real> pressure_;
  Array<Real> fractions_;
  Array<Real> made_;
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64, [&]<class Real>(Real) {
    const auto points = settings.edge * settings.edge * settings.edge;
    const States<Real> states(points);
    measure_each(program, team, chosen, "rates", [&](Device& device) {
      return std::make_unique<Chemistry<Real>>(device, chosen.is_optimised(), states, points);
    });
  });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("s3d", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
