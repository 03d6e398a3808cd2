// gpu.linpack: a dense system of linear equations, solved by the devices of one or more ranks by LU
// factorisation (native/dense/).
// untimed: -O1
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dense/refinement.hpp"
#include "dense/solver.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"
#include "mpi/agreed.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/own_cpus.hpp"
#include "mpi/program.hpp"
#include "mpi/rank_on_node.hpp"
#include "mpi/rounds.hpp"
#include "team.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "linpack.cl")

namespace {

using namespace seatrial;

struct Settings {
  device::DeviceArguments devices;
  std::uint32_t n;
  std::uint32_t block;
  std::uint32_t p; // 0: as square as possible, with q
  std::uint32_t q;
  bool is_mixed;
  bool looks_ahead;
  bool uses_vendor_library;
  std::string blas; // file of the library
  std::size_t threads;
};

// Drivers create threads, so MPI is initialised with thread support.
Settings prepare(Arguments& arguments) {
  constexpr std::uint32_t most = 1 << 20;
  Settings settings{
      .devices = device::DeviceArguments(arguments),
      .n = arguments.number<std::uint32_t>("--n", 1024, 1, most),
      .block = arguments.number<std::uint32_t>("--nb", 128, 1, 4096),
      .p = arguments.number<std::uint32_t>("--p", 0, 0, most),
      .q = arguments.number<std::uint32_t>("--q", 0, 0, most),
      .is_mixed = arguments.choice("--precision", "fp64", {"fp64", "mixed"}) == "mixed",
      .looks_ahead = arguments.number<int>("--depth", 1, 0, 1) == 1,
      .uses_vendor_library =
          arguments.choice("--library", "portable", {"portable", "vendor"}) == "vendor",
      .blas = std::string(arguments.find("--blas").value_or("")),
      .threads = arguments.number<std::size_t>("--threads", 1, 1, 1U << 16)};
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (provided < MPI_THREAD_FUNNELED)
    throw Failure(Exit::system, "this MPI library does not support threads (MPI_THREAD_FUNNELED)");
  return settings;
}

// Of the ranks of a node, the number of this one and how many there are. Collective.
struct ShareOfNode {
  std::size_t number;
  std::size_t of;
};

ShareOfNode share_of_node() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, mpi::world_rank(), MPI_INFO_NULL,
                      &node);
  int ranks = 0;
  MPI_Comm_size(node, &ranks);
  MPI_Comm_free(&node);
  return {static_cast<std::size_t>(mpi::rank_on_node()), static_cast<std::size_t>(ranks)};
}

// The devices of this rank: ranks of a node share those that were asked for evenly.
std::vector<device::Device*> own_devices(const device::ChosenDevices& chosen,
                                         const ShareOfNode& share) {
  if (chosen.size() % share.of != 0 && share.of % chosen.size() != 0)
    throw Skip(std::to_string(share.of) + " ranks of a node cannot share " +
               std::to_string(chosen.size()) + " devices evenly");
  const auto each = std::max(chosen.size() / share.of, std::size_t{1});
  std::vector<device::Device*> own;
  for (std::size_t i = 0; i < each; ++i)
    own.push_back(&chosen[(share.number * each + i) % chosen.size()]);
  return own;
}

dense::Grid grid_of(const Settings& settings, std::uint32_t workers) {
  auto p = settings.p;
  auto q = settings.q;
  if (p == 0 && q == 0)
    for (std::uint32_t rows = 1; rows * rows <= workers; ++rows)
      if (workers % rows == 0)
        p = rows;
  if (p == 0)
    p = workers / q;
  if (q == 0)
    q = workers / p;
  if (p * q != workers)
    throw Skip("a grid of " + std::to_string(p) + " x " + std::to_string(q) + " needs " +
               std::to_string(p * q) + " devices, not " + std::to_string(workers));
  return {.n = settings.n,
          .columns = settings.n + (settings.is_mixed ? 0 : 1),
          .block = std::min(settings.block, settings.n),
          .p = p,
          .q = q};
}

dense::BlasMaker blas_maker(const Settings& settings) {
  if (!settings.uses_vendor_library)
    return {};
  return [file = settings.blas](const device::Device& device, device::Queue& queue) {
    return device::vendor_blas(device, queue, file);
  };
}

// One solution: its time, the phases of the time on this rank, and how right it is.
struct Solution {
  double elapsed_s = 0;
  std::array<double, dense::phase_names.size()> phases_s{};
  double copied_B = 0;
  unsigned iterations = 0;
  bool has_converged = true;
  double residual = 0;
};

template <class Real>
class Measurement {
public:
  Measurement(mpi::Program& program, Team& team, const std::vector<device::Device*>& devices,
              const dense::Grid& grid, const Settings& settings)
      : program_(program), grid_(grid), is_mixed_(settings.is_mixed),
        system_(team, grid.n, settings.is_mixed),
        solver_(team, devices, seatrial_kernels(), grid_, system_, program.rank, program.ranks,
                {.looks_ahead = settings.looks_ahead,
                 .has_pivots = !settings.is_mixed,
                 .keeps_lower = settings.is_mixed,
                 .is_optimised = settings.devices.is_optimised,
                 .blas = blas_maker(settings)}) {}

  // Collective.
  [[nodiscard]] Solution solve() {
    Solution found;
    std::vector<double> x;
    solver_.make();
    const double before_B = solver_.copied_B();
    MPI_Barrier(MPI_COMM_WORLD);
    solver_.clock().begin(dense::Phase::update);
    const double own_s = timed([&] {
                           solver_.factor();
                           if (is_mixed_) {
                             auto refined = dense::refined(solver_, system_);
                             x = std::move(refined.x);
                             found.iterations = refined.iterations;
                             found.has_converged = refined.has_converged;
                           } else {
                             x = solver_.last_column();
                             solver_.solve(true, x);
                           }
                           MPI_Barrier(MPI_COMM_WORLD);
                         }).elapsed_s();
    found.phases_s = solver_.clock().end();
    found.copied_B = solver_.copied_B() - before_B;
    found.elapsed_s = own_s;
    gather(found);
    found.residual = residual_of(x);
    return found;
  }

private:
  // Rank 0 gets the longest time, the mean of each phase and the sum of the copies.
  void gather(Solution& found) const {
    std::vector<double> mine = {found.elapsed_s, found.copied_B};
    mine.insert(mine.end(), found.phases_s.begin(), found.phases_s.end());
    const auto all = mpi::gather(mine);
    if (all.empty())
      return;
    found.copied_B = 0;
    found.phases_s = {};
    for (std::size_t at = 0; at < all.size(); at += mine.size()) {
      found.elapsed_s = std::max(found.elapsed_s, all[at]);
      found.copied_B += all[at + 1];
      for (std::size_t i = 0; i < found.phases_s.size(); ++i)
        found.phases_s[i] += all[at + 2 + i] / program_.ranks;
    }
  }

  // Each rank checks some rows.
  [[nodiscard]] double residual_of(const std::vector<double>& x) {
    const auto own = system_.norms(x, static_cast<std::size_t>(program_.rank),
                                   static_cast<std::size_t>(program_.ranks));
    const auto all = mpi::gather({own.residual, own.matrix, own.right_side});
    dense::System::Norms norms;
    for (std::size_t at = 0; at < all.size(); at += 3)
      norms = {.residual = dense::System::larger(norms.residual, all[at]),
               .matrix = dense::System::larger(norms.matrix, all[at + 1]),
               .right_side = dense::System::larger(norms.right_side, all[at + 2])};
    return dense::System::scaled(norms, dense::System::largest(x), grid_.n);
  }

  mpi::Program& program_;
  const dense::Grid grid_;
  bool is_mixed_;
  dense::System system_;
  dense::Solver<Real> solver_;
};

void add_sample(mpi::Program& program, std::size_t number, const Solution& solution,
                const dense::Grid& grid, const json::Object& devices) {
  const auto n = static_cast<double>(grid.n);
  auto event = sample_event("solution", number, solution.elapsed_s)
                   .add("work", json::Object()
                                    .add("flops", (2.0 / 3.0 * n + 1.5) * n * n)
                                    .add("copied_B", solution.copied_B))
                   .add("p", grid.p)
                   .add("q", grid.q)
                   .add("device", devices);
  for (std::size_t i = 0; i < dense::phase_names.size(); ++i)
    event.add(std::string(dense::phase_names[i]) + "_s", solution.phases_s[i]);
  program.add(event);
  if (solution.iterations > 0)
    program.add(sample_event("iterations", number, solution.elapsed_s)
                    .add("work", json::Object().add("ops", solution.iterations)));
}

template <class Real>
void measure_as(mpi::Program& program, const device::ChosenDevices& chosen,
                const std::vector<device::Device*>& devices, const json::Object& facts,
                const Settings& settings) {
  const auto grid = grid_of(settings, static_cast<std::uint32_t>(devices.size()) *
                                          static_cast<std::uint32_t>(program.ranks));
  program.at("the matrix");
  const std::uint64_t part = std::uint64_t{sizeof(Real)} * grid.n * grid.n / grid.workers();
  const std::uint64_t panels = std::uint64_t{sizeof(Real)} * 4 * grid.n * grid.block;
  mpi::require_memory(panels + (chosen[0].facts().is_cpu ? devices.size() * (part + panels) : 0));
  const auto cpus = mpi::own_cpus(program.rank, settings.threads);
  Team team(cpus);
  Measurement<Real> measurement(program, team, devices, grid, settings);
  program.at("solutions");
  double residual = measurement.solve().residual; // and a warm-up
  bool has_converged = true;
  mpi::Rounds rounds(program, 1);
  for (std::size_t done = 0; rounds.another(done); ++done) {
    const auto solution = measurement.solve();
    add_sample(program, done, solution, grid, facts);
    residual = dense::System::larger(residual, solution.residual);
    has_converged = has_converged && solution.has_converged;
  }
  program.check("residual", residual);
  program.check("converged", has_converged ? 1 : 0);
}

// The devices that were asked for, and how many there are; all can compute what is wanted.
struct Opened {
  explicit Opened(const Settings& settings)
      : devices(settings.devices.backend, settings.devices.platform, settings.devices.nvrtc,
                settings.devices.is_as_gpu),
        chosen(devices, settings.devices) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (!chosen[i].facts().has_fp64)
        throw Unsupported("fp64", chosen[i].facts().name + " has no double precision");
    if (!settings.uses_vendor_library)
      return;
    const auto queue = chosen[0].queue();
    const auto blas = device::vendor_blas(chosen[0], *queue, settings.blas);
    blas->require(settings.is_mixed ? device::Precision::fp32 : device::Precision::fp64);
    library = blas->name();
  }

  device::Devices devices;
  device::ChosenDevices chosen;
  std::string library; // empty: our own kernels
};

// The grid of workers is the same on all ranks only if each has as many devices.
void require_equal_shares(std::size_t own) {
  const auto mine = static_cast<int>(own);
  std::array<int, 2> found{};
  const std::array<int, 2> signs = {mine, -mine};
  MPI_Allreduce(signs.data(), found.data(), 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  if (found[0] != -found[1])
    throw Skip("ranks have different numbers of devices: " + std::to_string(-found[1]) + " to " +
               std::to_string(found[0]));
}

void measure(mpi::Program& program, const Settings& settings) {
  const auto opened = mpi::on_all_ranks([&] { return std::make_unique<Opened>(settings); });
  const auto& chosen = opened->chosen;
  std::vector<json::Object> documents;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    documents.push_back(chosen[i].facts().document());
  program.note("devices", documents);
  if (!opened->library.empty())
    program.note("library", opened->library);
  const auto own =
      mpi::on_all_ranks([&, share = share_of_node()] { return own_devices(chosen, share); });
  require_equal_shares(own.size());
  const auto used = std::min(chosen.size(), own.size() * static_cast<std::size_t>(program.ranks));
  const auto facts = device::facts_for_limit(chosen, used)
                         .add("found", opened->devices.size())
                         .add("cpu", chosen[0].facts().is_cpu);
  if (settings.is_mixed)
    measure_as<float>(program, chosen, own, facts, settings);
  else
    measure_as<double>(program, chosen, own, facts, settings);
}

std::vector<device::Source> sources() {
  return {dense::Kernels<double>::source(seatrial_kernels()),
          dense::Kernels<float>::source(seatrial_kernels())};
}

} // namespace

int main(int argc, char** argv) {
  if (const auto status = seatrial::device::answered("linpack", argc, argv, sources))
    return *status;
  return seatrial::mpi::run_program("linpack", argc, argv, prepare, measure);
}
