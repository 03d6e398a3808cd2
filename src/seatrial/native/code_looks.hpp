// Where the threads of other processes execute (code_samples.h), by file, while they are looked at.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "code_samples.h"
#include "mapped_files.hpp"

namespace seatrial {

// A thread is sampled from when it is first seen running, a few of each process only: the others do
// the same as a rule.
class CodeLooks {
public:
  struct Place {
    std::string file; // empty: code that is in no file
    std::uint64_t offset = 0;
    auto operator<=>(const Place&) const = default;
  };

  struct Seen {
    std::uint64_t samples = 0;
    std::array<std::uint8_t, SEATRIAL_CODE_BYTES> code{};
  };

  using Places = std::map<Place, Seen>;

  // Call for each thread that runs, between `begin` and `end` of a look.
  void see(pid_t process, pid_t thread) {
    auto& one = processes_[process];
    if (one.rings.contains(thread) || one.rings.size() == most_threads || open_ == most_rings)
      return;
    if (auto* const ring = seatrial_open_code_ring(thread)) {
      one.rings.emplace(thread, Ring(ring));
      ++open_;
    }
  }

  // Reads what was sampled since the last look. `present`: the processes that are still there.
  void read(const std::vector<pid_t>& present) {
    for (auto at = processes_.begin(); at != processes_.end();) {
      auto& [process, one] = *at;
      for (auto& [thread, ring] : one.rings)
        seatrial_drain_code_ring(ring.get(), process, &one.samples);
      note_files(process, one);
      if (std::ranges::find(present, process) != present.end()) {
        ++at;
        continue;
      }
      merge(one);
      open_ -= one.rings.size();
      at = processes_.erase(at);
    }
  }

  // After the last `read`.
  void finish() { read({}); }

  [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

  // Those seen most often, of the code itself and behind system calls.
  [[nodiscard]] std::vector<std::pair<Place, Seen>> spots() const { return most_of(spots_); }
  [[nodiscard]] std::vector<std::pair<Place, Seen>> returns() const { return most_of(returns_); }

private:
  static constexpr std::size_t most_threads = 4; // of a process
  static constexpr std::size_t most_rings = 32;  // 68 KiB each
  static constexpr std::size_t most_places = 512;
  static constexpr std::size_t most_listed = 6; // records of thousands of repeats have them all

  struct Close {
    void operator()(void* ring) const noexcept { seatrial_close_code_ring(ring); }
  };
  using Ring = std::unique_ptr<void, Close>;

  // Its files are noted while it is there: for addresses that were seen more than once.
  struct Process {
    std::map<pid_t, Ring> rings = {};
    seatrial_code_samples samples = {};
    std::map<std::uint64_t, Place> places = {};
  };

  template <class Visit>
  static void each_spot(const Process& one, Visit visit) {
    for (const auto& spot : one.samples.spots)
      if (spot.samples > 1)
        visit(spot, false);
    for (const auto& spot : one.samples.returns)
      if (spot.samples > 0)
        visit(spot, true);
  }

  static void note_files(pid_t process, Process& one) {
    std::vector<std::uint64_t> unknown;
    each_spot(one, [&](const seatrial_code_spot& spot, bool) {
      if (!one.places.contains(spot.address))
        unknown.push_back(spot.address);
    });
    if (unknown.empty())
      return;
    const auto maps = detail::all_of("/proc/" + std::to_string(process) + "/maps", 1 << 20);
    if (maps.empty())
      return;
    detail::for_each_line(maps, [&](std::string_view line) { note_line(line, unknown, one); });
    for (const auto address : unknown)
      one.places.try_emplace(address, Place{.file = {}, .offset = address});
  }

  // `7f0d18644000-7f0d1871b000 r-xp 00026000 fe:00 339380   /usr/lib/libc.so.6`
  static void note_line(std::string_view line, const std::vector<std::uint64_t>& unknown,
                        Process& one) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    const char* const last = line.data() + line.size();
    const char* at = std::from_chars(line.data(), last, begin, 16).ptr;
    if (last - at < 8)
      return;
    at = std::from_chars(at + 1, last, end, 16).ptr;
    if (last - at < 8)
      return;
    std::from_chars(at + 6, last, offset, 16); // behind " r-xp "
    const auto path = line.find('/');
    if (path == line.npos)
      return;
    for (const auto address : unknown)
      if (begin <= address && address < end)
        one.places.try_emplace(address, Place{.file = std::string(line.substr(path)),
                                              .offset = address - begin + offset});
  }

  void merge(const Process& one) {
    samples_ += one.samples.samples;
    each_spot(one, [&](const seatrial_code_spot& spot, bool is_return) {
      const auto found = one.places.find(spot.address);
      auto& into = is_return ? returns_ : spots_;
      const auto place =
          found == one.places.end() ? Place{.file = {}, .offset = spot.address} : found->second;
      if (into.size() == most_places && !into.contains(place))
        return;
      auto& sum = into[place];
      sum.samples += spot.samples;
      std::ranges::copy(spot.code, sum.code.begin());
    });
  }

  [[nodiscard]] static std::vector<std::pair<Place, Seen>> most_of(const Places& places) {
    std::vector<std::pair<Place, Seen>> all(places.begin(), places.end());
    std::ranges::stable_sort(all, std::greater{},
                             [](const auto& entry) { return entry.second.samples; });
    all.resize(std::min(all.size(), most_listed));
    return all;
  }

  // The kernel prepares itself for the first event of a system, which took 15 ms, and no longer
  // does when there is none left: this one, of our own thread, is there before anything is timed.
  Ring first_{seatrial_open_code_ring(0)};
  std::map<pid_t, Process> processes_;
  std::size_t open_ = 0;
  std::uint64_t samples_ = 0;
  Places spots_;
  Places returns_;
};

} // namespace seatrial
