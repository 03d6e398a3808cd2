// cpu.linebounce: the time for a cache line to move from one CPU to another.
//
// Two bound threads alternately increment one word; every increment needs the line that the other
// core has just written. One thread is bound to each given CPU for the whole run: the n-th mask in
// `hello` is that of the n-th CPU's thread. The two threads of a pair check their binding again
// before their samples; the others sleep.
//
// The time also depends on the line's address: a shared cache is divided into slices, the address
// selects the slice of a line, and some slices are closer to the two cores than others (28 to 53 ns
// between the same two cores of a Zen 5). So each pair has a page of lines, and every sample uses
// all of them. The first thread of the pair touches the page first: its memory, and with it the
// coherence directory of its lines, is on that thread's NUMA node.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "affinity.hpp"
#include "barrier.hpp"
#include "bounce.hpp"
#include "clock.hpp"
#include "clock_step.hpp"
#include "failure.hpp"
#include "pages.hpp"
#include "program.hpp"
#include "round_order.hpp"
#include "team.hpp"

namespace {

using namespace seatrial;

constexpr double sample_s = 1e-3; // target duration of a sample

using Members = Arguments::Pair; // a pair, as indices into --cpus

struct Settings {
  std::optional<std::vector<Members>> pairs; // none: all pairs
};

Settings prepare(Arguments& arguments) {
  return {.pairs = arguments.pairs("--pairs")};
}

class Pair {
public:
  Pair(Members members, std::byte* page) : members_(members), page_(page) {}

  [[nodiscard]] std::size_t a() const noexcept { return members_[0]; }
  [[nodiscard]] std::size_t b() const noexcept { return members_[1]; }

  // One sample: the time of this many round trips on each line. Timed by the first thread only,
  // since the last trip ends there.
  double run(Team& team, const std::vector<int>& cpus, std::uint64_t trips) {
    BounceLines* lines = nullptr;
    SpinBarrier start(2);
    const BounceWord last = 2 * trips;
    Interval timed;
    std::array<std::uint64_t, 2> wrong{};
    std::array<bool, 2> moved{};
    team.run_on(members_, [&](std::size_t member) {
      if (member == a()) {
        moved[0] = !is_bound_to(cpus[member]);
        lines = new (page_) BounceLines; // first touch: the page is on this thread's node
        start.wait();
        timed.start = Clock::now();
        for (auto& [word] : *lines) {
          wrong[0] += bounce(word, 1, last);
          while (word.load(std::memory_order_acquire) < last) {
          }
        }
        timed.end = Clock::now();
      } else {
        moved[1] = !is_bound_to(cpus[member]);
        start.wait();
        for (auto& [word] : *lines)
          wrong[1] += bounce(word, 2, last);
      }
    });
    const BounceWord claimed = 2 * trips; // the value of each line after the sample
    for (const auto& [word] : *lines) {
      const BounceWord made = word.load();
      lost_ += made < claimed ? claimed - made : made - claimed;
    }
    lost_ += wrong[0] + wrong[1];
    moved_ += std::size_t{moved[0]} + std::size_t{moved[1]};
    return timed.elapsed_s();
  }

  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }
  [[nodiscard]] std::uint64_t moved() const noexcept { return moved_; }

  std::uint64_t round_trips = 0; // per line and sample
  std::vector<double> elapsed_s;

private:
  Members members_;
  std::byte* page_; // page of the lines
  std::uint64_t lost_ = 0;
  std::uint64_t moved_ = 0;
};

[[nodiscard]] std::vector<Members> all_pairs(std::size_t members) {
  std::vector<Members> pairs;
  for (std::size_t a = 0; a < members; ++a)
    for (std::size_t b = a + 1; b < members; ++b)
      pairs.push_back({a, b});
  return pairs;
}

// Samples of all pairs are interleaved, so that a disturbance of the machine affects all of them.
void measure(Program& program, const Settings& settings) {
  constexpr std::size_t min_rounds = 3;
  constexpr std::uint64_t trial_trips = 32;

  Team team(program.cpus);
  program.hello(team);
  if (program.cpus.size() < 2)
    throw Skip("needs two CPUs, got 1");

  const auto chosen = settings.pairs.value_or(all_pairs(team.size()));
  const Pages pages(chosen.size() * base_page(), false);
  std::vector<Pair> pairs;
  for (const auto& members : chosen) {
    if (std::ranges::max(members) >= team.size())
      throw Failure(Exit::usage, "--pairs: no CPU number " +
                                     std::to_string(std::ranges::max(members)) + " in --cpus");
    pairs.emplace_back(members, pages.data() + pairs.size() * base_page());
  }
  for (auto& pair : pairs) {
    pair.run(team, program.cpus, trial_trips); // warms up
    pair.round_trips =
        repetitions_lasting(sample_s, clock_step_s(), trial_trips,
                            [&](std::uint64_t n) { return pair.run(team, program.cpus, n); });
  }

  program.turns.pass();
  program.phase.begin();
  const auto begin = Clock::now();
  for (std::size_t round = 0; round < min_rounds || seconds(Clock::now() - begin) < program.slice_s;
       ++round)
    for (const auto place : round_order(pairs.size(), round)) {
      auto& pair = pairs[place];
      pair.elapsed_s.push_back(pair.run(team, program.cpus, pair.round_trips));
      program.turns.pass();
    }
  program.phase.end();

  std::uint64_t lost = 0;
  std::uint64_t moved = 0;
  for (const auto& pair : pairs) {
    for (std::size_t i = 0; i < pair.elapsed_s.size(); ++i)
      program.add(sample_event("one_way", i, pair.elapsed_s[i])
                      .add("point", json::Object()
                                        .add("cpu_a", program.cpus[pair.a()])
                                        .add("cpu_b", program.cpus[pair.b()]))
                      .add("work", json::Object().add("ops", 2 * pair.round_trips * bounce_lines)));
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
