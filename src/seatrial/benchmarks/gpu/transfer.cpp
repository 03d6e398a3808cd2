// gpu.transfer: copies between host memory and each device's memory, one device at a time and all
// at once, which shows shared paths.
// untimed: -O1
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "available_memory.hpp"
#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/embedded.hpp"
#include "device/host_memory.hpp"
#include "device/timing.hpp"
#include "device/workload.hpp"
#include "mpi/pattern.hpp"

SEATRIAL_EMBEDDED_TEXT(seatrial_kernels, "transfer.cl")

namespace seatrial {
namespace {

using namespace device;

constexpr unsigned group = 256;
constexpr unsigned groups_per_unit = 8;
constexpr std::uint64_t KiB = 1024;
constexpr std::uint64_t MiB = 1024 * KiB;
constexpr std::uint64_t smallest = KiB;
constexpr std::uint64_t growth = 4;
// Below this size the device's markers cost as much as the copies between them.
constexpr std::uint64_t marked_from = 64 * KiB;
constexpr std::uint32_t poisoned = 0xffffffff;

struct Settings {
  HostKind host;
  std::uint64_t largest; // 0: chosen for the device
  std::optional<int>
      node; // NUMA node of the host memory; none: that of the CPU that drives the device
};

[[nodiscard]] Settings prepare(Arguments& arguments) {
  Settings settings{
      .host = host_kind(arguments.choice("--host", "pinned", {"pinned", "pageable", "mapped"})),
      .largest = arguments.number<std::uint64_t>("--largest", 0, 0, std::uint64_t{1} << 53),
      .node = std::nullopt};
  if (settings.largest % sizeof(std::uint64_t) != 0)
    throw Failure(Exit::usage, "--largest: expected a multiple of 8 B");
  if (const int node = arguments.number("--memory-node", -1, 0, 1023); node >= 0)
    settings.node = node;
  return settings;
}

using Carry = Kernel<const std::uint64_t*, std::uint64_t*, std::uint64_t>;

[[nodiscard]] Source source() {
  return {.name = "transfer.cl",
          .text = seatrial_kernels(),
          .defines = {},
          .kernels = {Carry::declared("carry")}};
}

enum class Way { h2d, d2h, both };

[[nodiscard]] std::string name_of(Way way) {
  return way == Way::h2d ? "h2d" : way == Way::d2h ? "d2h" : "both";
}

// One measurement: a size, one direction or both at once, on one device or on all at once.
struct Step {
  Way way;
  std::uint64_t size;
  bool is_together;
};

// Powers of 4 from 1 KiB, and the largest size itself. The caches of a CPU used as a device hold
// little more than 16 MiB.
[[nodiscard]] std::vector<Step> steps_for(const ChosenDevices& chosen, std::uint64_t asked) {
  const auto largest = asked != 0                 ? std::max(asked, smallest)
                       : chosen[0].facts().is_cpu ? 16 * MiB
                                                  : 64 * MiB;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = smallest; size < largest; size *= growth)
    sizes.push_back(size);
  sizes.push_back(largest);
  std::vector<Step> steps;
  for (const auto size : sizes)
    for (const auto way : {Way::h2d, Way::d2h, Way::both}) {
      steps.push_back({.way = way, .size = size, .is_together = false});
      if (chosen.size() > 1)
        steps.push_back({.way = way, .size = size, .is_together = true});
    }
  return steps;
}

// The link between the host and one device, with a queue for each direction.
class Link {
public:
  Link(Device& device, bool is_optimised, const Settings& settings, const std::vector<Step>& steps)
      : seed_(2 * static_cast<std::uint64_t>(device.facts().index) + 1), kind_(settings.host),
        bytes_(steps.back().size), down_(device.queue()), up_(device.queue()),
        in_(device, bytes_ / sizeof(std::uint64_t)), out_(device, bytes_ / sizeof(std::uint64_t)),
        sent_(device, kind_, bytes_, settings.node),
        received_(device, kind_, bytes_, settings.node), back_(bytes_), timers_(steps.size()) {
    if (kind_ == HostKind::mapped) {
      module_ = device.build(source_for(device, source(), is_optimised));
      carry_.emplace(*module_, "carry");
      grid_ = {.groups =
                   (device.facts().is_cpu ? 1 : groups_per_unit) * device.facts().compute_units,
               .items = group};
    }
    mpi::fill(back_, seed_ + 1);
    up_->write(out_.memory(), 0, back_.data(), bytes_);
    up_->finish();
    mpi::fill(sent_.first(bytes_), seed_);
  }

  // One copy onto poisoned memory, or one in each direction; returns the number of wrong bytes.
  [[nodiscard]] double wrong_of(const Step& step) {
    poison();
    static_cast<void>(batch_time_s(step, 1));
    return (step.way == Way::d2h ? 0 : wrong_down(step.size)) +
           (step.way == Way::h2d ? 0 : wrong_up(step.size));
  }

  void poison() {
    mpi::poison(received_.first(bytes_), seed_ + 1);
    down_->fill(in_.memory(), 0, poisoned, bytes_);
    down_->finish();
  }

  // The number of wrong bytes in device memory, which is read back by a different method than the
  // measured one.
  [[nodiscard]] double wrong_down(std::uint64_t size) {
    mpi::poison(back_, seed_);
    down_->read(back_.data(), in_.memory(), 0, size);
    down_->finish();
    return static_cast<double>(mpi::wrong_bytes({back_.data(), size}, seed_));
  }
  [[nodiscard]] double wrong_up(std::uint64_t size) const {
    return static_cast<double>(mpi::wrong_bytes(received_.first(size), seed_ + 1));
  }

  [[nodiscard]] Timed sample(const Step& step, std::size_t number) {
    auto& timer = timers_[number];
    if (!timer)
      timer = std::make_unique<BatchTimer>(
          [this, step](std::uint64_t copies) { return batch_time_s(step, copies); });
    latest_ = timer->sample();
    return latest_;
  }

  // Repeats the same load, so that other devices still see a busy link.
  void load(const Step& step) { static_cast<void>(batch_time_s(step, latest_.runs)); }

  [[nodiscard]] PageNodes placed(std::optional<int> wanted) const {
    const auto node = wanted ? wanted : own_node();
    if (!node)
      return {};
    auto found = sent_.placed(*node);
    const auto others = received_.placed(*node);
    found.looked_at += others.looked_at;
    found.astray += others.astray;
    return found;
  }

private:
  void enqueue_down(std::uint64_t size) {
    if (carry_)
      (*carry_)(*down_, grid_, sent_.array(), in_, size / sizeof(std::uint64_t));
    else
      down_->write(in_.memory(), 0, sent_.data(), size);
  }
  void enqueue_up(std::uint64_t size) {
    if (carry_)
      (*carry_)(*up_, grid_, out_, received_.array(), size / sizeof(std::uint64_t));
    else
      up_->read(received_.data(), out_.memory(), 0, size);
  }

  // Copies one after another in each direction; waits only for the last.
  [[nodiscard]] double batch_time_s(const Step& step, std::uint64_t copies) {
    const auto enqueue = [&] {
      for (std::uint64_t i = 0; i < copies; ++i) {
        if (step.way != Way::d2h)
          enqueue_down(step.size);
        if (step.way != Way::h2d)
          enqueue_up(step.size);
        if (step.way ==
            Way::both) { // otherwise one queue would start when the other is nearly done
          down_->flush();
          up_->flush();
        }
      }
    };
    auto& queue = step.way == Way::d2h ? *up_ : *down_;
    if (step.way == Way::both || kind_ == HostKind::pageable || step.size < marked_from)
      return timed([&] {
               enqueue();
               down_->finish();
               up_->finish();
             })
          .elapsed_s();
    const auto begin = queue.mark();
    enqueue();
    const auto end = queue.mark();
    queue.finish();
    return queue.seconds_between(*begin, *end);
  }

  std::uint64_t seed_; // for data to the device; seed + 1 is for data to the host
  HostKind kind_;
  std::uint64_t bytes_;
  std::unique_ptr<Queue> down_;
  std::unique_ptr<Queue> up_;
  std::unique_ptr<Module> module_;
  std::optional<Carry> carry_;
  Grid grid_{};
  Array<std::uint64_t> in_;
  Array<std::uint64_t> out_;
  HostMemory sent_;
  HostMemory received_;
  std::vector<std::byte> back_;
  std::vector<std::unique_ptr<BatchTimer>> timers_;
  Timed latest_{.runs = 1, .elapsed_s = 0};
};

void require_room(const ChosenDevices& chosen, std::uint64_t bytes) {
  const auto host = available_memory();
  if (3 * bytes * chosen.size() > host.bytes / 2)
    throw Skip("three buffers of " + std::to_string(bytes) +
               " B for each device would take more than half of the available memory (" +
               host.source + ")");
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (2 * bytes > chosen[i].free_bytes() / 2)
      throw Skip("two buffers of " + std::to_string(bytes) +
                 " B would take more than half of the device's memory");
}

class Measurement {
public:
  Measurement(Team& team, const ChosenDevices& chosen, const Settings& settings)
      : team_(team), chosen_(chosen), settings_(settings),
        steps_(steps_for(chosen, settings.largest)), links_(chosen.size()),
        samples_(chosen.size()) {
    require_room(chosen, steps_.back().size);
    team_.run([&](std::size_t member) {
      links_[member] =
          std::make_unique<Link>(chosen_[member], chosen_.is_optimised(), settings_, steps_);
    });
  }

  // Runs each step once on poisoned memory, including those with all devices at once.
  [[nodiscard]] double wrong_before() {
    std::vector<double> wrong(links_.size());
    for (const auto& step : steps_)
      on_devices(step,
                 [&](std::size_t member) { wrong[member] += links_[member]->wrong_of(step); });
    team_.run([&](std::size_t member) { links_[member]->poison(); });
    return sum(wrong);
  }

  // A slow drift of the machine affects all steps equally.
  void run_round(bool is_kept) {
    for (std::size_t number = 0; number < steps_.size(); ++number) {
      arrived_ = 0;
      on_devices(steps_[number], [&](std::size_t member) {
        const auto timed = sampled(member, number);
        if (is_kept)
          samples_[member].push_back(timed);
      });
    }
  }

  // The number of wrong bytes left by the last measured copies of the largest size, in each
  // direction.
  [[nodiscard]] double wrong_after() {
    std::vector<double> wrong(links_.size());
    team_.run([&](std::size_t member) {
      wrong[member] = links_[member]->wrong_down(steps_.back().size) +
                      links_[member]->wrong_up(steps_.back().size);
    });
    return sum(wrong);
  }

  [[nodiscard]] std::size_t whole() const { return whole_rounds(samples_, steps_.size()); }

  void report(Program& program) {
    std::vector<PageNodes> placed(links_.size());
    team_.run([&](std::size_t member) { placed[member] = links_[member]->placed(settings_.node); });
    for (std::size_t taken = 0; taken < samples_[0].size(); ++taken)
      report_step(program, steps_[taken % steps_.size()], taken, placed);
    team_.run([&](std::size_t member) {
      links_[member].reset();
    }); // destroyed by the thread that created it
  }

private:
  [[nodiscard]] static double sum(const std::vector<double>& numbers) {
    double all = 0;
    for (const double each : numbers)
      all += each;
    return all;
  }

  // Runs on one device after another, or on all at once. Idle members sleep.
  template <class Action>
  void on_devices(const Step& step, Action action) {
    if (step.is_together) {
      team_.run([&](std::size_t member) {
        team_.barrier().wait();
        or_end([&] { action(member); });
      });
      return;
    }
    for (std::size_t member = 0; member < links_.size(); ++member)
      team_.run_on(std::span(&member, 1), action);
  }

  // With several devices each keeps copying until all have their sample, so that none is measured
  // after another has stopped.
  [[nodiscard]] Timed sampled(std::size_t member, std::size_t number) {
    const auto& step = steps_[number];
    const auto timed = links_[member]->sample(step, number);
    if (step.is_together)
      for (++arrived_; arrived_ < links_.size();)
        links_[member]->load(step);
    return timed;
  }

  [[nodiscard]] static double bytes_of(const Step& step, const Timed& timed) {
    return static_cast<double>(timed.runs * step.size * (step.way == Way::both ? 2 : 1));
  }

  void report_step(Program& program, const Step& step, std::size_t taken,
                   const std::vector<PageNodes>& placed) const {
    const auto series = name_of(step.way);
    const auto i = taken / steps_.size();
    double slowest_s = 0;
    double rate = 0;
    bool is_whole = true;
    for (std::size_t member = 0; member < samples_.size(); ++member) {
      const auto& timed = samples_[member][taken];
      if (!(timed.elapsed_s > 0)) {
        is_whole = false;
        continue;
      }
      slowest_s = std::max(slowest_s, timed.elapsed_s);
      rate += bytes_of(step, timed) / timed.elapsed_s;
      program.add(sample_event(step.is_together ? series + "_together" : series, i, timed.elapsed_s)
                      .add("point", json::Object()
                                        .add("size_B", step.size)
                                        .add("device", chosen_[member].facts().index))
                      .add("work", json::Object().add("bytes", bytes_of(step, timed)))
                      .add("device", facts_for_limit(chosen_, 1, member))
                      .add("pages_looked_at", placed[member].looked_at)
                      .add("pages_astray", placed[member].astray));
    }
    if (step.is_together && is_whole)
      program.add(sample_event(series + "_all", i, slowest_s)
                      .add("point", json::Object().add("size_B", step.size))
                      .add("work", json::Object().add("bytes", rate * slowest_s))
                      .add("device", facts_for_limit(chosen_, chosen_.size()))
                      .add("pages_looked_at", std::size_t{0})
                      .add("pages_astray", std::size_t{0}));
  }

  Team& team_;
  const ChosenDevices& chosen_;
  const Settings& settings_;
  std::vector<Step> steps_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::vector<Timed>> samples_; // per member: by round, then by step
  std::atomic<std::size_t> arrived_{0};
};

void measure(Program& program, Team& team, const ChosenDevices& chosen, const Settings& settings) {
  Measurement measurement(team, chosen, settings);
  double wrong = measurement.wrong_before();
  measurement.run_round(false);
  std::size_t done = 0;
  for (const SampleCount count(program); done == 0 || !count.is_enough(done, measurement.whole());
       ++done)
    measurement.run_round(true);
  wrong += measurement.wrong_after();
  measurement.report(program);
  program.check("error", wrong);
}

} // namespace
} // namespace seatrial

int main(int argc, char** argv) {
  return seatrial::device::run_program(
      "transfer", argc, argv, seatrial::prepare, [] { return std::vector{seatrial::source()}; },
      seatrial::measure);
}
