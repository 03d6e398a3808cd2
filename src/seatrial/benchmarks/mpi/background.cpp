// mpi.background: the latency between two ranks while all others exchange data.
//
// Ranks 0 and `ranks` / 2 play ping-pong. The others, in pairs i and i + ranks / 2, are idle in one
// sample, and in the next exchange windows of messages until the two have finished: quiet and
// loaded samples alternate, so that a disturbance of the machine affects both.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clock.hpp"
#include "mpi/cpu_pair.hpp"
#include "mpi/exchange.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/waiting.hpp"
#include "pages.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t min_rounds = 5;
constexpr std::size_t max_idle_rounds = 10;
constexpr std::uint64_t max_growth = 16; // growth limit of a sample if the load starts too late
constexpr std::uint64_t trial_trips = 8;
constexpr int ping_tag = 1;
constexpr int order_tag = 2;

struct Settings {
  std::size_t bytes;
  std::size_t background_bytes;
  std::size_t window;
  double sample_s;
  bool shares; // ranks share CPUs
};

Settings prepare(Arguments& arguments) {
  constexpr std::size_t largest = std::size_t{1} << 30;
  return {.bytes = arguments.number<std::size_t>("--bytes", 8, 1, largest),
          .background_bytes = arguments.number<std::size_t>("--background", 1 << 20, 1, largest),
          .window = arguments.number<std::size_t>("--window", 4, 1, 1 << 16),
          .sample_s = arguments.number("--sample", 5e-3, 1e-6, 3600.0),
          .shares = arguments.flag("--shares", false)};
}

std::uint64_t pattern_of(std::uint64_t seed, int rank) {
  return seed << 24 | static_cast<std::uint64_t>(rank + 1);
}

// One of the two ping-pong ranks.
class Player {
public:
  Player(bool leads, int rank, int other, std::size_t bytes)
      : leads_(leads), rank_(rank), other_(other), bytes_(bytes), sent_(bytes, false),
        received_(bytes, false) {}

  // The time of all trips, with verified data.
  double run(std::uint64_t seed, std::uint64_t trips) {
    mpi::fill({sent_.data(), bytes_}, pattern_of(seed, rank_));
    mpi::poison({received_.data(), bytes_}, pattern_of(seed, other_));
    run_trips(1); // until both have started
    const auto start = Clock::now();
    run_trips(trips);
    const double elapsed_s = seconds(Clock::now() - start);
    wrong_ += mpi::wrong_bytes({received_.data(), bytes_}, pattern_of(seed, other_));
    return elapsed_s;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  void run_trips(std::uint64_t trips) {
    for (std::uint64_t i = 0; i < trips; ++i) {
      if (leads_)
        send();
      MPI_Recv(received_.data(), static_cast<int>(bytes_), MPI_BYTE, other_, ping_tag,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!leads_)
        send();
    }
  }

  void send() {
    MPI_Send(sent_.data(), static_cast<int>(bytes_), MPI_BYTE, other_, ping_tag, MPI_COMM_WORLD);
  }

  bool leads_;
  int rank_;
  int other_;
  std::size_t bytes_;
  Pages sent_;
  Pages received_;
  std::size_t wrong_ = 0;
};

// One of the ranks that create the load.
class Streamer {
public:
  Streamer(bool leads, int rank, int other, const Settings& settings)
      : leads_(leads), rank_(rank), other_(other),
        exchange_(settings.background_bytes, settings.window) {}

  // Exchanges windows until the players have finished; returns how many. The lower rank decides
  // before each window, so that both stop after the same one.
  std::uint64_t run(std::uint64_t seed) {
    exchange_.fill(pattern_of(seed, rank_), pattern_of(seed, other_));
    exchange_.run(other_, 1);
    mpi::sleeping_barrier(); // the load has started
    MPI_Request finished = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &finished);
    std::uint64_t windows = 0;
    for (int order = 1;; ++windows) {
      if (leads_) {
        int done = 0;
        MPI_Test(&finished, &done, MPI_STATUS_IGNORE);
        order = done == 0 ? 1 : 0;
        MPI_Send(&order, 1, MPI_INT, other_, order_tag, MPI_COMM_WORLD);
      } else {
        MPI_Recv(&order, 1, MPI_INT, other_, order_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
      if (order == 0)
        break;
      exchange_.run(other_, 1);
    }
    MPI_Wait(&finished, MPI_STATUS_IGNORE);
    wrong_ += exchange_.wrong(pattern_of(seed, other_));
    return windows;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  bool leads_;
  int rank_;
  int other_;
  mpi::Exchange exchange_;
  std::size_t wrong_ = 0;
};

// The role of this rank. With an odd number of ranks the last one is idle.
class Role {
public:
  Role(int rank, int ranks, const Settings& settings) {
    const int half = ranks / 2;
    if (rank >= 2 * half)
      return;
    const bool leads = rank < half;
    const int other = leads ? rank + half : rank - half;
    if (rank % half == 0)
      player_.emplace(leads, rank, other, settings.bytes);
    else
      streamer_.emplace(leads, rank, other, settings);
    if (settings.shares && player_) {
      cpu_pair_.emplace();
      cpu_pair_->bind(leads);
    }
  }

  // Collective: the time of this many trips on the players, else 0.
  double quiet(std::uint64_t seed, std::uint64_t trips, double idle_s) {
    mpi::sleeping_barrier();
    const double elapsed_s = player_ ? player_->run(seed, trips) : 0;
    mpi::sleeping_barrier(player_ ? 0 : idle_s);
    return elapsed_s;
  }

  // The same under load.
  double loaded(std::uint64_t seed, std::uint64_t trips) {
    windows_ = 1;
    if (streamer_) {
      windows_ = streamer_->run(seed);
      return 0;
    }
    mpi::sleeping_barrier();
    const double elapsed_s = player_ ? player_->run(seed, trips) : 0;
    MPI_Request finished = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &finished);
    MPI_Wait(&finished, MPI_STATUS_IGNORE);
    return elapsed_s;
  }

  // Windows of the last loaded sample; 1 on a rank that does not stream.
  [[nodiscard]] std::uint64_t windows() const noexcept { return windows_; }
  [[nodiscard]] bool streams() const noexcept { return streamer_.has_value(); }

  [[nodiscard]] std::size_t wrong() const noexcept {
    return (player_ ? player_->wrong() : 0) + (streamer_ ? streamer_->wrong() : 0);
  }

private:
  std::optional<Player> player_;
  std::optional<Streamer> streamer_;
  std::optional<mpi::CpuPair> cpu_pair_;
  std::uint64_t windows_ = 0;
};

// The times of the two samples of a round, and their round trips.
struct Round {
  double quiet_s;
  std::uint64_t quiet_trips;
  double loaded_s; // 0 if some background rank exchanged nothing during the sample
  std::uint64_t loaded_trips;
  double background_bytes; // exchanged by all background ranks during the sample
};

std::size_t report(mpi::Program& program, const std::vector<Round>& rounds) {
  std::size_t loaded_samples = 0;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const auto& round = rounds[i];
    const auto quiet = json::Object().add("ops", 2 * round.quiet_trips);
    const auto loaded = json::Object().add("ops", 2 * round.loaded_trips);
    program.add(sample_event("quiet", i, round.quiet_s).add("work", quiet));
    if (round.loaded_s == 0)
      continue;
    ++loaded_samples;
    program.add(sample_event("loaded", i, round.loaded_s)
                    .add("work", loaded)
                    .add("background_B", round.background_bytes));
    program.add(
        sample_event("slowdown", i, round.loaded_s)
            .add("work", loaded)
            .add("quiet_one_way_s", round.quiet_s / static_cast<double>(2 * round.quiet_trips)));
  }
  return loaded_samples;
}

void measure(mpi::Program& program, const Settings& settings) {
  mpi::reduce_timer_slack();
  mpi::require_memory(2 * std::max(settings.window * settings.background_bytes, settings.bytes));
  Role role(program.rank, program.ranks, settings);
  std::uint64_t seed = 0;
  program.at("warm-up");
  role.quiet(++seed, trial_trips, 0);
  const auto trips_in_sample = [&](double trial_s) {
    return static_cast<std::uint64_t>(trial_trips * settings.sample_s / mpi::of_first(trial_s)) + 1;
  };
  const auto quiet_trips = trips_in_sample(role.quiet(++seed, trial_trips, 0));
  auto loaded_trips = trips_in_sample(role.loaded(++seed, trial_trips));
  const auto max_trips = max_growth * loaded_trips;

  std::vector<Round> rounds;
  std::size_t enough = 0; // rounds with load
  mpi::Rounds turn(program, min_rounds);
  while (rounds.size() < enough + max_idle_rounds && turn.another(enough)) {
    program.at("quiet sample " + std::to_string(rounds.size()));
    const double quiet_s = role.quiet(++seed, quiet_trips, settings.sample_s);
    program.at("loaded sample " + std::to_string(rounds.size()));
    const double loaded_s = role.loaded(++seed, loaded_trips);
    const bool is_loaded = mpi::sum(role.windows() == 0 ? 1 : 0) == 0;
    const double streamed = role.streams() ? static_cast<double>(role.windows()) : 0;
    rounds.push_back(
        {.quiet_s = quiet_s,
         .quiet_trips = quiet_trips,
         .loaded_s = is_loaded ? loaded_s : 0,
         .loaded_trips = loaded_trips,
         .background_bytes = mpi::sum(streamed) *
                             static_cast<double>(settings.window * settings.background_bytes)});
    if (is_loaded)
      ++enough;
    else
      loaded_trips = std::min(2 * loaded_trips, max_trips); // the players finished too soon
  }
  program.check("loaded_samples", static_cast<double>(report(program, rounds)));
  program.check("wrong_bytes", mpi::sum(static_cast<double>(role.wrong())));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("background", argc, argv, prepare, measure);
}
