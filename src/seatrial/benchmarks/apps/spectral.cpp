// apps.spectral: forced isotropic turbulence in a periodic box by a pseudo-spectral method
// (native/spectral/), as PSDNS codes compute it.
//
// A sample is one step or several, with the time of its slowest rank. The time that ranks spend in
// transforms and in exchanges is measured within, and its mean over the ranks is reported.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/own_cpus.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/waiting.hpp"
#include "spectral/fftw.hpp"
#include "spectral/flow.hpp"
#include "spectral/independent.hpp"
#include "spectral/own_lines.hpp"
#include "spectral/turbulence.hpp"
#include "spectral/vortex.hpp"
#include "team.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t min_rounds = 5;
constexpr int vortex_steps = 2;

struct Settings {
  spectral::Box box;
  bool fp64;
  std::size_t rows;
  std::size_t steps;
  std::size_t threads;
  std::optional<std::string> library;
  std::string why;
};

Settings prepare(Arguments& arguments) {
  Settings settings{
      .box = {.n = arguments.number<std::size_t>("--n", 64, 8, 1u << 15),
              .shifts = arguments.choice("--dealiasing", "two-thirds",
                                         {"two-thirds", "phase-shift"}) == "phase-shift"},
      .fp64 = arguments.choice("--precision", "fp64", {"fp64", "fp32"}) == "fp64",
      .rows = arguments.number<std::size_t>("--rows", 1, 1, mpi::CommonArguments::max_ranks),
      .steps = arguments.number<std::size_t>("--steps", 1, 1, 1u << 20),
      .threads = arguments.number<std::size_t>("--threads", 1, 1, 1u << 16),
      .library = {},
      .why = std::string(arguments.find("--fft-why").value_or(""))};
  if (const auto library = arguments.find("--fft")) {
    settings.library = std::string(*library);
    // Before the hello event, which names the loaded libraries.
    settings.fp64 ? static_cast<void>(spectral::Fftw<double>(*settings.library))
                  : static_cast<void>(spectral::Fftw<float>(*settings.library));
  } else if (spectral::radices_of(settings.box.n).empty())
    throw Failure(Exit::usage,
                  "--n: " + std::to_string(settings.box.n) + " has factors other than 2, 3 and 5");
  return settings;
}

// The rate of a triad in the memory that a step uses, on all ranks and threads at once, in bytes
// per second.
template <class Real>
double triad_Bps(const spectral::Product<Real>& product) {
  const auto memory = product.buffer();
  const std::size_t threads = product.threads();
  const std::size_t n = memory.size() / sizeof(Real) / 3;
  auto* a = reinterpret_cast<Real*>(memory.data());
  const Real* b = a + n;
  const Real* c = b + n;
  std::fill_n(a, 3 * n, Real{0});
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 10; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    fastest = std::min(fastest, timed([&] {
                                  product.on_all([&](std::size_t t) {
                                    const Real factor = static_cast<Real>(0.5);
                                    const std::size_t end = n * (t + 1) / threads;
                                    SEATRIAL_INDEPENDENT
                                    for (std::size_t j = n * t / threads; j < end; ++j)
                                      a[j] = b[j] + factor * c[j];
                                  });
                                }).elapsed_s());
  }
  return static_cast<double>(3 * n * sizeof(Real)) / fastest;
}

struct Round {
  double elapsed_s;    // of the slowest rank
  double transforms_s; // mean over the ranks
  double exchanges_s;
};

template <class Real>
class Simulation {
public:
  Simulation(mpi::Program& program, const Settings& settings, const spectral::RankGrid& ranks,
             const spectral::MakeLines<Real>& make, Team* team)
      : program_(program), settings_(settings), flow_(settings.box, ranks, make, team) {}

  void measure() {
    program_.at("the vortices");
    const double vortices = vortex_error();
    const auto physics = spectral::turbulent(settings_.box);
    flow_.set(physics);
    fill_with_turbulence(flow_);
    program_.at("warm-up");
    const double first_imbalance = imbalance(physics);
    flow_.step();
    const auto early = flow_.budget();
    mpi::Rounds rounds(program_, min_rounds);
    std::vector<Round> measured;
    while (rounds.another(measured.size())) {
      program_.at("round " + std::to_string(measured.size()));
      measured.push_back(round());
    }
    program_.at("the checks");
    const double last_imbalance = imbalance(physics);
    const auto late = flow_.budget();
    const double alone_s = exchange_alone_s();
    const double transforms_alone_s = this->transforms_alone_s();
    const double memory_Bps = slowest(triad_Bps<Real>(flow_.product));
    report(measured, early, alone_s, transforms_alone_s, memory_Bps);
    program_.check("threads", static_cast<double>(flow_.product.threads()));
    program_.check("vortex_error", vortices);
    program_.check("divergence", worse(early.divergence, late.divergence));
    program_.check("energy_imbalance", worse(first_imbalance, last_imbalance));
  }

private:
  [[nodiscard]] static double worse(double one, double other) noexcept {
    return std::isnan(one) || other <= one ? one : other;
  }

  [[nodiscard]] static double slowest(double rate) {
    double lowest = rate;
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    return lowest;
  }

  // In each of the three planes with the most waves along one direction: they would be aliased
  // first; and with few.
  [[nodiscard]] double vortex_error() {
    const int largest = settings_.box.largest();
    double worst = 0;
    for (std::size_t plane = 0; plane < 4; ++plane) {
      const spectral::Vortex vortex =
          plane == 3 ? spectral::Vortex(0, 1, 2)
                     : spectral::Vortex(plane, largest * 7 / 8, largest * 3 / 8);
      const auto physics = vortex.physics();
      flow_.set(physics);
      vortex.fill(flow_);
      for (int i = 0; i < vortex_steps; ++i)
        flow_.step();
      worst = worse(worst, vortex.error(flow_, physics.viscosity, vortex_steps * physics.step_s));
    }
    return worst;
  }

  // The change of energy in a step that neither force nor viscosity explains, over the larger of
  // the two.
  [[nodiscard]] double imbalance(const spectral::Physics& physics) {
    const auto before = flow_.budget();
    flow_.step();
    const auto after = flow_.budget();
    const double lost = (before.dissipation + after.dissipation) / 2 * physics.step_s;
    const double added = physics.input * physics.step_s;
    return std::abs(after.energy - before.energy - added + lost) / std::max(added, lost);
  }

  [[nodiscard]] Round round() {
    flow_.product.forget();
    mpi::sleeping_barrier();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < settings_.steps; ++i)
      flow_.step();
    const double mine_s = seconds(Clock::now() - start);
    const auto spent = flow_.product.spent();
    const auto all = mpi::gather({mine_s, spent.transforms_s, spent.exchanges_s});
    Round round{};
    for (std::size_t i = 0; i < all.size(); i += 3) {
      round.elapsed_s = std::max(round.elapsed_s, all[i]);
      round.transforms_s += all[i + 1] / program_.ranks;
      round.exchanges_s += all[i + 2] / program_.ranks;
    }
    return round;
  }

  // The exchanges of a step without anything else, the fastest of several.
  [[nodiscard]] double exchange_alone_s() {
    if (program_.ranks == 1)
      return 0;
    double fastest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < min_rounds; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      double elapsed_s = 2 * timed([&] { flow_.product.exchange_only(); }).elapsed_s();
      MPI_Allreduce(MPI_IN_PLACE, &elapsed_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      fastest = std::min(fastest, elapsed_s);
    }
    return fastest;
  }

  // The transforms of a step without anything else, the fastest of several; mean over the ranks.
  [[nodiscard]] double transforms_alone_s() {
    flow_.product.clear();
    double fastest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < min_rounds; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      fastest = std::min(fastest, 2 * timed([&] { flow_.product.transforms_only(); }).elapsed_s());
    }
    return mpi::sum(fastest) / program_.ranks;
  }

  void report(const std::vector<Round>& measured, const spectral::Budget& early, double alone_s,
              double transforms_alone_s, double memory_Bps) {
    const double sent_B = mpi::sum(2 * flow_.product.sent_B());
    const double moved_B = 2 * flow_.product.moved_B() + flow_.moved_B();
    if (program_.rank != 0)
      return;
    const auto work = json::Object().add("steps", settings_.steps);
    for (std::size_t i = 0; i < measured.size(); ++i) {
      const auto& [elapsed_s, transforms_s, exchanges_s] = measured[i];
      program_.add(sample_event("step", i, elapsed_s)
                       .add("work", work)
                       .add("exchange_alone_s", alone_s)
                       .add("memory_Bps", memory_Bps)
                       .add("moved_B", moved_B)
                       .add("energy", early.energy)
                       .add("dissipation", early.dissipation));
      program_.add(sample_event("transforms", i, transforms_s)
                       .add("work", work)
                       .add("alone_s", transforms_alone_s));
      if (program_.ranks > 1)
        program_.add(
            sample_event("alltoall", i, exchanges_s)
                .add("work", json::Object()
                                 .add("steps", settings_.steps)
                                 .add("bytes", sent_B * static_cast<double>(settings_.steps)))
                .add("step_s", elapsed_s)
                .add("alone_s", alone_s));
    }
  }

  mpi::Program& program_;
  const Settings& settings_;
  spectral::Flow<Real> flow_;
};

template <class Real>
void measure_precision(mpi::Program& program, const Settings& settings) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  const auto& box = settings.box;
  const std::size_t columns = ranks / settings.rows;
  if (ranks % settings.rows != 0)
    throw Failure(Exit::usage, "--rows does not divide the number of ranks");
  if (settings.rows > box.kept_x() || columns > box.kept())
    throw Failure(Exit::usage, "--rows: the grid has too few wave numbers for so many ranks");
  const spectral::RankGrid grid(settings.rows, columns);
  mpi::require_memory(
      static_cast<std::uint64_t>(spectral::Product<Real>::bytes(box, grid, settings.threads)));
  std::optional<Team> team;
  if (settings.threads > 1)
    team.emplace(mpi::own_cpus(program.rank, settings.threads));
  std::optional<spectral::Fftw<Real>> library;
  if (settings.library)
    library.emplace(*settings.library);
  const spectral::MakeLines<Real> make =
      [&](const spectral::LinesShape& shape) -> std::unique_ptr<spectral::Lines<Real>> {
    if (library)
      return std::make_unique<spectral::FftwLines<Real>>(*library, shape);
    return spectral::own_lines<Real>(shape);
  };
  program.note("decomposition", std::to_string(settings.rows) + " x " + std::to_string(columns));
  if (library) {
    program.note("fft_path", *settings.library);
    program.note("fft_version", library->version());
  }
  if (!settings.why.empty())
    program.note("fft_why", settings.why);
  Simulation<Real>(program, settings, grid, make, team ? &*team : nullptr).measure();
}

void measure(mpi::Program& program, const Settings& settings) {
  if (settings.fp64)
    measure_precision<double>(program, settings);
  else
    measure_precision<float>(program, settings);
}

} // namespace

int main(int argc, char** argv) {
  // `--describe LIBRARY`: the same with that library loaded, so that seatrial knows all libraries
  // it loads.
  if (argc == 3 && std::string_view(argv[1]) == "--describe") {
    try {
      static_cast<void>(seatrial::spectral::Fftw<double>::open(argv[2]));
    } catch (const seatrial::Failure& failure) {
      std::fprintf(stderr, "spectral: %s\n", failure.what());
      return static_cast<int>(failure.status());
    }
    argc = 2;
  }
  return seatrial::mpi::run_program("spectral", argc, argv, prepare, measure);
}
