// gpu.p2p: copies between all pairs of devices, in one direction, in both at once, and of a few
// bytes; and within each device.
// untimed: -O1
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/peers.hpp"
#include "device/timing.hpp"
#include "device/workload.hpp"

namespace seatrial {
namespace {

using namespace device;

constexpr std::uint64_t MiB = std::uint64_t{1} << 20;

struct Settings {
  bool is_on;            // use peer access if the devices support it
  std::uint64_t size;    // 0: chosen for the devices
  std::uint64_t message; // bytes of a copy in the latency test
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  return {.is_on = arguments.flag("--p2p", true),
          .size = arguments.number<std::uint64_t>("--size", 0, 0, std::uint64_t{1} << 40),
          .message = arguments.number<std::uint64_t>("--message", 4, 1, MiB)};
}

// The path of the data: within one device; directly between devices; through the driver without
// peer access; or through host memory, forwarded by this program.
enum class Path { own, peer, driver, host };

[[nodiscard]] const char* word_of(Path path) {
  constexpr std::array words = {"own", "peer", "driver", "host"};
  return words[static_cast<std::size_t>(path)];
}

enum class What { latency, bandwidth, both };
constexpr std::array all_modes = {What::latency, What::bandwidth, What::both};

[[nodiscard]] const char* word_of(What what) {
  constexpr std::array words = {"latency", "bandwidth", "both"};
  return words[static_cast<std::size_t>(what)];
}

struct Pair {
  std::size_t source;
  std::size_t target;
};

class Matrix {
public:
  Matrix(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings)
      : program_(program), team_(team), chosen_(chosen), settings_(settings),
        size_(settings.size != 0         ? settings.size
              : chosen[0].facts().is_cpu ? 16 * MiB
                                         : 64 * MiB),
        buffers_(chosen.size()), last_sender_(chosen.size()) {
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if (2 * size_ > chosen[i].free_bytes() / 2)
        throw Skip("two buffers of " + std::to_string(size_) +
                   " B would take more than half of the device's memory");
    for (std::size_t source = 0; source < chosen.size(); ++source)
      for (std::size_t target = 0; target < chosen.size(); ++target)
        pairs_.push_back({.source = source, .target = target});
    timers_.resize(pairs_.size() * all_modes.size());
    team_.run([&](std::size_t member) {
      buffers_[member] =
          std::make_unique<PeerBuffers>(chosen_[member], std::max(size_, settings_.message));
    });
  }

  // Copies once between every pair in every mode, onto poisoned memory.
  [[nodiscard]] double wrong_before() {
    double wrong = 0;
    for_each_pair([&](const Pair& pair, std::size_t) {
      for (const auto what : all_modes)
        wrong += wrong_of(pair, what);
    });
    for (auto& seat : buffers_)
      seat->poison();
    return wrong;
  }

  void run_round(bool is_kept) {
    for_each_pair([&](const Pair& pair, std::size_t number) {
      for (const auto what : all_modes) {
        auto& timer = timers_[number * all_modes.size() + static_cast<std::size_t>(what)];
        if (!timer)
          timer = std::make_unique<BatchTimer>([this, pair, what](std::uint64_t copies) {
            return batch_time_s(pair, what, copies);
          });
        const auto timed = timer->sample();
        if (is_kept)
          samples_[0].push_back(timed);
      }
    });
  }

  [[nodiscard]] std::size_t whole() const { return whole_rounds(samples_, timers_.size()); }

  // The number of wrong bytes that the last measured copies left in every device.
  [[nodiscard]] double wrong_after() {
    double wrong = 0;
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      wrong += buffers_[i]->wrong(buffers_[last_sender_[i]]->seed, size_);
    return wrong;
  }

  void report() {
    std::vector<json::Object> paths;
    for (const auto& pair : pairs_)
      paths.push_back(point_of(pair).add("path", word_of(path_of(pair))));
    program_.note("paths", paths);
    for (std::size_t taken = 0; taken < samples_[0].size(); ++taken) {
      const auto& timed = samples_[0][taken];
      const auto number = taken % timers_.size();
      if (timed.elapsed_s > 0)
        report_sample(pairs_[number / all_modes.size()], all_modes[number % all_modes.size()],
                      taken / timers_.size(), timed);
    }
    team_.run([&](std::size_t member) {
      buffers_[member].reset();
    }); // destroyed by the thread that created it
  }

private:
  // The source's thread runs the copies; the others sleep.
  template <class Action>
  void for_each_pair(Action action) {
    for (std::size_t number = 0; number < pairs_.size(); ++number) {
      const auto& pair = pairs_[number];
      team_.run_on(std::span(&pair.source, 1), [&](std::size_t) {
        const PeerAccess peer_access(chosen_[pair.source], chosen_[pair.target],
                                     path_of(pair) == Path::peer);
        action(pair, number);
      });
    }
  }

  [[nodiscard]] Path path_of(const Pair& pair) const {
    const auto& source = chosen_[pair.source];
    const auto& target = chosen_[pair.target];
    if (pair.source == pair.target)
      return Path::own;
    if (source.facts().backend != "cuda") // an OpenCL copy cannot leave its single-device context
      return Path::host;
    return settings_.is_on && source.can_reach(target) && target.can_reach(source) ? Path::peer
                                                                                   : Path::driver;
  }

  [[nodiscard]] double wrong_of(const Pair& pair, What what) {
    auto& source = *buffers_[pair.source];
    auto& target = *buffers_[pair.target];
    source.poison();
    target.poison();
    static_cast<void>(batch_time_s(pair, what, 1));
    const auto size = what == What::latency ? settings_.message : size_;
    const double wrong = target.wrong(source.seed, size);
    return what == What::both ? wrong + source.wrong(target.seed, size) : wrong;
  }

  [[nodiscard]] double batch_time_s(const Pair& pair, What what, std::uint64_t copies) {
    auto& source = *buffers_[pair.source];
    auto& target = *buffers_[pair.target];
    const auto path = path_of(pair);
    if (what != What::latency) {
      last_sender_[pair.target] = pair.source;
      if (what == What::both)
        last_sender_[pair.source] = pair.target;
    }
    if (path == Path::host)
      return relayed_s(source, target, what, copies);
    if (what == What::both)
      return both_s(source, target, copies);
    const auto enqueue = [&] {
      const auto size = what == What::latency ? settings_.message : size_;
      for (std::uint64_t i = 0; i < copies; ++i)
        source.sending->copy(*target.inbox, 0, *source.data, 0, size);
    };
    if (what == What::latency)
      return timed([&] {
               enqueue();
               source.sending->finish();
             })
          .elapsed_s();
    const auto begin = source.sending->mark();
    enqueue();
    const auto end = source.sending->mark();
    source.sending->finish();
    return source.sending->seconds_between(*begin, *end);
  }

  // Within one device each of two queues copies half of the data.
  [[nodiscard]] double both_s(PeerBuffers& source, PeerBuffers& target,
                              std::uint64_t copies) const {
    const bool is_own = &source == &target;
    const auto half = size_ / 2;
    auto& there = *source.sending;
    auto& back = is_own ? *source.receiving : *target.sending;
    return timed([&] {
             for (std::uint64_t i = 0; i < copies; ++i) {
               there.copy(*target.inbox, 0, *source.data, 0, is_own ? half : size_);
               there.flush();
               if (is_own)
                 back.copy(*target.inbox, half, *source.data, half, size_ - half);
               else
                 back.copy(*source.inbox, 0, *target.data, 0, size_);
               back.flush();
             }
             there.finish();
             back.finish();
           })
        .elapsed_s();
  }

  [[nodiscard]] double relayed_s(PeerBuffers& source, PeerBuffers& target, What what,
                                 std::uint64_t copies) const {
    const auto size = what == What::latency ? settings_.message : size_;
    Relay there(source, target, size, copies);
    Relay back(target, source, size, what == What::both ? copies : 0);
    return timed([&] {
             while (!there.is_done() || !back.is_done()) {
               there.enqueue();
               back.enqueue();
               there.finish();
               back.finish();
             }
           })
        .elapsed_s();
  }

  [[nodiscard]] json::Object point_of(const Pair& pair) const {
    return json::Object()
        .add("source", chosen_[pair.source].facts().index)
        .add("target", chosen_[pair.target].facts().index);
  }

  // Within a device each byte is read and written, and counts twice.
  void report_sample(const Pair& pair, What what, std::size_t i, const Timed& timed) {
    const auto& source = chosen_[pair.source].facts();
    const bool is_twice = what == What::both || pair.source == pair.target;
    json::Object work;
    if (what == What::latency)
      work.add("ops", timed.runs);
    else
      work.add("bytes", timed.runs * size_ * (is_twice ? 2 : 1));
    program_.add(
        sample_event(word_of(what), i, timed.elapsed_s)
            .add("point", point_of(pair))
            .add("work", work)
            .add("path", word_of(path_of(pair)))
            .add("device", json::Object()
                               .add("devices", 2)
                               .add("pci", std::array{source.pci, chosen_[pair.target].facts().pci})
                               .add("capability", source.capability)
                               .add("name", source.name)));
  }

  Program& program_;
  Team& team_;
  const ChosenDevices& chosen_;
  const Settings& settings_;
  std::uint64_t size_;
  std::vector<Pair> pairs_;
  std::vector<std::unique_ptr<PeerBuffers>> buffers_;
  std::vector<std::size_t> last_sender_; // last sender to each device
  std::vector<std::unique_ptr<BatchTimer>> timers_;
  std::vector<std::vector<Timed>> samples_{1}; // by round, then by pair
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  if (chosen.size() < 2)
    throw Unsupported("devices",
                      "copies between devices need two or more devices; this machine has one, " +
                          chosen[0].facts().name);
  Matrix matrix(program, team, chosen, settings);
  double wrong = matrix.wrong_before();
  matrix.run_round(false);
  std::size_t done = 0;
  for (const SampleCount count(program); done == 0 || !count.is_enough(done, matrix.whole());
       ++done)
    matrix.run_round(true);
  wrong += matrix.wrong_after();
  matrix.report();
  program.check("error", wrong);
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program(
      "p2p", argc, argv, seatrial::prepare, [] { return std::vector<seatrial::device::Source>{}; },
      seatrial::measure);
}
