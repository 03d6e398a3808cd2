// apps.impact: an explicit crash code. A bumper beam, or the bar of G. I. Taylor, meets a rigid
// wall; ranks and their threads compute parts of the mesh (native/impact/).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "impact/counted.hpp"
#include "impact/crash.hpp"
#include "impact/material.hpp"
#include "impact/mesh.hpp"
#include "impact/time_step.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/program.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t steps_of_a_sample = 10;
constexpr double end_of_case_s = 80e-6; // when Taylor's bar has come to rest

struct Settings {
  std::string which;
  std::string folder;
  bool is_double;
  std::size_t elements;
  std::size_t steps; // 0: until the end of the case
  std::size_t threads;
  impact::Reduction reduction;
  std::size_t write_every;
};

Settings prepare(Arguments& arguments) {
  constexpr auto most = std::size_t{1} << 40;
  return {.which = std::string(arguments.choice("--case", "beam", {"beam", "taylor"})),
          .folder = std::string(arguments.required("--record")),
          .is_double = arguments.choice("--precision", "fp64", {"fp64", "fp32"}) == "fp64",
          .elements = arguments.number<std::size_t>("--elements", 20000, 64, 1U << 28),
          .steps = arguments.number<std::size_t>("--steps", 100, 0, most),
          .threads = arguments.number<std::size_t>("--threads", 1, 1, 1U << 16),
          .reduction = arguments.choice("--reduction", "overlapped", {"overlapped", "blocking"}) ==
                               "overlapped"
                           ? impact::Reduction::overlapped
                           : impact::Reduction::blocking,
          .write_every = arguments.number<std::size_t>("--write-every", 0, 0, most)};
}

// Taylor's bar, as several codes have published it: copper, 32.4 mm long and 6.4 mm thick, 227 m/s.
impact::Case taylor(std::size_t elements) {
  std::size_t side = 2;
  const auto count = [](std::size_t n) { return (n * n + 4 * n * n) * 12 * n; };
  while (count(side + 1) <= elements)
    ++side;
  return {.mesh = impact::cylinder(3.2e-3, 32.4e-3, side, side, 12 * side),
          .material = {.density = 8930,
                       .young = 117e9,
                       .poisson = 0.35,
                       .yield = 400e6,
                       .hardening = 100e6},
          .speed = 227};
}

// A beam of steel at the speed of a crash test, 54 km/h.
impact::Case bumper(std::size_t elements) {
  return {.mesh = impact::beam(elements),
          .material =
              {.density = 7850, .young = 210e9, .poisson = 0.3, .yield = 350e6, .hardening = 1e9},
          .speed = 15};
}

// Rank 0 writes the plastic strain of each element over that of the last time.
void write_state(const std::string& folder, const std::vector<double>& strains) {
  const std::string path = folder + "/plastic-strain.f32";
  std::vector<float> values(strains.begin(), strains.end());
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool is_written = file != nullptr && std::fwrite(values.data(), sizeof(float),
                                                         values.size(), file) == values.size();
  if (file == nullptr || std::fclose(file) != 0 || !is_written)
    throw Failure(Exit::record, "cannot write " + path);
}

// JSON has no infinities.
double finite(double value) {
  return std::isfinite(value) ? value : 1e300;
}

template <class Real>
void run(mpi::Program& program, const Settings& settings) {
  program.at("the mesh");
  // Of the mesh, about 200 B per element on each rank; of its own part, about 1 kB while it is
  // made.
  mpi::require_memory(settings.elements * 200 +
                      settings.elements * 1000 / static_cast<std::size_t>(program.ranks));
  auto crash = settings.which == "beam" ? bumper(settings.elements) : taylor(settings.elements);
  const std::size_t elements = crash.mesh.elements.size();
  const std::size_t nodes = crash.mesh.points.size();
  const auto flop = impact::flop_of_an_element(crash.material);
  // One pass: elements read their nodes (x, v), add forces, and read and write their state; nodes
  // whose elements are complete are moved while they are in a cache. Each array crosses the memory
  // bus once there and once back.
  constexpr std::size_t reals_of_a_node = 4 * (2 + 2 + 2);
  const double bytes_of_an_element =
      2.0 * 7 * sizeof(Real) + impact::corners * sizeof(std::uint32_t) +
      static_cast<double>(reals_of_a_node * sizeof(Real) * nodes) / static_cast<double>(elements);
  const double parts = static_cast<double>(program.ranks) * static_cast<double>(settings.threads);
  if (static_cast<double>(elements) < parts)
    throw Skip(std::to_string(elements) + " elements cannot be divided among so many threads");

  impact::Crash<Real> simulation(crash, program.rank, program.ranks, settings.threads,
                                 settings.reduction);
  crash.mesh = {};
  const auto at_first = simulation.motion();
  MPI_Barrier(MPI_COMM_WORLD);

  program.at("the steps");
  std::array<double, 4> before_last = at_first;
  double writing_s = 0;
  std::size_t done = 0;
  std::size_t samples = 0;
  std::size_t writes = 0;
  program.phase.begin();
  const auto begin = Clock::now();
  std::size_t last = settings.steps == 0 ? static_cast<std::size_t>(-1) : settings.steps;
  while (done < last) {
    // The last step is on its own: the kinetic energy of its end is the mean of two half steps.
    const bool is_last = done + 1 == last;
    std::size_t steps = is_last ? 1 : std::min(steps_of_a_sample, last - 1 - done);
    if (settings.write_every != 0)
      steps = std::min(steps, settings.write_every - done % settings.write_every);
    if (is_last)
      before_last = simulation.motion();
    const double elapsed_s = timed([&] {
                               simulation.advance(steps);
                               MPI_Barrier(MPI_COMM_WORLD); // ranks may be a step apart
                             }).elapsed_s();
    done += steps;
    if (settings.steps == 0 && simulation.time() >= end_of_case_s)
      last = std::min(last, done + 1);
    if (steps == steps_of_a_sample) {
      const auto updates = static_cast<double>(elements * steps);
      program.add(sample_event("steps", samples++, elapsed_s)
                      .add("work", json::Object()
                                       .add("updates", updates)
                                       .add("steps", steps)
                                       .add("flop", updates * static_cast<double>(flop))
                                       .add("bytes", updates * bytes_of_an_element)));
    }
    if (settings.write_every != 0 && done % settings.write_every == 0) {
      writing_s += timed([&] {
                     const auto strains = simulation.plastic_strains();
                     if (program.rank == 0)
                       write_state(settings.folder, strains);
                   }).elapsed_s();
      ++writes;
    }
  }
  const double whole_s = seconds(Clock::now() - begin);
  program.phase.end();
  program.at("the checks");
  const auto at_last = simulation.motion();
  const auto energy = simulation.energy();
  const double kinetic = (before_last[0] + at_last[0]) / 2;
  const double taken = at_first[0] - kinetic;
  const double found = energy.internal + energy.hourglass + energy.wall;
  const double momentum = std::abs(at_first[1]);
  double momentum_error = 0;
  for (std::size_t i = 0; i < 3; ++i)
    momentum_error = std::max(momentum_error, std::abs(at_last[1 + i] - at_first[1 + i] -
                                                       (i == 0 ? energy.impulse : 0.0)));
  const auto extent = simulation.extent();
  const auto neighbours = mpi::gather({static_cast<double>(simulation.exchange().neighbours()),
                                       static_cast<double>(simulation.exchange().largest_B())});
  double most_neighbours = 0;
  double largest_B = 0;
  for (std::size_t at = 0; at < neighbours.size(); at += 2) {
    most_neighbours = std::max(most_neighbours, neighbours[at]);
    largest_B = std::max(largest_B, neighbours[at + 1]);
  }
  program.check("elements", static_cast<double>(elements));
  program.check("steps", static_cast<double>(done));
  program.check("threads", static_cast<double>(settings.threads));
  program.check("length_m", finite(extent[0]));
  program.check("energy_error", finite((found - taken) / std::max(std::abs(taken), 1e-12)));
  program.check("hourglass_share", finite(energy.hourglass / std::max(found, 1e-12)));
  program.check("momentum_error", finite(momentum_error / momentum));
  program.check("step_over_bound", finite(simulation.over_bound()));
  program.check("copies_differ_m", finite(simulation.copies_differ()));
  program.note("flop_of_an_element", flop);
  program.note("nodes", nodes);
  program.note("writes", writes);
  // Results of the run, which differ with precision and layout, are no notes.
  program.add(sample_event("run", 0, whole_s)
                  .add("work", json::Object()
                                   .add("updates", static_cast<double>(elements * done))
                                   .add("steps", done)
                                   .add("writing_s", writing_s))
                  .add("time_s", simulation.time())
                  .add("kinetic_J", finite(kinetic))
                  .add("internal_J", finite(energy.internal))
                  .add("hourglass_J", finite(energy.hourglass))
                  .add("wall_J", finite(energy.wall))
                  .add("impulse_Ns", finite(energy.impulse))
                  .add("radius_m", finite(extent[1]))
                  .add("neighbours", most_neighbours)
                  .add("largest_message_nodes", largest_B / (3 * sizeof(Real))));
}

void measure(mpi::Program& program, const Settings& settings) {
  if (settings.is_double)
    run<double>(program, settings);
  else
    run<float>(program, settings);
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("impact", argc, argv, prepare, measure);
}
