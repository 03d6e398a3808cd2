// cpu.cg: conjugate gradients on a 27-point stencil with a multigrid preconditioner, as in HPCG, on
// ranks and their threads (native/multigrid/).
//
// A sample is a set: as many iterations from x = 0 as it takes to reduce the residual as 50 of the
// reference do, with the time of the slowest rank.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "failure.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/own_cpus.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/waiting.hpp"
#include "multigrid/checks.hpp"
#include "multigrid/conjugate_gradients.hpp"
#include "multigrid/memory_rate.hpp"
#include "multigrid/order.hpp"
#include "multigrid/part.hpp"
#include "multigrid/rank_halo.hpp"
#include "multigrid/reference.hpp"
#include "multigrid/solver.hpp"
#include "team.hpp"

namespace {

using namespace seatrial;
using namespace seatrial::multigrid;

constexpr std::size_t min_rounds = 3;
constexpr double longest_s = 60; // of the rounds, if each takes long

struct Settings {
  Extents local;
  Ordering ordering;
  std::size_t threads;
};

Settings prepare(Arguments& arguments) {
  const auto lengths = arguments.numbers<std::uint32_t>("--grid", 1, 1U << 20);
  if (lengths.size() != 3)
    throw Failure(Exit::usage, "--grid takes the lengths along x, y and z: 104,104,104");
  const Settings settings{
      .local = {lengths[0], lengths[1], lengths[2]},
      .ordering = arguments.choice("--ordering", "levels", {"levels", "colours"}) == "colours"
                      ? Ordering::colours
                      : Ordering::levels,
      .threads = arguments.number<std::size_t>("--threads", 1, 1, 1u << 16)};
  require_a_size(settings.local);
  return settings;
}

double largest(double mine) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return mine;
}

std::vector<Order> orders_of(const std::vector<Part>& parts, Ordering ordering) {
  std::vector<Order> orders;
  for (const auto& part : parts)
    orders.push_back(ordered(part, ordering, static_cast<std::uint32_t>(width)));
  return orders;
}

class Run {
public:
  Run(mpi::Program& program, const Settings& settings)
      : program_(program), settings_(settings),
        ranks_(near_a_cube(static_cast<std::uint32_t>(program.ranks))),
        parts_(hierarchy(Part(settings.local, ranks_, static_cast<std::uint32_t>(program.rank)))),
        team_(mpi::own_cpus(program.rank, settings.threads)) {
    std::vector<std::uint32_t> rows(parts_[0].rows());
    std::iota(rows.begin(), rows.end(), 0U);
    for (const auto& part : parts_)
      plain_halos_.emplace_back(part, rows, part.rows());
  }

  void measure() {
    program_.note("ranks", std::to_string(ranks_[0]) + " x " + std::to_string(ranks_[1]) + " x " +
                               std::to_string(ranks_[2]));
    program_.at("set-up");
    double reduction = 0;
    if (settings_.ordering != Ordering::levels) {
      const auto orders = orders_of(parts_, Ordering::levels);
      Solver reference(parts_, orders, team_);
      check_against_definition(reference, orders);
      reduction = reference.solve(reference_iterations, 0).reduction();
    }
    mpi::sleeping_barrier();
    setup_s_ = largest(timed([&] {
                         orders_ = orders_of(parts_, settings_.ordering);
                         solver_.emplace(parts_, orders_, team_);
                       }).elapsed_s());
    program_.at("the checks");
    check_against_definition(*solver_, orders_);
    check_symmetry();
    check_spectrum();
    program_.at("the reference");
    if (settings_.ordering == Ordering::levels)
      reduction = solver_->solve(reference_iterations, 0).reduction();
    const auto first = solver_->solve(most_iterations, reduction);
    iterations_ = std::max(first.iterations, reference_iterations);
    rounds(reduction);
    finish();
  }

private:
  struct Round {
    double elapsed_s; // of the slowest rank
    Phases spent;     // mean over the ranks
  };

  // The largest errors of all solvers are reported.
  void check_against_definition(Solver& solver, const std::vector<Order>& orders) {
    const Reference reference(parts_, orders, [this](std::size_t level, std::vector<double>& x) {
      plain_halos_[level].exchange(x.data());
    });
    const auto x = random_vector(parts_[0], 3);
    product_error_ =
        std::max(product_error_, difference(solver.product(x), reference.product(x), largest));
    preconditioner_error_ =
        std::max(preconditioner_error_,
                 difference(solver.precondition(x), reference.precondition(x), largest));
    const double expected = std::sqrt(reference.reduction(
        right_hand_side(parts_[0]), compared_iterations,
        [](const auto& one, const auto& other) { return mpi::sum(dot(one, other)); }));
    const double error = std::abs(solver.solve(compared_iterations, 0).reduction() / expected - 1);
    reference_error_ = std::isnan(error) ? error : std::max(reference_error_, error);
  }

  void check_symmetry() {
    const auto sum = [](double mine) { return mpi::sum(mine); };
    const double product = asymmetry(
        parts_[0], [&](const auto& x) { return solver_->product(x); }, sum);
    const double preconditioner = asymmetry(
        parts_[0], [&](const auto& x) { return solver_->precondition(x); }, sum);
    program_.check("product_asymmetry", product);
    program_.check("preconditioner_asymmetry", preconditioner);
  }

  void check_spectrum() {
    const auto factors = exaggeration(parts_[0]);
    solver_->exaggerate(factors);
    for (const bool is_preconditioned : {false, true}) {
      const auto found =
          solver_->solve(most_spectral_iterations, spectral_tolerance, is_preconditioned);
      program_.check(is_preconditioned ? "preconditioned_iterations" : "plain_iterations",
                     static_cast<double>(found.iterations));
    }
    solver_->exaggerate({});
  }

  void rounds(double reduction) {
    mpi::Rounds rounds(program_, min_rounds, longest_s);
    std::vector<double> reductions;
    while (rounds.another(measured_.size())) {
      program_.at("set " + std::to_string(measured_.size()));
      solver_->spent = {};
      mpi::sleeping_barrier();
      Solution found;
      const double mine_s = timed([&] { found = solver_->solve(iterations_, 0); }).elapsed_s();
      reductions.push_back(found.reduction());
      measured_.push_back(gathered_round(mine_s));
    }
    last_reduction_ = reductions.back();
    const auto [low, high] = std::ranges::minmax(reductions);
    program_.check("residual", high / reduction);
    program_.check("residual_spread", (high - low) / high);
  }

  [[nodiscard]] Round gathered_round(double mine_s) const {
    const auto& s = solver_->spent;
    const auto all =
        mpi::gather({mine_s, s.product, s.smoother, s.transfer, s.vectors, s.reduce, s.halo});
    Round round{};
    for (std::size_t i = 0; i < all.size(); i += 7) {
      round.elapsed_s = std::max(round.elapsed_s, all[i]);
      std::size_t at = i;
      for (double* phase : {&round.spent.product, &round.spent.smoother, &round.spent.transfer,
                            &round.spent.vectors, &round.spent.reduce, &round.spent.halo})
        *phase += all[++at] / program_.ranks;
    }
    return round;
  }

  // The residual of the solution from the definition of the matrix, and the rate of memory.
  void finish() {
    program_.at("the solution");
    const Reference reference(parts_, orders_, [this](std::size_t level, std::vector<double>& x) {
      plain_halos_[level].exchange(x.data());
    });
    const auto b = right_hand_side(parts_[0]);
    auto residual = reference.product(solver_->solution());
    for (std::size_t row = 0; row < b.size(); ++row)
      residual[row] = b[row] - residual[row];
    const double norm = std::sqrt(mpi::sum(dot(residual, residual)) / mpi::sum(dot(b, b)));
    program_.check("solution_error", std::isnan(norm) ? norm : std::abs(norm - last_reduction_));
    program_.check("product_error", product_error_);
    program_.check("preconditioner_error", preconditioner_error_);
    program_.check("reference_error", reference_error_);
    program_.check("threads", static_cast<double>(team_.size()));
    const double iteration_B = solver_->iteration_B();
    const double matrix_B = solver_->matrix_B();
    const double sent_B = mpi::sum(solver_->sent_B());
    const double moved_B = mpi::sum(iteration_B);
    solver_.reset();
    program_.at("the rate of memory");
    const double rate = memory_Bps(team_, static_cast<std::size_t>(matrix_B)) * program_.ranks;
    if (program_.rank != 0)
      return;
    const Operations counted(parts_[0].points(), reference_iterations);
    const Operations done(parts_[0].points(), iterations_);
    const auto iterations = static_cast<double>(iterations_);
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      const auto& [elapsed_s, spent] = measured_[i];
      program_.add(sample_event("set", i, elapsed_s)
                       .add("work", json::Object()
                                        .add("flops", counted.all())
                                        .add("raw_flops", done.all())
                                        .add("bytes", moved_B * iterations)
                                        .add("iterations", iterations))
                       .add("setup_s", setup_s_)
                       .add("memory_Bps", rate)
                       .add("sent_B", sent_B * iterations)
                       .add("phases_s", json::Object()
                                            .add("spmv", spent.product)
                                            .add("symgs", spent.smoother)
                                            .add("transfer", spent.transfer)
                                            .add("vectors", spent.vectors)
                                            .add("reduce", spent.reduce)
                                            .add("halo", spent.halo)));
    }
  }

  mpi::Program& program_;
  const Settings& settings_;
  Extents ranks_;
  std::vector<Part> parts_;
  Team team_;
  std::vector<RankHalo> plain_halos_; // of vectors by row
  std::vector<Order> orders_;
  std::optional<Solver> solver_;
  double setup_s_ = 0;
  double product_error_ = 0;
  double preconditioner_error_ = 0;
  double reference_error_ = 0;
  double last_reduction_ = 0;
  std::size_t iterations_ = 0;
  std::vector<Round> measured_;
};

void measure(mpi::Program& program, const Settings& settings) {
  const Part part(settings.local, {1, 1, 1}, 0);
  mpi::require_memory(static_cast<std::uint64_t>(Solver::bytes(part)));
  Run(program, settings).measure();
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("cg", argc, argv, prepare, measure);
}
