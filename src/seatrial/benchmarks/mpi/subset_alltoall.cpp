// mpi.subset-alltoall: an all-to-all exchange within each subset of the ranks.
//
// Subsets exchange one after another, or all at once. The time of a subset is that of its slowest
// rank. Every exchange of a sample sends the same data; the last one is verified.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "clock.hpp"
#include "clock_step.hpp"
#include "failure.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/waiting.hpp"
#include "pages.hpp"
#include "round_order.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 4e-3;
constexpr std::size_t min_rounds = 5;
constexpr std::uint64_t trial_exchanges = 2;

struct Settings {
  std::size_t bytes;
  int members;
  bool is_spread;  // members are ranks / members apart, not neighbours
  bool is_at_once; // all subsets exchange at once
  bool shares;     // ranks share CPUs
};

Settings prepare(Arguments& arguments) {
  return {.bytes = arguments.number<std::size_t>("--bytes", 64 << 10, 1, std::size_t{1} << 30),
          .members = arguments.number("--members", 2, 2, mpi::CommonArguments::max_ranks),
          .is_spread = arguments.flag("--spread", false),
          .is_at_once = arguments.flag("--at-once", false),
          .shares = arguments.flag("--shares", false)};
}

// Ranks that exchange at the same time: all subsets, or one.
struct Turn {
  std::vector<int> subsets;
  std::uint64_t exchanges;                             // per sample
  std::vector<std::vector<double>> elapsed_s_by_round; // on rank 0, of each of `subsets`
};

class Subsets {
public:
  Subsets(mpi::Program& program, const Settings& settings)
      : settings_(settings), count_(program.ranks / settings.members),
        subset_(subset_of(program.rank)),
        sent_(settings.bytes * static_cast<std::size_t>(settings.members), false),
        received_(settings.bytes * static_cast<std::size_t>(settings.members), false) {
    MPI_Comm_split(MPI_COMM_WORLD, subset_ < 0 ? MPI_UNDEFINED : subset_, program.rank, &comm_);
    if (subset_ >= 0)
      MPI_Comm_rank(comm_, &member_);
  }

  ~Subsets() {
    if (comm_ != MPI_COMM_NULL)
      MPI_Comm_free(&comm_);
  }

  Subsets(const Subsets&) = delete;
  Subsets& operator=(const Subsets&) = delete;

  [[nodiscard]] std::vector<Turn> turns() const {
    std::vector<int> all(static_cast<std::size_t>(count_));
    std::iota(all.begin(), all.end(), 0);
    std::vector<Turn> turns;
    if (settings_.is_at_once)
      turns.push_back({.subsets = all, .exchanges = 0, .elapsed_s_by_round = {}});
    else
      for (const int each : all)
        turns.push_back({.subsets = {each}, .exchanges = 0, .elapsed_s_by_round = {}});
    return turns;
  }

  // One sample, with verified data; on rank 0 the time of each subset of the turn.
  std::vector<double> run(const Turn& turn, std::uint64_t exchanges) {
    ++sample_;
    const bool is_mine = std::ranges::find(turn.subsets, subset_) != turn.subsets.end();
    if (is_mine)
      fill();
    if (settings_.shares)
      mpi::sleeping_barrier();
    else
      MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    const int count = static_cast<int>(settings_.bytes);
    for (std::uint64_t i = 0; is_mine && i < exchanges; ++i)
      MPI_Alltoall(sent_.data(), count, MPI_BYTE, received_.data(), count, MPI_BYTE, comm_);
    const double mine_s = is_mine ? seconds(Clock::now() - start) : 0;
    if (is_mine)
      compare();
    const auto of_ranks = mpi::gather({mine_s});
    std::vector<double> slowest_s(static_cast<std::size_t>(count_));
    for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
      if (const int subset = subset_of(static_cast<int>(rank)); subset >= 0) {
        auto& slowest = slowest_s[static_cast<std::size_t>(subset)];
        slowest = std::max(slowest, of_ranks[rank]);
      }
    std::vector<double> found;
    for (const int subset : turn.subsets)
      found.push_back(slowest_s[static_cast<std::size_t>(subset)]);
    return found;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  // -1 for a rank that is left over.
  [[nodiscard]] int subset_of(int rank) const {
    if (rank >= count_ * settings_.members)
      return -1;
    return settings_.is_spread ? rank % count_ : rank / settings_.members;
  }

  [[nodiscard]] std::uint64_t pattern_of(int from, int to) const {
    return mpi::pattern_word(sample_ << 24 | static_cast<std::uint64_t>(subset_ + 1),
                             static_cast<std::size_t>(from) << 24 | static_cast<std::size_t>(to));
  }

  std::byte* block(const Pages& memory, int member) const {
    return memory.data() + static_cast<std::size_t>(member) * settings_.bytes;
  }

  void fill() {
    for (int other = 0; other < settings_.members; ++other) {
      mpi::fill({block(sent_, other), settings_.bytes}, pattern_of(member_, other));
      mpi::poison({block(received_, other), settings_.bytes}, pattern_of(other, member_));
    }
  }

  void compare() {
    for (int other = 0; other < settings_.members; ++other)
      wrong_ +=
          mpi::wrong_bytes({block(received_, other), settings_.bytes}, pattern_of(other, member_));
  }

  const Settings& settings_;
  int count_;
  int subset_;
  Pages sent_;
  Pages received_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int member_ = 0; // rank within the subset
  std::uint64_t sample_ = 0;
  std::size_t wrong_ = 0;
};

// On rank 0: a sample for each subset and round, and the slowest subset of each round.
void report(mpi::Program& program, const Settings& settings, const std::vector<Turn>& turns) {
  const auto members = static_cast<std::uint64_t>(settings.members);
  const auto sample = [&](const char* series, const Turn& turn, std::size_t at, std::size_t round) {
    return sample_event(series, round, turn.elapsed_s_by_round[round][at])
        .add("work", json::Object().add("bytes",
                                        turn.exchanges * members * (members - 1) * settings.bytes));
  };
  for (const auto& turn : turns)
    for (std::size_t at = 0; at < turn.subsets.size(); ++at)
      for (std::size_t round = 0; round < turn.elapsed_s_by_round.size(); ++round)
        program.add(sample("bandwidth", turn, at, round)
                        .add("point", json::Object().add("subset", turn.subsets[at])));
  struct Place {
    const Turn* turn;
    std::size_t at;
  };
  std::vector<Place> places;
  for (const auto& turn : turns)
    for (std::size_t at = 0; at < turn.subsets.size(); ++at)
      places.push_back({&turn, at});
  for (std::size_t round = 0; round < turns.front().elapsed_s_by_round.size(); ++round) {
    const auto [turn, at] = *std::ranges::max_element(places, {}, [&](const Place& place) {
      return place.turn->elapsed_s_by_round[round][place.at] /
             static_cast<double>(place.turn->exchanges);
    });
    program.add(sample("slowest", *turn, at, round).add("subset", turn->subsets[at]));
  }
}

void measure(mpi::Program& program, const Settings& settings) {
  mpi::reduce_timer_slack();
  if (settings.members > program.ranks)
    throw Failure(Exit::usage, "--members exceeds the number of ranks");
  mpi::require_memory(2 * static_cast<std::uint64_t>(settings.members) * settings.bytes);
  Subsets subsets(program, settings);
  auto turns = subsets.turns();
  const auto longest = [&](const Turn& turn, std::uint64_t exchanges) {
    return mpi::of_first(std::ranges::max(subsets.run(turn, exchanges)));
  };
  for (auto& turn : turns) {
    program.at("warm-up of subset " + std::to_string(turn.subsets.front()));
    longest(turn, trial_exchanges);
    turn.exchanges = repetitions_lasting(sample_s, mpi::of_first(clock_step_s()), trial_exchanges,
                                         [&](auto n) { return longest(turn, n); });
  }
  mpi::Rounds rounds(program, min_rounds);
  for (std::size_t round = 0; rounds.another(round); ++round)
    for (const auto place : round_order(turns.size(), round)) {
      auto& turn = turns[place];
      program.at("subset " + std::to_string(turn.subsets.front()) + ", round " +
                 std::to_string(round));
      turn.elapsed_s_by_round.push_back(subsets.run(turn, turn.exchanges));
    }
  if (program.rank == 0)
    report(program, settings, turns);
  program.check("wrong_bytes", mpi::sum(static_cast<double>(subsets.wrong())));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("subset-alltoall", argc, argv, prepare, measure);
}
