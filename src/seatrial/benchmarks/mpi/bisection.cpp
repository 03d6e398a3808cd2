// mpi.bisection: the bandwidth between two halves of the ranks when all exchange at once.
//
// Rank i of one half and rank i of the other send each other windows of messages. The first
// bisection pairs rank i with i + ranks / 2, or the ranks on the nodes of --half with those on
// others; the rest assign ranks to halves at random, with a fixed seed. Samples of all bisections
// are interleaved. A sample ends with its slowest pair.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "clock.hpp"
#include "clock_step.hpp"
#include "failure.hpp"
#include "host_name.hpp"
#include "mpi/exchange.hpp"
#include "mpi/memory.hpp"
#include "mpi/mpi.hpp"
#include "mpi/pattern.hpp"
#include "mpi/program.hpp"
#include "mpi/rounds.hpp"
#include "mpi/waiting.hpp"
#include "round_order.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 4e-3;
constexpr std::size_t min_rounds = 5;
constexpr std::uint64_t trial_windows = 2;
constexpr int no_rank = -1;

struct Settings {
  std::size_t bytes;
  std::size_t window;
  std::size_t bisections;
  bool shares;                   // ranks share CPUs
  std::vector<std::string> half; // nodes of one half of the first bisection; empty: by rank
};

Settings prepare(Arguments& arguments) {
  return {.bytes = arguments.number<std::size_t>("--bytes", 1 << 20, 1, std::size_t{1} << 30),
          .window = arguments.number<std::size_t>("--window", 4, 1, 1 << 16),
          .bisections = arguments.number<std::size_t>("--bisections", 5, 1, 1 << 16),
          .shares = arguments.flag("--shares", false),
          .half = arguments.words("--half")};
}

// The ranks of one half, then those of the other.
struct Deal {
  std::vector<int> ranks;
  std::size_t first_half;

  // Pairs of a rank of each half; with halves of different sizes some ranks are left over.
  [[nodiscard]] std::size_t pairs() const {
    return std::min(first_half, ranks.size() - first_half);
  }

  // The partner of a rank; none for one that is left over.
  [[nodiscard]] int partner_of(int rank) const {
    const auto place = static_cast<std::size_t>(std::ranges::find(ranks, rank) - ranks.begin());
    if (place < pairs())
      return ranks[place + first_half];
    if (place >= first_half && place < first_half + pairs())
      return ranks[place - first_half];
    return no_rank;
  }
};

// Collective. Throws Skip on all ranks if the nodes of `half` have all ranks, or none.
Deal deal_by_nodes(int ranks, const std::vector<std::string>& half) {
  const int mine = std::ranges::find(half, host_name()) != half.end() ? 1 : 0;
  std::vector<int> is_in(static_cast<std::size_t>(ranks));
  MPI_Allgather(&mine, 1, MPI_INT, is_in.data(), 1, MPI_INT, MPI_COMM_WORLD);
  Deal dealt{.ranks = {}, .first_half = 0};
  for (const int wanted : {1, 0})
    for (int rank = 0; rank < ranks; ++rank)
      if (is_in[static_cast<std::size_t>(rank)] == wanted)
        dealt.ranks.push_back(rank);
  dealt.first_half = static_cast<std::size_t>(std::ranges::count(is_in, 1));
  if (dealt.pairs() == 0)
    throw Skip((dealt.first_half == 0 ? "no rank runs" : "all ranks run") +
               std::string(" on the nodes of `half`: there are no two halves"));
  return dealt;
}

Deal dealt_in(std::size_t bisection, int ranks, const std::vector<std::string>& half) {
  if (bisection == 0 && !half.empty())
    return deal_by_nodes(ranks, half);
  Deal dealt{.ranks = std::vector<int>(static_cast<std::size_t>(ranks)),
             .first_half = static_cast<std::size_t>(ranks / 2)};
  std::iota(dealt.ranks.begin(), dealt.ranks.end(), 0);
  if (bisection > 0)
    std::ranges::sort(dealt.ranks, {}, [&](int each) {
      return mpi::pattern_word(bisection, static_cast<std::size_t>(each));
    });
  return dealt;
}

struct Bisection {
  int partner;
  std::size_t pairs;
  std::uint64_t windows = 0; // windows per sample
  std::vector<double> elapsed_s;
};

class Halves {
public:
  Halves(mpi::Program& program, const Settings& settings)
      : program_(program), shares_(settings.shares), exchange_(settings.bytes, settings.window) {}

  // One sample, with verified data; on rank 0 the time of the slowest rank.
  double run(int partner, std::uint64_t windows) {
    ++seed_;
    const auto others = pattern_of(partner);
    exchange_.fill(pattern_of(program_.rank), others);
    if (shares_)
      mpi::sleeping_barrier();
    else
      MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    if (partner != no_rank)
      exchange_.run(partner, windows);
    const double mine_s = partner == no_rank ? 0 : seconds(Clock::now() - start);
    double slowest_s = 0;
    MPI_Reduce(&mine_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (partner != no_rank)
      wrong_ += exchange_.wrong(others);
    return slowest_s;
  }

  [[nodiscard]] std::size_t wrong() const noexcept { return wrong_; }

private:
  [[nodiscard]] std::uint64_t pattern_of(int rank) const {
    return seed_ << 24 | static_cast<std::uint64_t>(rank + 1);
  }

  mpi::Program& program_;
  bool shares_;
  mpi::Exchange exchange_;
  std::uint64_t seed_ = 0;
  std::size_t wrong_ = 0;
};

// On rank 0: a sample for each bisection and round, and the slowest and the median one of each
// round.
void report(mpi::Program& program, const Settings& settings, const std::vector<Bisection>& all) {
  const auto bytes_of = [&](const Bisection& one) {
    return 2 * one.pairs * one.windows * settings.window * settings.bytes;
  };
  const auto sample = [&](const char* series, std::size_t which, std::size_t round) {
    return sample_event(series, round, all[which].elapsed_s[round])
        .add("work", json::Object().add("bytes", bytes_of(all[which])));
  };
  for (std::size_t which = 0; which < all.size(); ++which)
    for (std::size_t round = 0; round < all[which].elapsed_s.size(); ++round)
      program.add(
          sample("bandwidth", which, round).add("point", json::Object().add("bisection", which)));
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t round = 0; round < all.front().elapsed_s.size(); ++round) {
    std::ranges::sort(order, {}, [&](std::size_t which) {
      return static_cast<double>(bytes_of(all[which])) / all[which].elapsed_s[round];
    });
    program.add(sample("worst", order.front(), round).add("bisection", order.front()));
    program.add(sample("median", order[order.size() / 2], round));
  }
}

void measure(mpi::Program& program, const Settings& settings) {
  mpi::reduce_timer_slack();
  mpi::require_memory(2 * settings.window * settings.bytes);
  Halves halves(program, settings);
  std::vector<Bisection> all;
  for (std::size_t which = 0; which < settings.bisections; ++which) {
    program.at("warm-up of bisection " + std::to_string(which));
    const auto dealt = dealt_in(which, program.ranks, settings.half);
    Bisection one{.partner = dealt.partner_of(program.rank),
                  .pairs = dealt.pairs(),
                  .windows = 0,
                  .elapsed_s = {}};
    halves.run(one.partner, trial_windows);
    one.windows =
        repetitions_lasting(sample_s, mpi::of_first(clock_step_s()), trial_windows,
                            [&](auto n) { return mpi::of_first(halves.run(one.partner, n)); });
    all.push_back(one);
  }
  mpi::Rounds rounds(program, min_rounds);
  for (std::size_t round = 0; rounds.another(round); ++round) {
    for (const auto place : round_order(all.size(), round)) {
      auto& one = all[place];
      program.at("bisection " + std::to_string(place) + ", with rank " +
                 std::to_string(one.partner) + ", round " + std::to_string(round));
      one.elapsed_s.push_back(halves.run(one.partner, one.windows));
    }
  }
  if (program.rank == 0)
    report(program, settings, all);
  program.check("wrong_bytes", mpi::sum(static_cast<double>(halves.wrong())));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::mpi::run_program("bisection", argc, argv, prepare, measure);
}
