// memory.stream: copy, scale, add and triad over three arrays, one part per bound thread.
//
// The four kernels and the counting of bytes are those of J. D. McCalpin, "Memory Bandwidth and
// Machine Balance in Current High Performance Computers", IEEE TCCA Newsletter, December 1995.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "clock.hpp"
#include "numa.hpp"
#include "optimisation_barrier.hpp"
#include "pages.hpp"
#include "program.hpp"
#include "team.hpp"
#include "vector.hpp"

namespace {

using namespace seatrial;

constexpr std::size_t line_doubles = 64 / sizeof(double); // one cache line

struct Settings {
  std::size_t array_bytes;
  bool nontemporal;
  bool huge_pages;
  std::optional<int> node;         // NUMA node of the memory; none: first touch
  std::optional<std::size_t> only; // index in `kernels` of the only kernel to measure
};

// The index of a kernel by its name; none for "all".
std::optional<std::size_t> kernel_named(std::string_view name) {
  constexpr std::array<std::string_view, 4> names = {"copy", "scale", "add", "triad"};
  const auto at = std::ranges::find(names, name);
  return at == names.end() ? std::nullopt
                           : std::optional(static_cast<std::size_t>(at - names.begin()));
}

Settings prepare(Arguments& arguments) {
  const int node = arguments.number("--memory-node", -1, -1, 1023);
  return {
      .array_bytes = arguments.number<std::size_t>("--array-bytes", std::size_t{128} << 20,
                                                   std::size_t{1} << 12, std::size_t{1} << 46),
      .nontemporal = arguments.flag("--nontemporal", false),
      .huge_pages = arguments.flag("--huge-pages", true),
      .node = node < 0 ? std::nullopt : std::optional(node),
      .only = kernel_named(
          arguments.choice("--kernel", "all", {"all", "copy", "scale", "add", "triad"})),
  };
}

// a and b are only read, c is only written.
struct Arrays {
  std::span<double> a;
  std::span<double> b;
  std::span<double> c;

  [[nodiscard]] Arrays part(std::size_t begin, std::size_t end) const {
    const auto count = end - begin;
    return {a.subspan(begin, count), b.subspan(begin, count), c.subspan(begin, count)};
  }
};

enum class Operation { copy, scale, add, triad };

// For scalars or vectors.
template <Operation operation, class Value>
[[gnu::always_inline]] inline Value result(Value a, Value b, Value s) noexcept {
  if constexpr (operation == Operation::copy)
    return a;
  else if constexpr (operation == Operation::scale)
    return s * a;
  else if constexpr (operation == Operation::add)
    return a + b;
  else
    return a + s * b; // exact for these inputs, whether fused or not
}

template <Operation operation>
constexpr bool reads_b = operation == Operation::add || operation == Operation::triad;

template <Operation operation, bool nontemporal>
void sweep(const Arrays& part, double scalar) noexcept {
  constexpr auto vectors = line_doubles / lanes<double>;
  const Vector<double> s = scalar + Vector<double>{}; // in every lane
  const double* a = part.a.data();
  const double* b = part.b.data();
  double* c = part.c.data();
  for (const double* const end = a + part.a.size(); a != end;
       a += line_doubles, b += line_doubles, c += line_doubles) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const auto at = v * lanes<double>;
      const auto x = load(a + at);
      const auto y = reads_b<operation> ? load(b + at) : x;
      if constexpr (nontemporal)
        store_nontemporal(c + at, result<operation>(x, y, s));
      else
        store(c + at, result<operation>(x, y, s));
    }
    // Keeps compilers from replacing the loop with a call of memcpy, which may use non-temporal
    // stores.
    asm volatile("" ::: "memory");
  }
  if constexpr (nontemporal)
    drain_nontemporal_stores();
}

template <Operation operation>
std::size_t wrong_elements(const Arrays& part, double scalar) noexcept {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < part.c.size(); ++i) // also true for NaN
    wrong += part.c[i] != result<operation>(part.a[i], part.b[i], scalar);
  return wrong;
}

struct Kernel {
  std::string_view name;
  std::size_t arrays_read;
  void (*plain)(const Arrays&, double) noexcept;
  void (*nontemporal)(const Arrays&, double) noexcept;
  std::size_t (*wrong_elements)(const Arrays&, double) noexcept;
};

template <Operation operation>
constexpr Kernel kernel(std::string_view name) {
  return {name, reads_b<operation> ? std::size_t{2} : std::size_t{1}, sweep<operation, false>,
          sweep<operation, true>, wrong_elements<operation>};
}

constexpr std::array kernels = {kernel<Operation::copy>("copy"), kernel<Operation::scale>("scale"),
                                kernel<Operation::add>("add"), kernel<Operation::triad>("triad")};

// The i-th input: random, since constant data would draw less power and may be compressed, and a
// multiple of 2^-40 in [1, 2), so that with a small integer scalar every result is exact (at most
// 44 of double's 53 bits) and the comparison needs no tolerance. The mixing function is that of
// splitmix64: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA
// 2014.
double input(std::uint64_t i) noexcept {
  std::uint64_t z = (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  constexpr std::uint64_t one = std::bit_cast<std::uint64_t>(1.0);
  return std::bit_cast<double>(one | (z >> 24 << 12)); // the upper 40 of 52 fraction bits
}

// Fills an array with the inputs from number `seed` on; each array has its own.
void fill_with_inputs(std::span<double> values, std::uint64_t seed) noexcept {
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = input(seed + i);
}

// The fraction of distinct, finite, nonzero values, the lower of two: among elements sampled from
// the whole array, and among as many adjacent ones in its middle. Steps of the golden section hit
// every residue, so that no periodic data can hide between them.
double distinct_fraction(std::span<const double> values) {
  const auto sampled = std::min<std::size_t>(values.size(), 4096);
  const auto share = [&](auto position) {
    std::unordered_set<double> seen;
    for (std::size_t i = 0; i < sampled; ++i)
      if (const double value = values[position(i)]; std::isfinite(value) && value != 0)
        seen.insert(value);
    return static_cast<double>(seen.size()) / static_cast<double>(sampled);
  };
  const auto middle = (values.size() - sampled) / 2;
  const auto scattered = [&](std::size_t i) {
    const double turns = static_cast<double>(i) * 0.6180339887498949;
    return static_cast<std::size_t>((turns - std::floor(turns)) *
                                    static_cast<double>(values.size()));
  };
  return std::min(share(scattered), share([&](std::size_t i) { return middle + i; }));
}

class Stream {
public:
  Stream(Team& team, const Settings& settings, double scalar)
      : team_(team), settings_(settings), scalar_(scalar), count_(element_count(settings)),
        pages_(3 * array_stride(), settings.huge_pages, settings.node), stamps_(team.size()),
        nodes_(team.size()), wrong_(team.size()) {
    const auto array = [&](std::size_t which) {
      return std::span(reinterpret_cast<double*>(pages_.data() + which * array_stride()), count_);
    };
    arrays_ = {array(0), array(1), array(2)};
    team.run([&](std::size_t member) {
      const auto own = part(member);
      nodes_[member] = settings_.node ? settings_.node : own_node();
      touch_own_pages(own);
      const auto begin = static_cast<std::uint64_t>(own.a.data() - arrays_.a.data());
      fill_with_inputs(own.a, begin);
      fill_with_inputs(own.b, begin + count_);
      std::ranges::fill(own.c, 0.0);
    });
  }

  // Runs rounds of all kernels, so that a disturbance of the machine affects all of them: one to
  // warm up, then more until the slice is over, of only one kernel if requested. Every round yields
  // samples; the results left by the second-last round and each output of the last round are
  // compared. No poisoning is needed: each kernel finds the output of another one in `c`, which
  // differs from its own in every element (see `round`).
  void measure(Program& program) {
    auto& turns = program.turns;
    team_.run([&](std::size_t member) {
      round(member, Purpose::warm_up);
      turns.pass(team_, member);
      // Set-up takes longer than a slice, so two programs that take turns have one slice each
      // instead of sharing one: fewer repeats but more samples.
      const auto slices = turns.are_given() ? 2 : 1;
      const auto deadline = Clock::now() + std::chrono::duration<double>(slices * program.slice_s);
      if (member == 0)
        program.phase.begin();
      for (std::size_t done = 1;; ++done) {
        if (member == 0)
          last_ = done >= min_rounds && Clock::now() >= deadline;
        team_.barrier().wait();
        if (last_) {
          if (member == 0)
            program.phase.end();
          break;
        }
        if (turns.are_given())
          restore_caches(member, done == 1);
        round(member, Purpose::measure);
        turns.pass(team_, member);
      }
      const auto k = settings_.only.value_or(kernels.size() - 1); // output of the last round
      wrong_[member][k] += kernels[k].wrong_elements(part(member), scalar_);
      round(member, Purpose::measure_and_compare);
    });
  }

  void report(Program& program) const {
    program.note("nontemporal", settings_.nontemporal);
    program.note("vector_bits", vector_bits);
    program.note("page_bytes", base_page());
    program.note("huge_pages", pages_.huge_verdict());
    program.note("huge_page_fraction", pages_.huge_fraction());
    const auto placed = placement();
    program.note("page_nodes", placed.error == 0 ? std::string("reported")
                                                 : std::string("not reported: move_pages: ") +
                                                       std::strerror(placed.error));
    const auto rounds = elapsed_s_[settings_.only.value_or(0)].size();
    for (std::size_t i = 0; i < rounds; ++i)
      for (std::size_t k = 0; k < kernels.size(); ++k)
        if (is_measured(k))
          program.add(sample_event(kernels[k].name, i, elapsed_s_[k][i])
                          .add("work", work(kernels[k]))
                          .add("pages_looked_at", placed.looked_at)
                          .add("pages_astray", placed.astray));
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      std::size_t wrong = 0;
      for (const auto& member : wrong_)
        wrong += member[k];
      program.check(std::string(kernels[k].name) + "_mismatches", static_cast<double>(wrong));
    }
    program.check("distinct_inputs",
                  std::min(distinct_fraction(arrays_.a), distinct_fraction(arrays_.b)));
    std::size_t used = 0;
    for (std::size_t member = 0; member < team_.size(); ++member)
      used += part(member).c.size_bytes();
    program.check("array_bytes", static_cast<double>(used));
  }

private:
  enum class Purpose { warm_up, measure, measure_and_compare };

  static constexpr std::size_t min_rounds = 3;

  static std::size_t element_count(const Settings& settings) {
    return round_up(settings.array_bytes / sizeof(double), line_doubles);
  }

  // Arrays begin at different offsets within 4 KiB: cores that match loads with earlier stores by
  // the low 12 address bits only would confuse a[i] with c[i] (Intel, "Optimization Reference
  // Manual", 4K aliasing). On Zen 5 offsets from 0 to 1 MiB made no difference above 0.5 %.
  static constexpr std::size_t stagger = 1024;

  [[nodiscard]] std::size_t array_stride() const {
    return round_up(count_ * sizeof(double) + stagger, huge_page) + stagger;
  }

  // Parts differ by at most one base page, so that no member has to wait; split at huge pages they
  // could differ by a tenth. They begin at a page boundary in `a` and, because of the stagger, 1
  // and 2 KiB after one in `b` and `c`. No cache line is shared between members, but a page can be:
  // see touch_own_pages.
  [[nodiscard]] Arrays part(std::size_t member) const {
    return arrays_.part(bound(member), bound(member + 1));
  }

  // The first element of a member's part.
  [[nodiscard]] std::size_t bound(std::size_t member) const {
    const auto unit = std::min(base_page() / sizeof(double), count_);
    return member == team_.size() ? count_ : count_ / unit * member / team_.size() * unit;
  }

  // The member whose part contains an element. Bounds are rounded down, so the guess may be off by
  // one.
  [[nodiscard]] std::size_t owner(std::size_t element) const {
    auto member = std::min(element * team_.size() / count_, team_.size() - 1);
    while (member > 0 && bound(member) > element)
      --member;
    while (member + 1 < team_.size() && bound(member + 1) <= element)
      ++member;
    return member;
  }

  // Samples pages from the arrays. Each should be on the node of a member that owns part of the
  // huge page around it.
  [[nodiscard]] PageNodes placement() const {
    constexpr std::size_t max_pages = 1u << 14; // of each array
    const auto page = base_page() / sizeof(double);
    const auto stride = std::max(round_up(count_ / max_pages + 1, page), page);
    std::vector<void*> addresses;
    std::vector<std::array<std::size_t, 2>> owners; // first and last owner
    for (const auto array : {arrays_.a, arrays_.b, arrays_.c})
      for (std::size_t i = 0; i < count_; i += stride) {
        const auto before =
            reinterpret_cast<std::uintptr_t>(&array[i]) % huge_page / sizeof(double);
        const auto first = i - std::min(i, before);
        const auto last = std::min(i + huge_page / sizeof(double) - before, count_) - 1;
        addresses.push_back(&array[i]);
        owners.push_back({owner(first), owner(last)});
      }
    return look_up_nodes(addresses, [&](std::size_t i, int node) {
      const auto begin = nodes_.begin();
      return std::find(begin + static_cast<std::ptrdiff_t>(owners[i][0]),
                       begin + static_cast<std::ptrdiff_t>(owners[i][1]) + 1,
                       node) != begin + static_cast<std::ptrdiff_t>(owners[i][1]) + 1;
    });
  }

  [[nodiscard]] bool is_measured(std::size_t kernel) const {
    return settings_.only.value_or(kernel) == kernel;
  }

  // A page is placed on the NUMA node of the thread that touches it first. Inside a part that is
  // its owner; a page with a boundary in it must go to the owner of the larger piece, not to
  // whichever comes first, or the results of identical runs would differ. Whether the kernel will
  // use huge pages is not known yet, so huge-page ranges are distributed first; touching what
  // became a huge page again has no effect.
  void touch_own_pages(const Arrays& own) noexcept {
    for (const auto page : {huge_page, base_page()}) {
      for (const auto array : {own.a, own.b, own.c})
        touch_boundaries(array, page);
      team_.barrier().wait();
    }
  }

  static void touch_boundaries(std::span<double> own, std::size_t page) noexcept {
    if (own.empty())
      return;
    const auto offset = [page](const double* at) {
      return reinterpret_cast<std::uintptr_t>(at) % page;
    };
    if (offset(own.data()) <= page / 2)
      own.front() = 0;
    // One base page before the end, which leaves the boundary's base page to its owner.
    if (offset(own.data() + own.size()) > page / 2)
      own[own.size() - std::min(own.size(), base_page() / sizeof(double))] = 0;
  }

  // Counted as in STREAM: the bytes that the program reads and writes. A plain store to a line that
  // is not cached first loads the line (write-allocate), which STREAM does not count.
  [[nodiscard]] json::Object work(const Kernel& kernel) const {
    const auto bytes = (kernel.arrays_read + 1) * count_ * sizeof(double);
    const auto allocated = settings_.nontemporal ? 0 : count_ * sizeof(double);
    return json::Object().add("bytes", bytes).add("traffic_bytes", bytes + allocated);
  }

  // The caches now hold dirty lines of a partner program, and writing them back would slow us down.
  // Running a quarter of the last sweep, at least a cache's worth of each array, restores the cache
  // state of back-to-back sweeps; it writes the values that are already there.
  void restore_caches(std::size_t member, bool has_warmed_up_only) noexcept {
    const auto after_warm_up = settings_.only == std::size_t{0} ? kernels.size() - 1 : 0;
    const auto after_round = settings_.only.value_or(kernels.size() - 1);
    const auto& kernel = kernels[has_warmed_up_only ? after_warm_up : after_round];
    const auto own = part(member);
    const auto count = own.c.size();
    const auto tail = own.part(count - count / 4 / line_doubles * line_doubles, count);
    (settings_.nontemporal ? kernel.nontemporal : kernel.plain)(tail, scalar_);
  }

  void round(std::size_t member, Purpose purpose) noexcept {
    const auto own = part(member);
    // Each kernel must find the output of another one, so that a kernel that writes nothing is
    // detected: warming up backwards leaves a different output behind than a round does, except if
    // only the first kernel is measured.
    const bool forwards = (purpose == Purpose::warm_up) == (settings_.only == std::size_t{0});
    for (std::size_t turn = 0; turn < kernels.size(); ++turn) {
      const auto k = forwards ? turn : kernels.size() - 1 - turn;
      if (purpose == Purpose::measure && !is_measured(k))
        continue;
      const auto sweep = settings_.nontemporal ? kernels[k].nontemporal : kernels[k].plain;
      team_.barrier().wait();
      stamps_[member] = timed([&] { sweep(own, scalar_); });
      team_.barrier().wait();
      if (member == 0 && purpose != Purpose::warm_up && is_measured(k))
        elapsed_s_[k].push_back(elapsed_s(stamps_));
      if (purpose == Purpose::measure_and_compare)
        wrong_[member][k] += kernels[k].wrong_elements(own, scalar_);
    }
  }

  Team& team_;
  const Settings settings_;
  const double scalar_;
  const std::size_t count_; // elements per array
  Pages pages_;
  Arrays arrays_;
  std::vector<Interval> stamps_;                               // per member, for one sweep
  std::vector<std::optional<int>> nodes_;                      // node of each member's memory
  std::array<std::vector<double>, kernels.size()> elapsed_s_;  // per kernel and round
  std::vector<std::array<std::size_t, kernels.size()>> wrong_; // per member and kernel
  bool last_ = false;
};

void measure(Program& program, const Settings& settings) {
  Team team(program.cpus);
  program.hello(team);
  if (settings.nontemporal && !has_nontemporal_store)
    throw Skip("needs non-temporal stores, which this target does not have");
  Stream stream(team, settings, do_not_fold(3.0));
  stream.measure(program);
  stream.report(program);
}

} // namespace

int main(int argc, char** argv) {
  return seatrial::run_program("stream", argc, argv, prepare, measure);
}
