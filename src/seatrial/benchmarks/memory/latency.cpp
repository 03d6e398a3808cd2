// memory.latency: the time of a load whose address comes from the previous load (pointer chasing).
//
// Each working set is one ring of pointers with one node in every cache line, in random order: no
// prefetcher can predict the next address, and no two loads can overlap. The order is also stored
// separately. So the ring can be walked once without waiting for its pointers, which verifies it
// and leaves the caches in the same state as chasing the pointers; and the expected position after
// any number of loads is known.
#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "additions.hpp"
#include "affinity.hpp"
#include "clock.hpp"
#include "clock_step.hpp"
#include "failure.hpp"
#include "numa.hpp"
#include "optimisation_barrier.hpp"
#include "pages.hpp"
#include "program.hpp"
#include "team.hpp"
#include "unrolled.hpp"

namespace {

using namespace seatrial;

constexpr double min_sample_s = 1e-3;
constexpr double sample_s = 1.2e-3;                 // target duration of a sample
constexpr std::size_t loads_per_turn = 32;          // loads per loop iteration of the chase
constexpr std::uint64_t addition_blocks = 1u << 13; // 131,072 additions: about 40 us

struct Settings {
  std::vector<std::size_t> sizes; // in bytes, ascending
  std::size_t line_bytes;
  bool huge_pages;
  std::optional<int> node; // NUMA node of the memory; none: first touch
};

Settings prepare(Arguments& arguments) {
  Settings settings{
      .sizes = arguments.numbers<std::size_t>("--sizes", 1024, std::size_t{1} << 37),
      .line_bytes = arguments.number<std::size_t>("--line-bytes", 64, 16, 4096),
      .huge_pages = arguments.flag("--huge-pages", true),
      .node = std::nullopt,
  };
  if (const int node = arguments.number("--memory-node", -1, -1, 1023); node >= 0)
    settings.node = node;
  if (!std::ranges::is_sorted(settings.sizes))
    throw Failure(Exit::usage, "--sizes: expected numbers in ascending order");
  if (!std::has_single_bit(settings.line_bytes))
    throw Failure(Exit::usage, "--line-bytes: expected a power of two");
  return settings;
}

// splitmix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators",
// OOPSLA 2014.
class Random {
public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  // A random number below `bound`, which is at most 2^32: the bias is below 2^-32.
  std::uint32_t below(std::uint64_t bound) noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return static_cast<std::uint32_t>((z >> 32) * bound >> 32);
  }

private:
  std::uint64_t state_;
};

// Dependent loads; returns the final address.
[[gnu::noinline]] const void* chase(const void* at, std::uint64_t turns) noexcept {
  for (; turns != 0; --turns)
    unrolled<loads_per_turn>([&](std::size_t) { at = *static_cast<const void* const*>(at); });
  return at;
}

// The result of walking a ring.
struct Walk {
  std::size_t broken = 0;      // nodes that point to the wrong node, or to one already visited
  std::size_t predictable = 0; // steps of the same length as the previous one, or to a nearby line
};

// Cache lines linked in random order as a closed ring.
class Ring {
public:
  Ring(std::span<std::byte> memory, std::span<std::uint32_t> order, std::size_t line_bytes,
       std::uint64_t seed)
      : memory_(memory), order_(order), line_bytes_(line_bytes), random_(seed) {}

  [[nodiscard]] std::size_t lines() const noexcept { return lines_; }

  // Extends the ring to the first `lines` lines; it never shrinks.
  void grow_to(std::size_t lines) noexcept {
    // Touch pages in address order, as programs do.
    for (auto at = lines_ * line_bytes_; at < lines * line_bytes_; at += base_page())
      memory_[at] = std::byte{0};
    // The inside-out shuffle (D. Knuth, "The Art of Computer Programming" 2, 3.4.2): every order is
    // equally likely, and so is every ring, as with S. Sattolo's algorithm (1986), and an order can
    // be extended without starting again.
    for (; lines_ < lines; ++lines_) {
      const auto other = random_.below(lines_ + 1);
      order_[lines_] = order_[other];
      order_[other] = static_cast<std::uint32_t>(lines_);
    }
    for (std::size_t step = 0; step < lines_; ++step)
      *node(order_[step]) = node(order_[following(step)]);
  }

  // The node reached after this many loads from the first one.
  [[nodiscard]] const void* after(std::uint64_t loads) const noexcept {
    return node(order_[loads % lines_]);
  }

  // Loads every node once, in ring order. No load waits for another, since the order is known; the
  // loaded pointers prove that a chase must take the same path through all lines.
  [[nodiscard]] Walk walk() const {
    constexpr std::int64_t near_by =
        8; // lines: an adjacent-line pair, or the range of a stream prefetcher
    Walk found;
    std::vector<bool> reached(lines_);
    std::int64_t stride_before = 0;
    for (std::size_t step = 0; step < lines_; ++step) {
      const auto next = order_[(step + 1) % lines_];
      found.broken += *node(order_[step]) != node(next) || reached[next];
      reached[next] = true;
      const auto stride = std::int64_t{next} - std::int64_t{order_[step]};
      found.predictable += stride == stride_before || (stride <= near_by && stride >= -near_by);
      stride_before = stride;
    }
    return found;
  }

private:
  [[nodiscard]] void** node(std::uint32_t line) const noexcept {
    return reinterpret_cast<void**>(memory_.data() + line * line_bytes_);
  }

  [[nodiscard]] std::size_t following(std::size_t step) const noexcept {
    return step + 1 == lines_ ? 0 : step + 1;
  }

  std::span<std::byte> memory_;
  std::span<std::uint32_t> order_; // the lines in ring order
  std::size_t line_bytes_;
  std::size_t lines_ = 0;
  Random random_;
};

struct Sample {
  std::uint64_t loads;
  double chase_s;
  std::array<double, 2> additions_s; // before and after the chase
};

// The samples of one working set.
struct Point {
  std::size_t bytes;
  std::vector<Sample> samples;
};

class Latency {
public:
  Latency(const Settings& settings, std::uint64_t seed)
      : settings_(settings), max_lines_(settings.sizes.back() / settings.line_bytes),
        ring_bytes_(round_up(max_lines_ * settings.line_bytes, huge_page)),
        pages_(ring_bytes_ + max_lines_ * sizeof(std::uint32_t), settings.huge_pages,
               settings.node),
        ring_({pages_.data(), ring_bytes_},
              {reinterpret_cast<std::uint32_t*>(pages_.data() + ring_bytes_), max_lines_},
              settings.line_bytes, seed) {
    if (max_lines_ > std::numeric_limits<std::uint32_t>::max())
      throw Failure(Exit::usage, "--sizes: too many cache lines for 32-bit indices");
    points_.reserve(settings.sizes.size());
  }

  // Measures working sets one after another, since each has to settle in the caches before its
  // samples.
  void measure(Program& program) {
    program.phase.begin();
    for (const auto bytes : settings_.sizes) {
      ring_.grow_to(bytes / settings_.line_bytes);
      const auto walk = ring_.walk();
      broken_ += walk.broken;
      if (ring_.lines() >= min_lines_for_check)
        predictable_ = std::max(predictable_, static_cast<double>(walk.predictable) /
                                                  static_cast<double>(ring_.lines()));
      points_.push_back(
          samples_of(bytes, program.slice_s / static_cast<double>(settings_.sizes.size())));
    }
    program.phase.end();
  }

  void report(Program& program, int cpu) const {
    const auto placed = placement();
    program.note("page_bytes", base_page());
    program.note("huge_pages", pages_.huge_verdict());
    program.note("huge_page_fraction", pages_.huge_fraction());
    program.note("page_nodes", placed.error == 0 ? std::string("reported")
                                                 : std::string("not reported: move_pages: ") +
                                                       std::strerror(placed.error));
    for (const auto& point : points_)
      for (std::size_t i = 0; i < point.samples.size(); ++i) {
        const auto& sample = point.samples[i];
        program.add(sample_event("load", i, sample.chase_s)
                        .add("point", json::Object().add("working_set_B", point.bytes))
                        .add("work", json::Object().add("ops", sample.loads))
                        .add("add_ops", addition_blocks * additions_per_block)
                        .add("add_s", sample.additions_s)
                        .add("pages_looked_at", placed.looked_at)
                        .add("pages_astray", placed.astray));
      }
    program.check("broken_links", static_cast<double>(broken_));
    program.check("lost_loads", static_cast<double>(lost_));
    program.check("predictable_steps", predictable_);
    program.check("moved_thread", is_bound_to(cpu) ? 0 : 1);
  }

private:
  // In smaller sets steps are short in any case.
  static constexpr std::size_t min_lines_for_check = 1024;
  static constexpr std::size_t min_samples = 3;

  [[nodiscard]] Point samples_of(std::size_t bytes, double slice_s) {
    position_ = ring_.after(0);
    loads_ = 0;
    auto turns = turns_per_sample();
    Point point{bytes, {}};
    point.samples.reserve(64);
    const auto begin = Clock::now();
    const double shortest_s = resolved_s(min_sample_s);
    while (point.samples.size() < min_samples || seconds(Clock::now() - begin) < slice_s) {
      const double before = additions_s();
      const double elapsed = chase_s(turns);
      lost_ += position_ != ring_.after(loads_);
      if (elapsed < shortest_s) // the calibration was disturbed
        turns += turns / 2 + 1;
      else
        point.samples.push_back({turns * loads_per_turn, elapsed, {before, additions_s()}});
    }
    return point;
  }

  // Uses the shortest of several tries, so that a disturbance does not make samples short. The
  // tries also cycle small sets several times before the first sample.
  [[nodiscard]] std::uint64_t turns_per_sample() noexcept {
    const double trial_s = std::max(0.1e-3, 20 * clock_step_s());
    std::uint64_t turns = 1;
    while (chase_s(turns) < trial_s)
      turns *= 2;
    double shortest = chase_s(turns);
    for (int i = 0; i < 2; ++i)
      shortest = std::min(shortest, chase_s(turns));
    return static_cast<std::uint64_t>(static_cast<double>(turns) *
                                      std::max(sample_s, 1.2 * resolved_s(min_sample_s)) /
                                      shortest) +
           1;
  }

  [[nodiscard]] double chase_s(std::uint64_t turns) noexcept {
    const auto time = timed([&] { position_ = chase(position_, turns); });
    loads_ += turns * loads_per_turn;
    return time.elapsed_s();
  }

  [[nodiscard]] static double additions_s() noexcept {
    const auto addend = do_not_fold(std::uint64_t{3});
    return timed([&] { do_not_eliminate(chain_of_additions(addend, addend, addition_blocks)); })
        .elapsed_s();
  }

  // Samples pages from the largest ring, which should be on the requested node or on the local one.
  [[nodiscard]] PageNodes placement() const {
    constexpr std::size_t max_pages = 1u << 16;
    const auto node = settings_.node ? settings_.node : own_node();
    const auto bytes = max_lines_ * settings_.line_bytes;
    const auto stride = round_up(bytes / max_pages + 1, base_page());
    std::vector<void*> addresses;
    for (std::size_t at = 0; at < bytes; at += stride)
      addresses.push_back(pages_.data() + at);
    return look_up_nodes(addresses, [&](std::size_t, int found) { return found == node; });
  }

  const Settings& settings_;
  const std::size_t max_lines_;
  const std::size_t ring_bytes_;
  Pages pages_; // pages of the ring, followed by those of its order
  Ring ring_;
  std::vector<Point> points_;
  const void* position_ = nullptr; // position in the ring after `loads_` loads from its first node
  std::uint64_t loads_ = 0;
  std::size_t broken_ = 0;
  std::size_t lost_ = 0; // samples that ended at the wrong node
  double predictable_ = 0;
};

void measure(Program& program, const Settings& settings) {
  if (program.cpus.size() != 1)
    throw Failure(Exit::usage, "--cpus: expected one CPU");
  Team team(program.cpus);
  program.hello(team);
  // Each repeat uses a different order, so that the effect of a particular order shows as spread.
  const auto seed = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count()) ^
                    static_cast<std::uint64_t>(getpid()) << 32;
  program.note("seed", seed);
  Latency latency(settings, seed);
  latency.measure(program);
  latency.report(program, program.cpus[0]);
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("latency", argc, argv, prepare, measure);
}
