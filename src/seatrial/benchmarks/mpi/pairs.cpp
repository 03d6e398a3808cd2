// mpi.pairs: latency and bandwidth between all pairs of ranks, in the rounds of a tournament.
//
// In a visit the two ranks of a pair run a ping-pong in short bursts while idle ranks sleep;
// `--at-once` pairs of a round are visited at the same time. A sweep visits every pair once, and
// there are several sweeps: a temporary disturbance of the machine affects some visits of many
// pairs, while a slow pair is slow in all of its visits. A sample is a visit. The two ranks only
// use MPI_Send and MPI_Recv on MPI_COMM_WORLD, so that a tool that wraps these sees every message.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "clock_step.hpp"
#include "mpi/cpu_pair.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/tournament.hpp"
#include "mpi/waiting.hpp"
#include "pages.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t min_sweeps = 5;
constexpr std::size_t min_bursts = 5;
constexpr double burst_s = 40e-6;
constexpr double long_visits = 8; // times that of a visit: slow links need no further bursts then
constexpr int ping_tag = 1;
constexpr int control_tag = 2;

// A message size that is measured for every pair.
struct Kind {
  const char* series;
  std::size_t bytes;
  double visit_s; // time for bursts; checking the data is extra
};

struct Settings {
  std::vector<Kind> kinds;
  std::vector<int> rounds; // rounds of the tournament to run
  std::uint64_t seed;      // of its seats
  int at_once;
  bool shares; // ranks share CPUs
};

Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 30;
  constexpr int most = mpi::CommonArguments::max_ranks;
  return {.kinds = {{.series = "latency",
                     .bytes = arguments.number<std::size_t>("--latency", 8, 1, largest),
                     .visit_s = 0.5e-3},
                    {.series = "bandwidth",
                     .bytes = arguments.number<std::size_t>("--bandwidth", 1 << 20, 1, largest),
                     .visit_s = 1.5e-3}},
          .rounds = arguments.numbers<int>("--rounds", 0, most),
          .seed = arguments.number<std::uint64_t>("--seed", 1, 0, std::uint64_t{1} << 53),
          .at_once = arguments.number("--at-once", 1, 1, most),
          .shares = arguments.flag("--shares", false)};
}

// The result of a visit on the lower rank of the pair: the times of its bursts.
struct Visit {
  std::uint64_t trips; // round trips per burst
  std::size_t bursts;
  double median_s;
  double best_s;
  double worst_s;
};

struct Buffers {
  std::byte* sent;
  std::byte* received;
};

class Player {
public:
  // With `cpu_pair` the two active ranks are bound to these CPUs.
  Player(int rank, Buffers buffers, std::optional<mpi::CpuPair> cpu_pair)
      : rank_(rank), buffers_(buffers), cpu_pair_(std::move(cpu_pair)) {}

  // On both ranks of the pair: runs bursts until the time of a visit is over, then verifies the
  // data.
  std::optional<Visit> visit(std::pair<int, int> pair, const Kind& kind, std::uint64_t seed) {
    const bool leads = rank_ == pair.first;
    if (cpu_pair_)
      cpu_pair_->bind(leads);
    other_ = leads ? pair.second : pair.first;
    bytes_ = static_cast<int>(kind.bytes);
    const auto mine = 2 * seed + (leads ? 0u : 1u);
    mpi::fill({buffers_.sent, kind.bytes}, mine);
    mpi::poison({buffers_.received, kind.bytes}, mine ^ 1);
    std::optional<Visit> found;
    if (leads)
      found = lead(kind.visit_s);
    else
      follow();
    wrong_ += mpi::wrong_bytes({buffers_.received, kind.bytes}, mine ^ 1);
    if (cpu_pair_)
      cpu_pair_->restore();
    return found;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  Visit lead(double visit_s) {
    const auto trips = repetitions_lasting(burst_s, clock_step_s(), 1, [&](std::uint64_t n) {
      announce(n);
      const double first_s = run_trips(n); // the other rank may still have been asleep
      if (first_s > visit_s)
        return first_s;
      announce(n);
      return std::min(first_s, run_trips(n));
    });
    std::vector<double> elapsed_s;
    const auto begin = Clock::now();
    for (double since_s = 0;
         since_s < visit_s || (elapsed_s.size() < min_bursts && since_s < long_visits * visit_s);
         since_s = seconds(Clock::now() - begin)) {
      announce(trips);
      elapsed_s.push_back(run_trips(trips));
    }
    announce(0);
    std::ranges::sort(elapsed_s);
    return {.trips = trips,
            .bursts = elapsed_s.size(),
            .median_s = elapsed_s[elapsed_s.size() / 2],
            .best_s = elapsed_s.front(),
            .worst_s = elapsed_s.back()};
  }

  // Announces the number of trips that follow, 0 at the end; returns when the other rank has it.
  void announce(std::uint64_t trips) {
    MPI_Send(&trips, 1, MPI_UINT64_T, other_, control_tag, MPI_COMM_WORLD);
    if (trips != 0)
      MPI_Recv(nullptr, 0, MPI_BYTE, other_, control_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  double run_trips(std::uint64_t trips) {
    const auto start = Clock::now();
    for (std::uint64_t i = 0; i < trips; ++i) {
      MPI_Send(buffers_.sent, bytes_, MPI_BYTE, other_, ping_tag, MPI_COMM_WORLD);
      MPI_Recv(buffers_.received, bytes_, MPI_BYTE, other_, ping_tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
    }
    return seconds(Clock::now() - start);
  }

  void follow() {
    for (;;) {
      std::uint64_t trips = 0;
      MPI_Recv(&trips, 1, MPI_UINT64_T, other_, control_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (trips == 0)
        return;
      MPI_Send(nullptr, 0, MPI_BYTE, other_, control_tag, MPI_COMM_WORLD);
      for (std::uint64_t i = 0; i < trips; ++i) {
        MPI_Recv(buffers_.received, bytes_, MPI_BYTE, other_, ping_tag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(buffers_.sent, bytes_, MPI_BYTE, other_, ping_tag, MPI_COMM_WORLD);
      }
    }
  }

  int rank_;
  Buffers buffers_;
  std::optional<mpi::CpuPair> cpu_pair_;
  int other_ = 0;
  int bytes_ = 0;
  std::size_t wrong_ = 0;
};

// Runs all visits of one round with one message size, `at_once` at a time.
void run_round(mpi::Program& program, Player& player, const Settings& settings,
               const mpi::Tournament& tournament, int round, std::size_t kind, std::size_t sweep,
               std::vector<double>& found) {
  const auto pairs = tournament.pairs(round);
  const auto at_once = static_cast<std::size_t>(settings.at_once);
  const auto& [series, bytes, visit_s] = settings.kinds[kind];
  for (std::size_t first = 0; first < pairs.size(); first += at_once) {
    const auto end =
        pairs.begin() + static_cast<std::ptrdiff_t>(std::min(first + at_once, pairs.size()));
    const auto mine = std::find_if(
        pairs.begin() + static_cast<std::ptrdiff_t>(first), end, [&](const auto& pair) {
          return pair.first == program.rank || pair.second == program.rank;
        });
    if (mine == end) {
      mpi::sleeping_barrier(visit_s);
      continue;
    }
    program.at(std::string(series) + " between ranks " + std::to_string(mine->first) + " and " +
               std::to_string(mine->second));
    const auto seed =
        mpi::pattern_word(sweep, static_cast<std::size_t>(mine->first) * 65537 + kind) >> 1;
    if (const auto visit = player.visit(*mine, settings.kinds[kind], seed))
      found.insert(found.end(),
                   {static_cast<double>(mine->first), static_cast<double>(mine->second),
                    static_cast<double>(kind), static_cast<double>(sweep),
                    static_cast<double>(visit->trips), static_cast<double>(visit->bursts),
                    visit->median_s, visit->best_s, visit->worst_s, static_cast<double>(round)});
    program.at("waiting for other pairs");
    mpi::sleeping_barrier();
  }
}

// On rank 0: adds a sample for each visit, from the rows that `run_round` appended.
void report(mpi::Program& program, const Settings& settings,
            const std::vector<std::vector<double>>& all) {
  constexpr std::size_t columns = 10;
  std::vector<std::array<double, columns>> visits;
  for (const auto& of_rank : all)
    for (auto row = of_rank.begin(); row != of_rank.end(); row += columns)
      std::copy_n(row, columns, visits.emplace_back().begin());
  std::ranges::sort(visits); // sort by pair, size and sweep
  for (const auto& v : visits) {
    const auto& kind = settings.kinds[static_cast<std::size_t>(v[2])];
    const auto trips = static_cast<std::uint64_t>(v[4]);
    program.add(
        sample_event(kind.series, static_cast<std::size_t>(v[3]), v[6])
            .add("point",
                 json::Object().add("a", static_cast<int>(v[0])).add("b", static_cast<int>(v[1])))
            .add("work", json::Object().add("ops", 2 * trips).add("bytes", 2 * trips * kind.bytes))
            .add("best_s", v[7])
            .add("worst_s", v[8])
            .add("bursts", static_cast<std::uint64_t>(v[5]))
            .add("round", static_cast<int>(v[9])));
  }
}

// Which pairs of all that there are this run measures: those of `rounds` of the tournament.
void note_sampling(mpi::Program& program, const Settings& settings,
                   const mpi::Tournament& tournament) {
  const auto ranks = static_cast<std::uint64_t>(program.ranks);
  std::vector<std::uint64_t> partners(ranks);
  for (const int round : settings.rounds)
    for (const auto& [a, b] : tournament.pairs(round)) {
      ++partners[static_cast<std::size_t>(a)];
      ++partners[static_cast<std::size_t>(b)];
    }
  const auto [least, most] = std::ranges::minmax(partners);
  program.note(
      "sampling",
      json::Object()
          .add("seed", settings.seed)
          .add("rounds", settings.rounds.size())
          .add("of_rounds", tournament.rounds())
          .add("pairs", std::accumulate(partners.begin(), partners.end(), std::uint64_t{0}) / 2)
          .add("of_pairs", ranks * (ranks - 1) / 2)
          .add("least_partners", least)
          .add("most_partners", most));
}

void measure(mpi::Program& program, const Settings& settings) {
  mpi::reduce_timer_slack();
  const auto largest = std::ranges::max(settings.kinds, {}, &Kind::bytes).bytes;
  mpi::require_memory(2 * largest);
  // No huge pages: some ranks would get them and others not, which would then look slower than they
  // are.
  const Pages sent(largest, false);
  const Pages received(largest, false);
  std::optional<mpi::CpuPair> cpu_pair;
  if (settings.shares && settings.at_once == 1) {
    cpu_pair.emplace();
    program.note("seats", cpu_pair->cpus());
  }
  Player player(program.rank, {sent.data(), received.data()}, std::move(cpu_pair));
  const mpi::Tournament tournament(program.ranks, settings.seed);
  for (const int round : settings.rounds)
    if (round >= tournament.rounds())
      throw Failure(Exit::usage,
                    "--rounds: no such round in the tournament: " + std::to_string(round));
  if (program.rank == 0)
    note_sampling(program, settings, tournament);
  std::vector<double> found;
  mpi::Rounds sweeps(program, min_sweeps);
  for (std::size_t sweep = 0; sweeps.another(sweep); ++sweep) {
    auto rounds = settings.rounds; // in a different order each time, the same on all ranks
    std::ranges::sort(rounds, {}, [&](int round) {
      return mpi::pattern_word(sweep + 1, static_cast<std::size_t>(round));
    });
    for (std::size_t kind = 0; kind < settings.kinds.size(); ++kind)
      for (const int round : rounds)
        run_round(program, player, settings, tournament, round, kind, sweep, found);
  }
  report(program, settings, mpi::gather_lists(found));
  program.check("wrong_bytes", mpi::sum(static_cast<double>(player.wrong())));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("pairs", argc, argv, prepare, measure);
}
