// gpu.cg: conjugate gradients on a 27-point stencil with a multigrid preconditioner, as in HPCG, on
// one device or on several that share the grid (native/multigrid/).
// untimed: -O1
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/workload.hpp"
#include "multigrid/checks.hpp"
#include "multigrid/conjugate_gradients.hpp"
#include "multigrid/device_solver.hpp"
#include "multigrid/order.hpp"
#include "multigrid/part.hpp"
#include "multigrid/reference.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "cg.cl")

namespace seatrial {
namespace {

using namespace device;
using namespace multigrid;

struct Settings {
  Extents local;
  Ordering ordering;
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  const auto lengths = arguments.numbers<std::uint32_t>("--grid", 1, 1U << 20);
  if (lengths.size() != 3)
    throw Failure(Exit::usage, "--grid takes the lengths along x, y and z: 104,104,104");
  const Settings settings{
      .local = {lengths[0], lengths[1], lengths[2]},
      .ordering = arguments.choice("--ordering", "colours", {"levels", "colours"}) == "levels"
                      ? Ordering::levels
                      : Ordering::colours};
  require_a_size(settings.local);
  return settings;
}

[[nodiscard]] std::vector<Source> sources() {
  return {Kernels::source(seatrial_kernels(), false)};
}

// What all members find; the same on each, but for the times of phases.
struct Found {
  double product_error = 0;
  double preconditioner_error = 0;
  double reference_error = 0;
  double sum_error = 0;
  double product_asymmetry = 0;
  double preconditioner_asymmetry = 0;
  std::size_t plain_iterations = 0;
  std::size_t preconditioned_iterations = 0;
  double residual = 0;
  double residual_spread = 0;
  double solution_error = 0;
  std::size_t iterations = 0;
  double setup_s = 0;
  std::vector<double> sets_s; // of the slowest member
  Phases phases;              // of a set that waits after each
  double phases_s = 0;        // of that set
  double moved_B = 0;         // by all in an iteration
  double memory_Bps = 0;      // of all
};

class Member {
public:
  Member(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings,
         Meeting& meeting, const std::vector<std::vector<Part>>& parts, std::size_t number,
         bool& is_last)
      : program_(program), team_(team), settings_(settings), meeting_(meeting), parts_(parts),
        number_(number), is_last_(is_last), device_(chosen[number]), queue_(device_.queue()),
        module_(device_.build(
            source_for(device_, Kernels::source(seatrial_kernels(), device_.facts().is_cpu),
                       chosen.is_optimised()))),
        kernels_(*module_) {
    for (const auto& of_all : parts)
      own_.push_back(of_all[number]);
  }

  [[nodiscard]] Found measured() {
    double reduction = 0;
    if (settings_.ordering != Ordering::levels) {
      make(Ordering::levels);
      check_against_definition();
      reduction = solver_->solve(reference_iterations, 0).reduction();
    }
    team_.barrier().wait();
    found_.setup_s = largest(timed([&] { make(settings_.ordering); }).elapsed_s());
    check_against_definition();
    check_tests();
    if (settings_.ordering == Ordering::levels)
      reduction = solver_->solve(reference_iterations, 0).reduction();
    const auto first = solver_->solve(most_iterations, reduction);
    found_.iterations = std::max(first.iterations, reference_iterations);
    sets(reduction, first.reduction() <= reduction * same_residual);
    phases();
    found_.moved_B = sum(solver_->iteration_B());
    const auto matrix_B = solver_->matrix_B();
    solver_.reset();
    memory_rate(static_cast<std::size_t>(matrix_B));
    return found_;
  }

private:
  void make(Ordering ordering) {
    solver_.reset();
    solver_ = std::make_unique<DeviceSolver>(device_, *queue_, kernels_, meeting_, parts_, number_,
                                             ordering);
  }

  void check_against_definition() {
    const auto reference = this->reference();
    const auto x = random_vector(own_[0], 3);
    const auto y = random_vector(own_[0], 4);
    const auto worse = [](double& worst, double error) {
      worst = std::isnan(worst) || error <= worst ? worst : error;
    };
    const auto most = [&](double mine) { return largest(mine); };
    worse(found_.product_error, difference(solver_->product(x), reference.product(x), most));
    worse(found_.preconditioner_error,
          difference(solver_->precondition(x), reference.precondition(x), most));
    const double expected = sum(dot(x, y));
    worse(found_.sum_error, std::abs(solver_->product_of(x, y) - expected) / expected);
    const double reduction = std::sqrt(reference.reduction(
        right_hand_side(own_[0]), compared_iterations,
        [&](const auto& one, const auto& other) { return sum(dot(one, other)); }));
    worse(found_.reference_error,
          std::abs(solver_->solve(compared_iterations, 0).reduction() / reduction - 1));
  }

  void check_tests() {
    const auto add = [&](double mine) { return sum(mine); };
    found_.product_asymmetry = asymmetry(
        own_[0], [&](const auto& x) { return solver_->product(x); }, add);
    found_.preconditioner_asymmetry = asymmetry(
        own_[0], [&](const auto& x) { return solver_->precondition(x); }, add);
    solver_->exaggerate(exaggeration(own_[0]));
    const auto iterations = [&](bool is_preconditioned) {
      return solver_->solve(most_spectral_iterations, spectral_tolerance, is_preconditioned)
          .iterations;
    };
    found_.plain_iterations = iterations(false);
    found_.preconditioned_iterations = iterations(true);
    solver_->exaggerate({});
  }

  // One is enough if the residual was not reached, which is an error.
  void sets(double reduction, bool is_reached) {
    const SampleCount count(program_);
    double low = std::numeric_limits<double>::infinity();
    double high = 0;
    double last = 0;
    for (std::size_t done = 0;; ++done) {
      if (number_ == 0)
        is_last_ = count.is_enough(done, done) || (done > 0 && !is_reached);
      team_.barrier().wait();
      const bool is_over = is_last_;
      team_.barrier().wait(); // no new decision before all have read this one
      if (is_over)
        break;
      const double mine_s =
          timed([&] { last = solver_->solve(found_.iterations, 0).reduction(); }).elapsed_s();
      found_.sets_s.push_back(largest(mine_s));
      low = std::min(low, last);
      high = std::isnan(last) ? last : std::max(high, last);
    }
    found_.residual = high / reduction;
    found_.residual_spread = (high - low) / high;
    const auto b = right_hand_side(own_[0]);
    auto residual = reference().product(solver_->solution());
    for (std::size_t row = 0; row < b.size(); ++row)
      residual[row] = b[row] - residual[row];
    found_.solution_error =
        std::abs(std::sqrt(sum(dot(residual, residual)) / sum(dot(b, b))) - last);
  }

  void phases() {
    solver_->is_waiting = true;
    found_.phases_s =
        timed([&] { static_cast<void>(solver_->solve(found_.iterations, 0)); }).elapsed_s();
    found_.phases = solver_->spent;
  }

  // A triad in as much memory as the fine matrix takes, on all devices at once.
  void memory_rate(std::size_t bytes) {
    constexpr int tries = 5;
    const auto count = static_cast<Word>(std::clamp<std::size_t>(bytes / 24, 1024, 1U << 30));
    const Array<double> a(device_, count);
    const Array<double> b(device_, count);
    const Array<double> c(device_, count);
    for (const auto* array : {&a, &b, &c})
      queue_->fill(array->memory(), 0, 0, array->bytes());
    const auto groups = (count + group - 1) / group;
    const Grid grid{
        .groups = device_.facts().is_cpu ? std::min(groups, device_.facts().compute_units) : groups,
        .items = group};
    double fastest_s = std::numeric_limits<double>::infinity();
    for (int i = 0; i < tries; ++i) {
      queue_->finish();
      team_.barrier().wait();
      fastest_s =
          std::min(fastest_s, largest(timed([&] {
                                        kernels_.combine(*queue_, grid, b, c, a, 1.0, 0.5, count);
                                        queue_->finish();
                                      }).elapsed_s()));
    }
    found_.memory_Bps = sum(24.0 * count) / fastest_s;
  }

  [[nodiscard]] Reference reference() const {
    return {own_, solver_->orders(), [this](std::size_t level, std::vector<double>& x) {
              solver_->exchange_on_host(level, x);
            }};
  }
  [[nodiscard]] double sum(double mine) { return meeting_.sum(number_, mine); }
  [[nodiscard]] double largest(double mine) { return meeting_.largest(number_, mine); }

  Program& program_;
  Team& team_;
  const Settings& settings_;
  Meeting& meeting_;
  const std::vector<std::vector<Part>>& parts_;
  std::size_t number_;
  bool& is_last_;
  Device& device_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Module> module_;
  Kernels kernels_;
  std::vector<Part> own_;
  std::unique_ptr<DeviceSolver> solver_;
  Found found_;
};

// Values, columns and the vectors of one device.
[[nodiscard]] double bytes_of(const Extents& local) {
  return 1.05 * 8 / 7 * local[0] * local[1] * local[2] * (27 * 12 + 10 * 8);
}

void report(Program& program, const Found& found, const Extents& points, double devices) {
  program.check("devices", devices);
  program.check("sum_error", found.sum_error);
  program.check("product_error", found.product_error);
  program.check("preconditioner_error", found.preconditioner_error);
  program.check("reference_error", found.reference_error);
  program.check("product_asymmetry", found.product_asymmetry);
  program.check("preconditioner_asymmetry", found.preconditioner_asymmetry);
  program.check("plain_iterations", static_cast<double>(found.plain_iterations));
  program.check("preconditioned_iterations", static_cast<double>(found.preconditioned_iterations));
  program.check("residual", found.residual);
  program.check("residual_spread", found.residual_spread);
  program.check("solution_error", found.solution_error);
  const auto iterations = static_cast<double>(found.iterations);
  for (std::size_t i = 0; i < found.sets_s.size(); ++i) {
    const double scale = found.sets_s[i] / found.phases_s;
    const auto& spent = found.phases;
    program.add(sample_event("set", i, found.sets_s[i])
                    .add("work", json::Object()
                                     .add("flops", Operations(points, reference_iterations).all())
                                     .add("raw_flops", Operations(points, found.iterations).all())
                                     .add("bytes", found.moved_B * iterations)
                                     .add("iterations", iterations))
                    .add("setup_s", found.setup_s)
                    .add("memory_Bps", found.memory_Bps)
                    .add("phases_s", json::Object()
                                         .add("spmv", spent.product * scale)
                                         .add("symgs", spent.smoother * scale)
                                         .add("transfer", spent.transfer * scale)
                                         .add("vectors", spent.vectors * scale)
                                         .add("reduce", spent.reduce * scale)
                                         .add("halo", spent.halo * scale)));
  }
}

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  in_precision(chosen, true, [](auto) {}); // refuses devices without it
  const auto count = static_cast<std::uint32_t>(chosen.size());
  const auto shape = near_a_cube(count);
  for (std::size_t i = 0; i < count; ++i)
    if (const auto there = static_cast<double>(chosen[i].free_bytes());
        there > 0 && bytes_of(settings.local) > there)
      throw Skip("a device needs " + std::to_string(bytes_of(settings.local) / 1e9) + " GB; " +
                 chosen[i].facts().name + " has " + std::to_string(there / 1e9) + " GB free");
  std::vector<std::vector<Part>> parts(grids);
  for (std::uint32_t member = 0; member < count; ++member) {
    const auto own = hierarchy(Part(settings.local, shape, member));
    for (std::size_t i = 0; i < grids; ++i)
      parts[i].push_back(own[i]);
  }
  Meeting meeting(team);
  bool is_last = false;
  Found found;
  team.run([&](std::size_t member) {
    or_end([&] {
      const auto own =
          Member(program, team, chosen, settings, meeting, parts, member, is_last).measured();
      if (member == 0)
        found = own;
    });
  });
  report(program, found, parts[0][0].points(), count);
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program("cg", argc, argv, seatrial::prepare, seatrial::sources,
                                       seatrial::measure);
}
