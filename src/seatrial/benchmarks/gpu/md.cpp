// gpu.md: Lennard-Jones forces between atoms and their nearest neighbours.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/arrays.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "md.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 128;
// SHOC's coefficients and cutoff.
constexpr double lj1 = 1.5;
constexpr double lj2 = 2.0;
constexpr double cutoff2 = 16.0;
// SHOC's smallest class has 12,288 atoms in a box of side 20: about this density.
constexpr double spacing = 0.9;
// The maximum displacement of an atom from its cell's centre, in cells: the forces between closer
// atoms would overflow fp32.
constexpr double jitter = 0.25;

struct Settings {
  bool is_fp64;
  std::uint32_t atoms;
  std::uint32_t neighbours;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_fp64 = fp64_requested(arguments),
          .atoms = arguments.number<std::uint32_t>("--atoms", 12288, 2, 1 << 27),
          .neighbours = arguments.number<std::uint32_t>("--neighbours", 128, 1, 1024)};
}

template <class Real>
using Forces = Kernel<const Real*, const std::uint32_t*, Real*, Real, Real, Real, std::uint32_t,
                      std::uint32_t>;

template <class Real>
[[nodiscard]] Source source() {
  const auto real = type_name<Real>();
  return {.name = "md.cl",
          .text = seatrial_kernels(),
          .defines = {"REAL=" + real, "real4=" + real + "4"},
          .kernels = {Forces<Real>::declared("forces")}};
}

[[nodiscard]] std::vector<Source> sources() {
  return {source<float>(), source<double>()};
}

// Atoms in a box, displaced randomly from the centres of a cubic lattice's cells, in random order
// like SHOC's random atoms; the cells serve to find the neighbours.
template <class Real>
class Box {
public:
  explicit Box(const Settings& settings)
      : atoms(settings.atoms), count(std::min(settings.neighbours, settings.atoms - 1)) {
    while (std::uint64_t{side_} * side_ * side_ < atoms)
      ++side_;
    place();
    neighbours.resize(std::size_t{count} * atoms);
    for (std::uint32_t atom = 0; atom < atoms; ++atom)
      find_neighbours(atom);
  }

  const std::uint32_t atoms;
  const std::uint32_t count; // neighbours per atom
  std::vector<Real> places;  // x, y, z and 0 per atom
  std::vector<std::uint32_t>
      neighbours;   // the first of each atom, then the second of each atom, ...
  double pairs = 0; // pairs within the cutoff

private:
  struct Candidate {
    double distance2;
    std::uint32_t atom;
  };
  static constexpr std::uint32_t no_atom = 0xffffffff;

  void place() {
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> off(0.5 - jitter, 0.5 + jitter);
    cells_.resize(std::size_t{side_} * side_ * side_, no_atom);
    std::iota(cells_.begin(), cells_.begin() + atoms, 0U);
    std::shuffle(cells_.begin(), cells_.end(), random);
    places.resize(std::size_t{4} * atoms);
    cell_of_.resize(atoms);
    for (std::uint32_t cell = 0; cell < cells_.size(); ++cell) {
      const auto atom = cells_[cell];
      if (atom == no_atom)
        continue;
      cell_of_[atom] = cell;
      const auto where = lattice(cell);
      for (std::size_t axis = 0; axis < 3; ++axis)
        places[4 * std::size_t{atom} + axis] =
            static_cast<Real>(spacing * (static_cast<double>(where[axis]) + off(random)));
    }
  }

  [[nodiscard]] std::array<std::int64_t, 3> lattice(std::uint32_t cell) const {
    return {cell % side_, cell / side_ % side_, cell / side_ / side_};
  }

  // Collects all atoms in cells at most `reach` away. All others are at least (reach + 1 - 2
  // jitter) cells away.
  void collect(std::uint32_t atom, std::int64_t reach) {
    candidates_.clear();
    const auto where = lattice(cell_of_[atom]);
    const auto from = [&](std::size_t axis) {
      return std::max<std::int64_t>(0, where[axis] - reach);
    };
    const auto to = [&](std::size_t axis) {
      return std::min<std::int64_t>(side_ - 1, where[axis] + reach);
    };
    for (auto z = from(2); z <= to(2); ++z)
      for (auto y = from(1); y <= to(1); ++y)
        for (auto x = from(0); x <= to(0); ++x) {
          const auto other = cells_[static_cast<std::size_t>((z * side_ + y) * side_ + x)];
          if (other != no_atom && other != atom)
            candidates_.push_back({distance2(atom, other), other});
        }
  }

  [[nodiscard]] double distance2(std::uint32_t one, std::uint32_t other) const {
    double sum = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const auto difference = static_cast<double>(places[4 * std::size_t{one} + axis]) -
                              static_cast<double>(places[4 * std::size_t{other} + axis]);
      sum += difference * difference;
    }
    return sum;
  }

  void find_neighbours(std::uint32_t atom) {
    const auto nearer = [](const Candidate& a, const Candidate& b) {
      return a.distance2 < b.distance2;
    };
    for (std::int64_t reach = 3;; ++reach) {
      collect(atom, reach);
      if (candidates_.size() < count)
        continue;
      const auto last = candidates_.begin() + (count - 1);
      std::nth_element(candidates_.begin(), last, candidates_.end(), nearer);
      const double sure = spacing * (static_cast<double>(reach + 1) - 2 * jitter);
      if (last->distance2 <= sure * sure || reach >= side_)
        break;
    }
    for (std::uint32_t k = 0; k < count; ++k) {
      neighbours[std::size_t{k} * atoms + atom] = candidates_[k].atom;
      pairs += candidates_[k].distance2 < cutoff2 ? 1 : 0;
    }
  }

  std::uint32_t side_ = 1;             // cells
  std::vector<std::uint32_t> cells_;   // the atom in each cell, or none
  std::vector<std::uint32_t> cell_of_; // the cell of each atom
  std::vector<Candidate> candidates_;
};

// The force on an atom in higher precision. Whether a pair at the cutoff counts depends on
// rounding: `doubtful` is the magnitude of such pairs.
template <class Real>
struct Reference {
  using Wide = std::conditional_t<std::is_same_v<Real, float>, double, long double>;

  Reference(const Box<Real>& box, std::uint32_t atom) {
    constexpr Wide near = 64 * std::numeric_limits<Real>::epsilon();
    for (std::uint32_t k = 0; k < box.count; ++k) {
      const auto other = box.neighbours[std::size_t{k} * box.atoms + atom];
      std::array<Wide, 3> d{};
      Wide r2 = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        d[axis] = static_cast<Wide>(box.places[4 * std::size_t{atom} + axis]) -
                  static_cast<Wide>(box.places[4 * std::size_t{other} + axis]);
        r2 += d[axis] * d[axis];
      }
      if (r2 >= cutoff2 * (1 + near))
        continue;
      const Wide inverse6 = 1 / (r2 * r2 * r2);
      const Wide size = inverse6 / r2 * (lj1 * inverse6 - lj2);
      const Wide magnitude = std::fabs(size) * std::sqrt(r2);
      if (r2 > cutoff2 * (1 - near))
        doubtful += magnitude;
      sum += magnitude;
      for (std::size_t axis = 0; axis < 3 && r2 < cutoff2; ++axis)
        force[axis] += d[axis] * size;
    }
  }

  std::array<Wide, 3> force{};
  Wide sum = 0; // sum of magnitudes
  Wide doubtful = 0;
};

template <class Real>
class Atoms : public Workload {
public:
  Atoms(Device& device, bool is_optimised, const Box<Real>& box)
      : box_(box), queue_(device.queue()),
        module_(device.build(source_for(device, source<Real>(), is_optimised))),
        compute_(*module_, "forces"),
        groups_(device.facts().is_cpu ? device.facts().compute_units
                                      : (box.atoms + group - 1) / group),
        places_(on_device(device, *queue_, box.places)),
        neighbours_(on_device(device, *queue_, box.neighbours)),
        force_(device, std::size_t{3} * box.atoms) {}

  [[nodiscard]] Queue& queue() override { return *queue_; }
  void enqueue() override {
    compute_(*queue_, {.groups = groups_, .items = group}, places_, neighbours_, force_,
             static_cast<Real>(lj1), static_cast<Real>(lj2), static_cast<Real>(cutoff2), box_.count,
             box_.atoms);
  }
  // As in SHOC: 8 operations per distance, 13 per force.
  [[nodiscard]] std::vector<std::pair<std::string, double>> work() const override {
    return {{"ops", 8 * static_cast<double>(box_.neighbours.size()) + 13 * box_.pairs}};
  }
  void poison() override { poison_arrays(*queue_, force_); }

  // Checks all atoms; in the largest boxes a regular sample.
  [[nodiscard]] double error() override {
    const auto force = on_host(*queue_, force_);
    WorstError worst;
    for (std::size_t axis = 0; axis < 3; ++axis)
      for (std::size_t atom = 0; atom < box_.atoms; ++atom)
        if (std::isnan(force[axis * box_.atoms + atom]))
          return std::numeric_limits<double>::quiet_NaN();
    constexpr std::uint32_t checked = 1 << 17;
    const auto step = (box_.atoms + checked - 1) / checked;
    for (std::uint32_t atom = 0; atom < box_.atoms; atom += step) {
      const Reference<Real> reference(box_, atom);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        const auto off = std::fabs(force[axis * box_.atoms + atom] - reference.force[axis]);
        worst.add(std::max(static_cast<double>((off - reference.doubtful) / reference.sum), 0.0));
      }
    }
    return worst.value();
  }

private:
  const Box<Real>& box_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Forces<Real> compute_;
  unsigned groups_;
  Array<Real> places_;
  Array<std::uint32_t> neighbours_;
  Array<Real> force_;
};

template <class Real>
void measure_as(Program& program, Team& team, const ChosenDevices& chosen,
                const Settings& settings) {
  const Box<Real> box(settings);
  measure_each(program, team, chosen, "forces", [&](Device& device) {
    return std::make_unique<Atoms<Real>>(device, chosen.is_optimised(), box);
  });
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, settings.is_fp64,
               [&]<class Real>(Real) { measure_as<Real>(program, team, chosen, settings); });
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("md", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
