// cpu.peak: the rate of fused multiply-adds, and the clock frequency during the measurement.
//
// Every sample runs the throughput kernel between two dependent chains of the same instruction on
// the same bound thread. The duration of a chain is FMAs x latency / clock, which gives the clock
// frequency at that moment without hardware counters or root, including any reduction by wide
// vectors. A chain of integer additions (one cycle each on every current core) verifies the latency
// that seatrial assumes for this core.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "clock_step.hpp"
#include "optimisation_barrier.hpp"
#include "program.hpp"
#include "team.hpp"
#include "unrolled.hpp"
#include "vector.hpp"

namespace {

using namespace seatrial;

// The operation is x <- x * x + c, which a compiler cannot simplify: n steps are a polynomial of
// degree 2^n, whereas a linear x <- m * x + a has a closed form. For c near -2 the map is chaotic
// on [c, c * c + c] (P. Collet, J.-P. Eckmann, "Iterated Maps on the Interval as Dynamical
// Systems", 1980): the state never converges, has random fractions, is never denormal, and changes
// with each additional step. For c > -2 rounding cannot push it out of the interval. x is a factor
// rather than the addend because some cores forward an addend early (Neoverse), which would make
// the chain look faster than it is.
//
// On AArch64 the instruction overwrites its addend, so each step also copies c; the cost has not
// been measured.

// Independent chains in flight: at least latency x pipes, which is 8 (4 x 2) on Zen 3 to 5 and on
// Intel since Skylake, 10 (5 x 2) on Haswell, Zen 1 and 2, 16 (4 x 4) on Neoverse V1 and V2; up to
// twice that keeps the pipes busy after a stall. At most the number of registers less one for c.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr std::size_t accumulators = 20; // of 32 registers
#elif defined(__FMA__)
constexpr std::size_t accumulators = 12; // of 16
#else
constexpr std::size_t accumulators =
    15; // of 16: a separate product and sum take longer than an FMA
#endif

constexpr double chain_s = 40e-6; // target duration of each chain

// Each sample holds three times per member, about 35 bytes of text: at most 1 MB per record.
[[nodiscard]] constexpr std::size_t max_samples(std::size_t members) noexcept {
  constexpr std::size_t max_readings = 20'000;
  return std::clamp<std::size_t>(max_readings / members, 3, 2'000);
}

// The target duration of the throughput kernel. Members leave a barrier one after another, since
// each has to fetch the line that releases it: about 50 ns apart, 10-20 us from first to last of
// 384. A sample runs from the first start to the last end, so this time is lost; 25 us of kernel
// per member keep it at 0.2 %. Below 20 members a short sample's duration is used.
[[nodiscard]] double kernel_s(std::size_t members, double slice_s) noexcept {
  const double of_longer_slice_s = slice_s / static_cast<double>(max_samples(members));
  return std::max({0.5e-3, 25e-6 * static_cast<double>(members), of_longer_slice_s});
}

template <class Real>
struct State {
  Vector<Real> x[accumulators];
};

template <class Real>
[[gnu::always_inline]] inline Vector<Real> step(Vector<Real> x, Vector<Real> c) noexcept {
  return multiply_add(x, x, c);
}

// One step of every accumulator per iteration. The loop contains only FMAs and loop control.
template <class Real>
[[gnu::noinline]] void run_throughput(State<Real>& state, const Vector<Real>& addend,
                                      std::uint64_t iterations) noexcept {
  State<Real> local = state; // in registers
  const auto c = addend;
  for (; iterations != 0; --iterations)
    unrolled<accumulators>([&](std::size_t k) { local.x[k] = step<Real>(local.x[k], c); });
  state = local;
}

constexpr std::size_t chain_block = 16; // operations per iteration of a chain's loop

// A chain of dependent FMAs.
template <class Real>
[[gnu::noinline]] Vector<Real> run_chain(Vector<Real> x, const Vector<Real>& addend,
                                         std::uint64_t blocks) noexcept {
  const auto c = addend;
  for (; blocks != 0; --blocks)
    unrolled<chain_block>([&](std::size_t) { x = step<Real>(x, c); });
  return x;
}

// A chain of dependent additions between registers: additions of a small constant may be folded at
// rename (Golden Cove).
[[gnu::noinline]] std::uint64_t run_additions(std::uint64_t x, std::uint64_t y,
                                              std::uint64_t blocks) noexcept {
  for (; blocks != 0; --blocks)
    unrolled<chain_block>([&](std::size_t) {
      x += y;
      asm volatile("" : "+r"(x)); // keeps the compiler from merging them into a multiplication
    });
  return x;
}

// Start values and addends, different for each lane and hidden from the compiler.
template <class Real>
struct Inputs {
  State<Real> start;
  Vector<Real> c;

  // In single precision the map ends in cycles of hundreds or thousands of values. With these
  // addends no two lanes with the same addend ever have the same value, at any vector width, fused
  // or not.
  Inputs() {
    // Multiples of the golden ratio are spread evenly over [0, 1).
    const auto spread = [](std::size_t i) {
      const double turns = static_cast<double>(i + 1) * 0.6180339887498949;
      return do_not_fold(turns - static_cast<double>(static_cast<std::size_t>(turns)));
    };
    for (std::size_t lane = 0; lane < lanes<Real>; ++lane) {
      c[lane] = static_cast<Real>(-1.985 + 0.005 * spread(lane));
      for (std::size_t k = 0; k < accumulators; ++k)
        start.x[k][lane] = static_cast<Real>(spread(k * lanes<Real> + lane));
    }
  }
};

// The state after this many steps, computed lane by lane in scalar arithmetic.
template <class Real>
[[nodiscard]] State<Real> replay(const Inputs<Real>& inputs, std::uint64_t steps) {
  constexpr auto count = accumulators * lanes<Real>;
  std::array<Real, count> x;
  std::array<Real, count> c;
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = inputs.start.x[i / lanes<Real>][i % lanes<Real>];
    c[i] = inputs.c[i % lanes<Real>];
  }
  for (std::uint64_t step = 0; step < steps; ++step)
    for (std::size_t i = 0; i < count; ++i)
      x[i] = scalar_multiply_add(x[i], x[i], c[i]);
  State<Real> state;
  for (std::size_t i = 0; i < count; ++i)
    state.x[i / lanes<Real>][i % lanes<Real>] = x[i];
  return state;
}

// The number of lanes that differ in any bit.
template <class Real>
[[nodiscard]] std::size_t mismatches(const Vector<Real>& one, const Vector<Real>& other) noexcept {
  std::size_t count = 0;
  for (std::size_t lane = 0; lane < lanes<Real>; ++lane) {
    const Real a = one[lane];
    const Real b = other[lane];
    count += std::memcmp(&a, &b, sizeof a) != 0;
  }
  return count;
}

// The fraction of lanes that are finite and differ from all others in addend or value: constant
// data would draw less power. Lanes with other addends meet by chance, in one of 5000 states in
// single precision, and part again.
template <class Real>
[[nodiscard]] double distinct_fraction(const State<Real>& state, const Vector<Real>& addends) {
  std::set<std::pair<Real, Real>> seen;
  for (const auto& x : state.x)
    for (std::size_t lane = 0; lane < lanes<Real>; ++lane)
      if (std::isfinite(x[lane]))
        seen.emplace(addends[lane], x[lane]);
  return static_cast<double>(seen.size()) / (accumulators * lanes<Real>);
}

// The n for which `action(n)` lasts `target_s`: uses the shortest of several tries, so that a
// disturbance does not shrink the work.
template <class Action>
std::uint64_t repetitions_for(double target_s, Action action) {
  constexpr std::uint64_t trial = 1000;
  const auto shortest_s = [&](std::uint64_t n) {
    double shortest = timed([&] { action(n); }).elapsed_s();
    for (int i = 1; i < 20; ++i)
      shortest = std::min(shortest, timed([&] { action(n); }).elapsed_s());
    return shortest;
  };
  return repetitions_lasting(target_s, clock_step_s(), trial, shortest_s);
}

// The amount of work per timed part; chosen once, the same for all members and samples.
struct Amounts {
  std::uint64_t iterations; // iterations of the throughput kernel
  std::uint64_t chain_blocks;
  std::uint64_t addition_blocks;

  [[nodiscard]] std::uint64_t chain_fmas() const noexcept { return chain_blocks * chain_block; }
  [[nodiscard]] std::uint64_t additions() const noexcept { return addition_blocks * chain_block; }
};

template <class Real>
[[nodiscard]] Amounts choose_amounts(const Inputs<Real>& inputs, std::size_t members,
                                     double slice_s) {
  return {
      .iterations = repetitions_for(kernel_s(members, slice_s),
                                    [&](std::uint64_t n) {
                                      auto state = inputs.start;
                                      run_throughput<Real>(state, inputs.c, n);
                                      do_not_eliminate(state);
                                    }),
      .chain_blocks =
          repetitions_for(chain_s,
                          [&](std::uint64_t n) {
                            do_not_eliminate(run_chain<Real>(inputs.start.x[0], inputs.c, n));
                          }),
      .addition_blocks = repetitions_for(
          chain_s, [](std::uint64_t n) { do_not_eliminate(run_additions(n, n, n)); }),
  };
}

// One member's times in one sample.
struct Observed {
  Interval kernel;
  std::array<double, 2> chain_s; // before and after the kernel
  double additions_s;
};

template <class Real>
class Peak {
public:
  Peak(Team& team, double slice_s)
      : team_(team), amounts_(choose_amounts(inputs_, team.size(), slice_s)),
        expected_(replay(inputs_, amounts_.iterations)),
        expected_chain_(replay(inputs_, amounts_.chain_fmas()).x[0]), observed_(team.size()),
        final_(team.size()), mismatches_(team.size()) {}

  void measure(Program& program) {
    auto& turns = program.turns;
    for (auto& samples : observed_)
      samples.reserve(max_samples(team_.size()));
    team_.run([&](std::size_t member) {
      sample(member); // warms up, and lets the clock frequency settle
      observed_[member].clear();
      turns.pass(team_, member);
      const auto deadline = Clock::now() + std::chrono::duration<double>(program.slice_s);
      if (member == 0)
        program.phase.begin();
      for (std::size_t done = 0;; ++done) {
        if (member == 0)
          last_ = done == max_samples(team_.size()) ||
                  (done >= min_samples && Clock::now() >= deadline);
        team_.barrier().wait();
        if (last_) {
          if (member == 0)
            program.phase.end();
          break;
        }
        sample(member);
        turns.pass(team_, member);
      }
    });
  }

  void report(Program& program) const {
    program.note("fma", has_fma ? "fused" : "separate");
    for (std::size_t i = 0; i < observed_[0].size(); ++i)
      report_sample(program, i);
    double distinct = 1;
    for (const auto& state : final_)
      distinct = std::min(distinct, distinct_fraction(state, inputs_.c));
    program.check("state_mismatches", std::accumulate(mismatches_.begin(), mismatches_.end(), 0.0));
    program.check("distinct_state", distinct);
  }

private:
  static constexpr std::size_t min_samples = 3;

  void report_sample(Program& program, std::size_t i) const {
    const auto fmas = amounts_.iterations * accumulators * lanes<Real> * team_.size();
    const auto flops = 2.0 * static_cast<double>(fmas);
    std::vector<Interval> intervals;
    std::vector<double> additions_s;
    std::vector<std::array<double, 2>> chains_s;
    for (const auto& samples : observed_) {
      intervals.push_back(samples[i].kernel);
      chains_s.push_back(samples[i].chain_s);
      additions_s.push_back(samples[i].additions_s);
    }
    program.add(sample_event("fma", i, elapsed_s(intervals))
                    .add("work", json::Object().add("flops", flops))
                    .add("chain_fmas", amounts_.chain_fmas())
                    .add("chain_s", chains_s)
                    .add("add_ops", amounts_.additions())
                    .add("add_s", additions_s)
                    .add("vector_bits", vector_bits));
  }

  // Additions, chain, kernel, chain; the results are compared after all are done.
  void sample(std::size_t member) noexcept {
    Observed seen;
    const std::uint64_t addend = do_not_fold(member + 1);
    std::uint64_t sum = 0;
    seen.additions_s =
        timed([&] { sum = run_additions(0, addend, amounts_.addition_blocks); }).elapsed_s();

    State<Real> state = inputs_.start;
    Vector<Real> before, after;
    const auto chain = [&](Vector<Real>& end) {
      return timed([&] {
               end = run_chain<Real>(inputs_.start.x[0], inputs_.c, amounts_.chain_blocks);
             })
          .elapsed_s();
    };
    seen.chain_s[0] = chain(before);
    team_.barrier().wait();
    seen.kernel = timed([&] { run_throughput<Real>(state, inputs_.c, amounts_.iterations); });
    seen.chain_s[1] = chain(after);

    auto& wrong = mismatches_[member];
    wrong += sum != addend * amounts_.additions();
    wrong += mismatches<Real>(before, expected_chain_) + mismatches<Real>(after, expected_chain_);
    for (std::size_t k = 0; k < accumulators; ++k)
      wrong += mismatches<Real>(state.x[k], expected_.x[k]);
    final_[member] = state;
    observed_[member].push_back(seen);
  }

  Team& team_;
  const Inputs<Real> inputs_;
  const Amounts amounts_;
  const State<Real> expected_;                  // of the throughput kernel
  const Vector<Real> expected_chain_;           // of each chain
  std::vector<std::vector<Observed>> observed_; // per member and sample
  std::vector<State<Real>> final_;              // per member, of the last sample
  std::vector<std::size_t> mismatches_;         // per member, over all samples
  bool last_ = false;
};

template <class Real>
void measure_precision(Program& program) {
  Team team(program.cpus);
  program.hello(team);
  Peak<Real> peak(team, program.slice_s);
  peak.measure(program);
  peak.report(program);
}

struct Settings {
  bool fp64;
};

Settings prepare(Arguments& arguments) {
  return {.fp64 = arguments.choice("--precision", "fp64", {"fp64", "fp32"}) == "fp64"};
}

void measure(Program& program, const Settings& settings) {
  if (settings.fp64)
    measure_precision<double>(program);
  else
    measure_precision<float>(program);
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("peak", argc, argv, prepare, measure);
}
