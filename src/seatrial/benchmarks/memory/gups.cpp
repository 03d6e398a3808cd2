// memory.gups: random updates of a table in memory, by all threads at once.
//
// The table, the updates and the fraction of them that may be lost are those of RandomAccess in the
// HPC Challenge (P. Luszczek et al., "Introduction to the HPC Challenge Benchmark Suite", 2005):
// T[i] = i at the start, and each value of a shift register is xored into the word selected by its
// low bits. Threads share the table without locks, so some updates are lost. Repeating the same
// updates atomically must restore every word.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "affinity.hpp"
#include "clock.hpp"
#include "failure.hpp"
#include "optimisation_barrier.hpp"
#include "pages.hpp"
#include "program.hpp"
#include "team.hpp"

namespace {

using namespace seatrial;

using Word = std::uint64_t;

constexpr std::size_t min_samples = 3;
constexpr std::size_t max_samples = 2'000;

struct Settings {
  std::size_t words;     // table size, a power of two
  std::uint64_t updates; // per thread and sample
  bool huge_pages;
};

Settings prepare(Arguments& arguments) {
  const Settings settings{
      .words = arguments.number<std::size_t>("--table-words", 1u << 20, 512, std::size_t{1} << 40),
      .updates = arguments.number<std::uint64_t>("--updates", 1u << 17, 1, 1u << 30),
      .huge_pages = arguments.flag("--huge-pages", true),
  };
  if (!std::has_single_bit(settings.words))
    throw Failure(Exit::usage, "--table-words: expected a power of two");
  return settings;
}

// The next value of the shift register with polynomial x^63 + x^2 + x + 1, which takes all values
// but 0.
[[nodiscard]] constexpr Word next_of(Word value) noexcept {
  return value << 1 ^ (value >> 63 != 0 ? 7u : 0u);
}

// The start value of a thread (splitmix64): with high probability far from those of other threads.
[[nodiscard]] constexpr Word first_of(std::size_t member) noexcept {
  Word z = (member + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (z ^ (z >> 31)) | 1;
}

// The word selected by a value's low bits.
[[nodiscard]] Word& word_of(std::span<Word> table, Word value) noexcept {
  return table[value & (table.size() - 1)];
}

// Returns the value after `count` updates. An update is a load and a store; other threads' updates
// may come between them.
[[gnu::noinline]] Word update(std::span<Word> table, Word value, std::uint64_t count) noexcept {
  for (; count != 0; --count) {
    value = next_of(value);
    const std::atomic_ref word(word_of(table, value));
    word.store(word.load(std::memory_order_relaxed) ^ value, std::memory_order_relaxed);
  }
  return value;
}

void update_atomically(std::span<Word> table, Word value, std::uint64_t count) noexcept {
  for (; count != 0; --count) {
    value = next_of(value);
    std::atomic_ref(word_of(table, value)).fetch_xor(value, std::memory_order_relaxed);
  }
}

class Measurement {
public:
  Measurement(Team& team, Program& program, const Settings& settings)
      : team_(team), program_(program), settings_(settings),
        most_(most_samples(max_samples, program.slice_s)),
        pages_(settings.words * sizeof(Word), settings.huge_pages),
        table_(reinterpret_cast<Word*>(pages_.data()), settings.words), members_(team.size()) {
    team.run([&](std::size_t member) {
      const auto part = part_of(member);
      for (std::size_t i = part.begin; i < part.end; ++i)
        table_[i] = i;
      members_[member].value = first_of(member);
      members_[member].intervals.reserve(most_ + 1);
    });
  }

  void run() {
    team_.run([&](std::size_t member) {
      auto& own = members_[member];
      own.has_moved = !is_bound_to(program_.cpus[member]);
      sample(own); // lets the clock frequency settle
      const auto deadline = Clock::now() + std::chrono::duration<double>(program_.slice_s);
      if (member == 0)
        program_.phase.begin();
      for (std::size_t done = 0;; ++done) {
        if (member == 0)
          is_over_ = done == most_ || (done >= min_samples && Clock::now() >= deadline);
        team_.barrier().wait();
        if (is_over_) {
          if (member == 0)
            program_.phase.end();
          break;
        }
        sample(own);
      }
      own.has_moved |= !is_bound_to(program_.cpus[member]);
    });
  }

  void report(Program& program) {
    const auto samples = members_.front().intervals.size();
    for (std::size_t i = 1; i < samples; ++i) { // without the first, the warm-up
      std::vector<Interval> intervals;
      for (const auto& member : members_)
        intervals.push_back(member.intervals[i]);
      program.add(sample_event("update", i - 1, elapsed_s(intervals))
                      .add("work", json::Object().add("ops", settings_.updates * team_.size())));
    }
    program.note("huge_pages", pages_.huge_verdict());
    const auto words = static_cast<double>(settings_.words);
    const auto made = static_cast<double>(settings_.updates * samples * team_.size());
    program.check("words_reached",
                  static_cast<double>(changed()) / (words * -std::expm1(-made / words)));
    team_.run([&](std::size_t member) {
      update_atomically(table_, first_of(member), settings_.updates * samples);
    });
    program.check("lost_updates", static_cast<double>(changed()) / words);
    program.check("moved_threads",
                  static_cast<double>(std::ranges::count(members_, true, &Member::has_moved)));
  }

private:
  struct alignas(128) Member {
    Word value;
    std::vector<Interval> intervals;
    std::size_t changed;
    bool has_moved;
  };
  struct Part {
    std::size_t begin, end;
  };

  [[nodiscard]] Part part_of(std::size_t member) const noexcept {
    const auto part = settings_.words / team_.size();
    const bool is_last = member + 1 == team_.size();
    return {member * part, is_last ? settings_.words : (member + 1) * part};
  }

  void sample(Member& own) noexcept {
    team_.barrier().wait();
    own.intervals.push_back(
        timed([&] { own.value = update(table_, own.value, settings_.updates); }));
    do_not_eliminate(own.value);
  }

  // The number of words that differ from the start.
  [[nodiscard]] std::size_t changed() {
    team_.run([&](std::size_t member) {
      const auto part = part_of(member);
      members_[member].changed = 0;
      for (std::size_t i = part.begin; i < part.end; ++i)
        members_[member].changed += table_[i] != i;
    });
    std::size_t all = 0;
    for (const auto& member : members_)
      all += member.changed;
    return all;
  }

  Team& team_;
  Program& program_;
  Settings settings_;
  std::size_t most_; // samples
  Pages pages_;
  std::span<Word> table_;
  std::vector<Member> members_;
  bool is_over_ = false; // written by member 0 before the barrier
};

void measure(Program& program, const Settings& settings) {
  Team team(program.cpus);
  program.hello(team);
  Measurement measurement(team, program, settings);
  measurement.run();
  measurement.report(program);
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("gups", argc, argv, prepare, measure);
}
