// cpu.linebounce: how long one cache line takes from one CPU to another.
//
// Two bound threads take turns at incrementing one word; every increment needs the line that the
// other core has just written. One thread runs on each CPU given, bound once and for good: the
// n-th mask of `hello` is that of the n-th CPU's thread, and the two threads of a pair find out
// again before their samples whether they still stand where they should; the others sleep.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "affinity.hpp"
#include "barrier.hpp"
#include "clock.hpp"
#include "program.hpp"
#include "team.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 1e-3; // what one sample is to last

struct Settings {};

Settings prepare(Arguments&) {
  return {};
}

using Word = std::uint64_t;

// Alone in its line, and in the pair of lines that an adjacent-line prefetcher fetches.
struct alignas(128) Line {
  std::atomic<Word> word{0};
};

// Waits for each value that is the other's to write and answers with the next one, from `mine`
// until `last`. The word itself numbers the trips, so none can be lost or come out of order unseen:
// returns how many values were not the ones that had to come.
std::uint64_t bounce(std::atomic<Word>& word, Word mine, Word last) noexcept {
  std::uint64_t wrong = 0;
  // No pause instruction: on some cores it takes longer than the trip.
  for (; mine <= last; mine += 2) {
    Word seen = word.load(std::memory_order_acquire);
    while (seen < mine - 1)
      seen = word.load(std::memory_order_acquire);
    wrong += seen != mine - 1;
    word.store(mine, std::memory_order_release);
  }
  return wrong;
}

class Pair {
public:
  Pair(std::size_t a, std::size_t b) : members_{a, b} {}

  [[nodiscard]] std::size_t a() const noexcept { return members_[0]; }
  [[nodiscard]] std::size_t b() const noexcept { return members_[1]; }

  // How long so many trips there and back take: one sample. Timed by the first thread alone, since
  // the last trip ends with it.
  double run(Team& team, const std::vector<int>& cpus, std::uint64_t trips) {
    Line line;
    SpinBarrier start(2);
    const Word last = 2 * trips;
    Interval timed;
    std::array<std::uint64_t, 2> wrong{};
    std::array<bool, 2> moved{};
    team.run([&](std::size_t member) {
      if (member == a()) {
        moved[0] = !is_bound_to(cpus[member]);
        start.wait();
        timed.start = Clock::now();
        wrong[0] = bounce(line.word, 1, last);
        while (line.word.load(std::memory_order_acquire) < last) {
        }
        timed.end = Clock::now();
      } else if (member == b()) {
        moved[1] = !is_bound_to(cpus[member]);
        start.wait();
        wrong[1] = bounce(line.word, 2, last);
      }
    });
    const Word made = line.word.load();
    const Word claimed = 2 * trips; // what the sample is counted as
    lost_ += wrong[0] + wrong[1] + (made < claimed ? claimed - made : made - claimed);
    moved_ += std::size_t{moved[0]} + std::size_t{moved[1]};
    return timed.elapsed_s();
  }

  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

  std::uint64_t round_trips = 0; // of one sample
  std::vector<double> elapsed_s;

private:
  std::array<std::size_t, 2> members_;
  std::uint64_t lost_ = 0;
  std::uint64_t moved_ = 0;
};

// The pairs take their samples in turn, so that a disturbance of the machine hits all alike.
void measure(Program& program, const Settings&) {
  constexpr std::size_t least_rounds = 3;
  constexpr std::uint64_t trial_trips = 1000;

  Team team(program.cpus);
  program.hello(team);
  if (program.cpus.size() < 2)
    throw Skip("needs two CPUs, 1 given");

  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < team.size(); ++a)
    for (std::size_t b = a + 1; b < team.size(); ++b)
      pairs.emplace_back(a, b);
  for (auto& pair : pairs) {
    pair.run(team, program.cpus, trial_trips); // warms up
    const double trial_s = pair.run(team, program.cpus, trial_trips);
    pair.round_trips = static_cast<std::uint64_t>(trial_trips * sample_s / trial_s) + 1;
  }

  const auto begin = Clock::now();
  for (std::size_t round = 0;
       round < least_rounds || seconds(Clock::now() - begin) < program.slice_s; ++round)
    for (auto& pair : pairs)
      pair.elapsed_s.push_back(pair.run(team, program.cpus, pair.round_trips));

  std::uint64_t lost = 0;
  std::uint64_t moved = 0;
  for (const auto& pair : pairs) {
    for (std::size_t i = 0; i < pair.elapsed_s.size(); ++i)
      program.add(Program::sample("one_way", i, pair.elapsed_s[i])
                      .add("point", json::Object()
                                        .add("cpu_a", program.cpus[pair.a()])
                                        .add("cpu_b", program.cpus[pair.b()]))
                      .add("work", json::Object().add("ops", 2 * pair.round_trips)));
    lost += pair.lost();
    moved += pair.moved();
  }
  program.check("lost_updates", static_cast<double>(lost));
  program.check("moved_threads", static_cast<double>(moved));
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("linebounce", argc, argv, prepare, measure);
}
