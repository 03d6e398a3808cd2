// cpu.gemm: the product of two square matrices with the site's BLAS; every product is verified.
//
// The library is loaded at run time and creates its own threads, which inherit the CPU mask of the
// thread that loads it. So the main thread loads it while it may run on all CPUs to be used, calls
// it once, and then binds each of its threads.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "blas.hpp"
#include "clock.hpp"
#include "library_threads.hpp"
#include "matrix_product.hpp"
#include "optimisation_barrier.hpp"
#include "pages.hpp"
#include "program.hpp"
#include "tasks.hpp"
#include "team.hpp"
#include "unrolled.hpp"

namespace {

using namespace seatrial;

struct Settings {
  std::string blas;
  BlasSpelling spelling;
  bool fp64;
  std::size_t n;
  bool bound;
  double longest_s;                 // skip if a product would take longer; 0: never
  std::string why;                  // why this library was chosen
  std::vector<std::string> without; // environment variables to unset
};

// The time of a chain of dependent additions: one cycle each on every current core. Between
// registers, since Golden Cove folds additions of small constants. The minimum of several tries,
// each far shorter than a scheduler time slice.
constexpr std::uint64_t chain_blocks = 4096;
constexpr std::size_t chain_block = 16;

[[gnu::noinline]] double time_of_additions() noexcept {
  constexpr int tries = 4;
  double fastest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < tries; ++i) {
    std::uint64_t x = do_not_fold(std::uint64_t{0});
    const std::uint64_t y = do_not_fold(std::uint64_t{1});
    const auto chain = timed([&] {
      for (auto blocks = chain_blocks; blocks != 0; --blocks)
        unrolled<chain_block>([&](std::size_t) {
          x += y;
          asm volatile("" : "+r"(x)); // keeps the compiler from merging them into a multiplication
        });
    });
    do_not_eliminate(x);
    fastest = std::min(fastest, chain.elapsed_s());
  }
  return fastest;
}

struct Measured {
  double elapsed_s;
  double cpu_s;              // of all threads of the process
  std::vector<double> add_s; // by member of the team
};

template <class Real>
class Gemm {
public:
  Gemm(Program& program, const Settings& settings, Team& team, const Blas& blas,
       LibraryThreads& workers, std::vector<int> all_cpus)
      : program_(program), settings_(settings), team_(team), workers_(workers),
        routine_(blas.gemm<Real>()), a_(settings.n, true), b_(settings.n, true),
        c_(settings.n, true), process_cpus_(std::move(all_cpus)), add_s_(team.size()) {
    fill(a_, 0);
    fill(b_, settings.n * settings.n);
  }

  void measure() {
    find_pace();
    // With a slow BLAS or on a busy machine, a repeat must not look like a hang.
    const auto first = is_slow_ ? tried() : settings_.n;
    product(first); // creates the library's threads
    workers_.find(team_.size() - 1, [&] { product(first); });
    if (workers_.are_recreated())
      threads_used_ = workers_.max_alive([&] { product(first); }) + 1;
    else if (workers_.ids().empty() && team_.size() > 1)
      throw Skip("this BLAS uses one thread, not " + std::to_string(team_.size()) +
                 ": threads=1 measures it");
    bind();
    ProductVerifier<Real> verifier(team_, a_.view(), b_.view());
    observe_clock();
    const auto deadline = Clock::now() + std::chrono::duration<double>(program_.slice_s);
    const auto most = most_samples(max_samples, program_.slice_s);
    program_.phase.begin();
    do {
      sample();
      row_error_ = worse(row_error_, verifier.row_error(c_.view()));
      element_error_ = worse(element_error_, verifier.element_error(c_.view()));
    } while (samples_.size() < (is_slow_ ? 1 : min_samples) ||
             (Clock::now() < deadline && samples_.size() < most));
    program_.phase.end();
  }

  void report() {
    for (std::size_t i = 0; i < samples_.size(); ++i)
      program_.add(sample_event("gemm", i, samples_[i].elapsed_s)
                       .add("work", json::Object().add("flops", flops()))
                       .add("cpu_s", samples_[i].cpu_s)
                       .add("add_ops", chain_blocks * chain_block)
                       .add("add_s", samples_[i].add_s));
    program_.note("huge_pages", c_.pages.huge_verdict());
    program_.note("binding_of_blas", binding());
    const auto found = masks();
    program_.note("cpus_of_blas", found);
    program_.check("row_error", row_error_);
    program_.check("element_error", element_error_);
    program_.check("distinct_inputs", std::min(distinct_share(a_), distinct_share(b_)));
    program_.check("blas_threads", static_cast<double>(threads_used_));
    program_.check("unbound_threads", static_cast<double>(unbound(found)));
    program_.check("crowded_threads", static_cast<double>(crowded(found)));
  }

private:
  static constexpr std::size_t min_samples = 3;
  static constexpr std::size_t max_samples = 200;
  static constexpr double slow_s = 2;

  [[nodiscard]] double flops() const noexcept {
    const auto n = static_cast<double>(settings_.n);
    return 2 * n * n * n;
  }

  [[nodiscard]] static double worse(double one, double other) noexcept {
    return std::isnan(one) || other <= one ? one : other;
  }

  // Each team member first-touches its columns.
  void fill(const Matrix<Real>& matrix, std::uint64_t seed) {
    team_.run([&](std::size_t member) {
      const auto [begin, end] = part_of(matrix.n, member, team_.size());
      for (std::size_t j = begin; j < end; ++j) {
        std::uint64_t index = seed + j * matrix.n;
        for (auto& value : matrix.column(j))
          value = random_input<Real>(index++);
      }
    });
  }

  // Fills C with NaN, so that elements that are not written, or depend on old values, are detected.
  void poison() {
    team_.run([&](std::size_t member) {
      const auto [begin, end] = part_of(c_.n, member, team_.size());
      for (std::size_t j = begin; j < end; ++j)
        std::ranges::fill(c_.column(j), std::numeric_limits<Real>::quiet_NaN());
    });
  }

  // C <- A B of the leading n x n parts.
  void product(std::size_t size) const {
    const auto n = static_cast<std::int64_t>(size);
    const auto lead = static_cast<std::int64_t>(a_.lead);
    const Real one = 1;
    const Real zero = 0;
    routine_("N", "N", &n, &n, &n, &one, a_.data, &lead, b_.data, &lead, &zero, c_.data, &lead, 1,
             1);
  }

  [[nodiscard]] std::size_t tried() const noexcept {
    return std::min<std::size_t>(settings_.n, 768);
  }

  // Whether a product will take long, from a smaller one.
  void find_pace() {
    const double ratio = static_cast<double>(settings_.n) / static_cast<double>(tried());
    product(tried());
    const double expected_s = timed([&] { product(tried()); }).elapsed_s() * ratio * ratio * ratio;
    is_slow_ = expected_s > slow_s;
    if (settings_.longest_s > 0 && expected_s > settings_.longest_s)
      throw Skip("one product would take about " + std::to_string(std::lround(expected_s)) +
                 " s with this BLAS; set a smaller n");
  }

  // Binds each library thread to its own CPU, or all threads to the team's CPUs if the library
  // creates new ones each time: they inherit the calling thread's mask.
  void bind() {
    if (!settings_.bound) {
      caller_ = process_cpus_;
    } else if (workers_.are_recreated()) {
      caller_ = program_.cpus;
    } else {
      caller_ = {program_.cpus[0]};
      for (std::size_t i = 0; i < workers_.ids().size() && i + 1 < program_.cpus.size(); ++i)
        allow_cpus(workers_.ids()[i], {program_.cpus[i + 1]});
    }
  }

  void sample() {
    poison();
    allow_cpus(0, caller_);
    const LibraryThreads::Snapshot start(workers_);
    const double elapsed_s = timed([&] { product(settings_.n); }).elapsed_s();
    const LibraryThreads::Snapshot end(workers_);
    if (!workers_.are_recreated())
      count_threads(LibraryThreads::busiest(start, end));
    caller_bound_to_ = allowed_cpus(gettid());
    bind_to(program_.cpus[0]);
    const auto before = add_s_;
    observe_clock();
    auto fastest = add_s_;
    for (std::size_t member = 0; member < fastest.size(); ++member)
      fastest[member] = std::min(fastest[member], before[member]);
    samples_.push_back({elapsed_s, end.process_s - start.process_s, std::move(fastest)});
  }

  // The maximum over all samples: on a busy machine a thread may hardly get to run.
  void count_threads(const std::vector<pid_t>& computed) {
    threads_used_ = std::max(threads_used_, computed.size() + 1);
    for (const auto task : computed)
      if (std::ranges::find(workers_.ids(), task) == workers_.ids().end())
        late_threads_.insert(task);
  }

  void observe_clock() {
    team_.run([&](std::size_t member) { add_s_[member] = time_of_additions(); });
  }

  // The CPUs of each library thread, as reported by the kernel; the caller's first, read right
  // after a product, since the library may have changed it.
  [[nodiscard]] std::vector<std::vector<int>> masks() const {
    std::vector<std::vector<int>> found{caller_bound_to_};
    for (const auto task : workers_.ids())
      found.push_back(allowed_cpus(task));
    return found;
  }

  // Threads that should be bound to one CPU and are not.
  [[nodiscard]] std::size_t unbound(const std::vector<std::vector<int>>& masks) const {
    if (!settings_.bound || workers_.are_recreated())
      return 0;
    std::size_t count = late_threads_.size();
    for (std::size_t i = 0; i < masks.size(); ++i)
      count += i >= program_.cpus.size() || masks[i] != std::vector{program_.cpus[i]};
    return count;
  }

  // Threads left without a CPU if each takes one of its allowed CPUs, starting with the most
  // restricted threads: threads that inherited the mask of a bound thread share its CPU.
  [[nodiscard]] static std::size_t crowded(std::vector<std::vector<int>> masks) {
    std::ranges::sort(masks, {}, &std::vector<int>::size);
    std::unordered_set<int> taken;
    std::size_t without = 0;
    for (const auto& mask : masks)
      without += std::ranges::none_of(mask, [&](int cpu) { return taken.insert(cpu).second; });
    return without;
  }

  [[nodiscard]] std::string_view binding() const {
    if (!settings_.bound)
      return "none";
    return workers_.are_recreated() ? "all threads to these CPUs: new ones in each product"
                                    : "each thread to a CPU";
  }

  // The fraction of sampled matrix elements that are distinct and not zero.
  [[nodiscard]] double distinct_share(const Matrix<Real>& matrix) const {
    constexpr std::size_t most = 4096;
    const auto n = matrix.n;
    const auto looked_at = std::min(most, n * n);
    std::unordered_set<Real> seen;
    for (std::size_t k = 0; k < looked_at; ++k) {
      const auto index = static_cast<std::size_t>(
          static_cast<double>(k) / static_cast<double>(looked_at) * static_cast<double>(n * n));
      const auto value = matrix.column(index / n)[index % n];
      if (std::isfinite(value) && value != 0)
        seen.insert(value);
    }
    return static_cast<double>(seen.size()) / static_cast<double>(looked_at);
  }

  Program& program_;
  const Settings& settings_;
  Team& team_;
  LibraryThreads& workers_;
  const Blas::Gemm<Real> routine_;
  const Matrix<Real> a_, b_, c_;
  const std::vector<int> process_cpus_; // the CPUs given to the process
  std::vector<int> caller_;             // CPUs that the calling thread may run on
  std::vector<int> caller_bound_to_;    // the same as read back
  std::vector<double> add_s_;           // by member, latest measurement
  std::vector<Measured> samples_;
  double row_error_ = 0;
  double element_error_ = 0;
  std::size_t threads_used_ = 0;
  bool is_slow_ = false;
  std::unordered_set<pid_t> late_threads_; // threads that computed and were created after binding
};

// Unsets environment variables; returns those that were set, with their values.
[[nodiscard]] std::string unset_variables(const std::vector<std::string>& names) {
  std::string found;
  for (const auto& name : names)
    if (const char* value = std::getenv(name.c_str())) {
      found += (found.empty() ? "" : " ") + name + "=" + value;
      unsetenv(name.c_str());
    }
  return found;
}

[[nodiscard]] std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    items.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

template <class Real>
void measure_precision(Program& program, const Settings& settings) {
  const auto everywhere = bound_cpus();
  Team team(program.cpus);
  LibraryThreads workers;
  allow_cpus(0, settings.bound ? program.cpus : everywhere);
  const auto left_out = unset_variables(settings.without);
  const Blas blas(settings.blas, settings.spelling, program.cpus.size());
  program.hello(team);
  program.note("blas_path", settings.blas);
  if (!settings.why.empty())
    program.note("blas_why", settings.why);
  if (!left_out.empty())
    program.note("left_out", left_out);
  for (const auto& [key, value] :
       {std::pair{"blas_version", blas.version()}, std::pair{"blas_core", blas.core()}})
    if (!value.empty())
      program.note(key, value);
  if (const auto threads = blas.threads(); threads > 0)
    program.note("blas_says_threads", threads);
  Gemm<Real> gemm(program, settings, team, blas, workers, everywhere);
  gemm.measure();
  gemm.report();
}

Settings prepare(Arguments& arguments) {
  return {.blas = std::string(arguments.required("--blas")),
          .spelling = {.prefix = std::string(arguments.find("--blas-prefix").value_or("")),
                       .suffix = std::string(arguments.find("--blas-suffix").value_or(""))},
          .fp64 = arguments.choice("--precision", "fp64", {"fp64", "fp32"}) == "fp64",
          .n = arguments.number<std::size_t>("--n", 1024, 64, 1u << 20),
          .bound = arguments.choice("--binding", "bound", {"bound", "none"}) == "bound",
          .longest_s = arguments.number<double>("--longest", 0.0, 0.0, 1e6),
          .why = std::string(arguments.find("--blas-why").value_or("")),
          .without = split(arguments.find("--without").value_or(""))};
}

void measure(Program& program, const Settings& settings) {
  if (settings.fp64)
    measure_precision<double>(program, settings);
  else
    measure_precision<float>(program, settings);
}

} // namespace

int main(int argc, char** argv) {
  if (const auto status = seatrial::described_with_blas("gemm", argc, argv))
    return *status;
  return seatrial::run_program("gemm", argc, argv, prepare, measure);
}
