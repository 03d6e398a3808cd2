// A benchmark's work on one device, and how it is measured on one device (S), on several at once
// that do not know of each other (EP), or on several that share one problem (TP).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "device/device_program.hpp"
#include "device/timing.hpp"

namespace seatrial::device {

// Made for one device, run often. All its memory is its own.
class Workload {
public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  [[nodiscard]] virtual Queue& queue() = 0;
  // Hands one run to the queue.
  virtual void enqueue() = 0;
  // What one run does, as counted: {"bytes": ...} or {"ops": ...}.
  [[nodiscard]] virtual std::vector<std::pair<std::string, double>> work() const = 0;
  // Fills whatever a run must write with values that no right result has.
  virtual void poison() = 0;
  // How far the results of the last run are from the reference, as the benchmark's check wants it;
  // NaN where a result is none.
  [[nodiscard]] virtual double error() = 0;
};

// The worst of errors, of which none at all is infinitely bad.
class WorstError {
public:
  void add(double error) noexcept { worst_ = std::isnan(error) ? error : larger(error); }
  [[nodiscard]] double value() const noexcept {
    return std::isnan(worst_) || worst_ >= 0 ? worst_ : std::numeric_limits<double>::infinity();
  }

private:
  [[nodiscard]] double larger(double error) const noexcept {
    return std::isnan(worst_) ? worst_ : std::max(worst_, error);
  }
  double worst_ = -1;
};

// One run on poisoned memory, and how far it is from the reference.
[[nodiscard]] inline double checked_run(Workload& workload) {
  workload.poison();
  workload.queue().finish();
  workload.enqueue();
  workload.queue().finish();
  return workload.error();
}

[[nodiscard]] inline json::Object times(const Workload& workload, double runs) {
  json::Object work;
  for (const auto& [what, amount] : workload.work())
    work.add(what, amount * runs);
  return work;
}

// What a sample's limit follows from: it is of so many devices, from the `first` chosen one on.
[[nodiscard]] inline json::Object limiting_facts(const Chosen& chosen, std::size_t devices,
                                                 std::size_t first = 0) {
  const auto& facts = chosen[first].facts();
  std::vector<std::string> pci; // "" where the driver does not tell
  for (std::size_t i = first; i < first + devices; ++i)
    pci.push_back(chosen[i].facts().pci);
  return json::Object()
      .add("devices", devices)
      .add("pci", pci)
      .add("compute_units", facts.compute_units)
      .add("clock_Hz", facts.clock_Hz)
      .add("memory_clock_Hz", facts.memory_clock_Hz)
      .add("memory_bus_bits", facts.memory_bus_bits)
      .add("cache_bytes", facts.cache_bytes)
      .add("capability", facts.capability)
      .add("name", facts.name);
}

// For what others wait for at a barrier: an exception would leave them there for ever, so it ends
// the program at once, with its words and its exit status.
template <class Action>
void or_end(Action action) noexcept {
  const auto end = [](const char* why, Exit status) {
    std::fprintf(stderr, "a device failed: %s\n", why);
    std::fflush(stderr);
    std::_Exit(static_cast<int>(status));
  };
  try {
    action();
  } catch (const Failure& failure) {
    end(failure.what(), failure.status());
  } catch (const std::exception& error) {
    end(error.what(), Exit::software);
  }
}

// How many rounds of samples are taken: for as long as the program's slice, within reason. Those
// without a sample of some device are made up for.
struct SampleCount {
  static constexpr std::size_t least = 5;
  static constexpr std::size_t most = 200;
  static constexpr double late_times = 20; // so much beyond the slice one whole round is enough

  explicit SampleCount(double slice_s) : slice_s_(slice_s) {}
  [[nodiscard]] bool is_enough(std::size_t done, std::size_t whole) const {
    const double spent_s = seconds(Clock::now() - begin_);
    return done >= most || (whole >= least && spent_s >= slice_s_) ||
           (whole >= 1 && spent_s >= late_times * slice_s_);
  }

private:
  double slice_s_;
  Clock::time_point begin_ = Clock::now();
};

// Rounds in which every device has a sample, at the point that has the fewest. Each device's
// samples come round by round, point by point.
[[nodiscard]] inline std::size_t whole_rounds(const std::vector<std::vector<Timed>>& samples,
                                              std::size_t points) {
  std::vector<std::size_t> whole(points);
  for (std::size_t i = 0; i < samples[0].size(); ++i)
    whole[i % points] += std::ranges::all_of(
        samples, [i](const auto& of_device) { return of_device[i].elapsed_s > 0; });
  return std::ranges::min(whole);
}

// Samples of a series by the devices' clocks, on each chosen device at once: `make(device)` gives a
// device's workload. Returns the error of the worst device, before and after the measurement.
//
// On one device a sample is of that. On several there is one for each, with the device as its
// point, and one of the series NAME_all: the work of all over the time of the slowest. `point` are
// the coordinates of what this call measures, for programs that measure several things; they take
// the worst error of all calls as their check.
template <class Make>
[[nodiscard]] double measured_each(Program& program, Team& team, const Chosen& chosen,
                                   const std::string& series,
                                   const std::optional<json::Object>& point, Make make) {
  std::vector<std::unique_ptr<Workload>> workloads(chosen.size());
  std::vector<double> errors(2 * chosen.size());
  std::vector<std::vector<Timed>> samples(chosen.size());
  team.run([&](std::size_t member) {
    workloads[member] = make(chosen[member]);
    errors[2 * member] = checked_run(*workloads[member]);
  });
  bool is_last = false;
  const SampleCount count(program.slice_s);
  team.run([&](std::size_t member) {
    or_end([&] {
      auto& workload = *workloads[member];
      auto timer = device_timer(workload.queue(), [&] { workload.enqueue(); });
      for (std::size_t done = 0;; ++done) {
        team.barrier().wait(); // all samples are there
        if (member == 0)
          is_last = count.is_enough(done, whole_rounds(samples, 1));
        team.barrier().wait(); // it is decided again only after all have read it and come back
        if (is_last)
          break;
        samples[member].push_back(timer.sample());
      }
    });
  });
  team.run([&](std::size_t member) { errors[2 * member + 1] = workloads[member]->error(); });
  WorstError worst;
  for (const double error : errors)
    worst.add(error);
  for (std::size_t i = 0; i < samples[0].size(); ++i) {
    double slowest_s = 0;
    double runs = 0;
    for (std::size_t member = 0; member < chosen.size(); ++member) {
      const auto& sample = samples[member][i];
      if (!(sample.elapsed_s > 0))
        continue;
      slowest_s = std::max(slowest_s, sample.elapsed_s / static_cast<double>(sample.runs));
      runs += 1;
      auto event = sample_event(series, i, sample.elapsed_s)
                       .add("work", times(*workloads[member], static_cast<double>(sample.runs)))
                       .add("device", limiting_facts(chosen, 1, member));
      if (chosen.size() > 1)
        event.add("point", json::Object(point.value_or(json::Object()))
                               .add("device", chosen[member].facts().index));
      else if (point)
        event.add("point", *point);
      program.add(event);
    }
    if (chosen.size() > 1 && runs == static_cast<double>(chosen.size())) {
      auto event = sample_event(series + "_all", i, slowest_s)
                       .add("work", times(*workloads[0], runs))
                       .add("device", limiting_facts(chosen, chosen.size()));
      if (point)
        event.add("point", *point);
      program.add(event);
    }
  }
  return worst.value();
}

// The same for programs that measure one thing; the error is their check.
template <class Make>
void measure_each(Program& program, Team& team, const Chosen& chosen, const std::string& series,
                  Make make) {
  program.check("error", measured_each(program, team, chosen, series, std::nullopt, make));
}

// A device's share of work that several do together.
class Share {
public:
  Share() = default;
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  virtual ~Share() = default;

  // One run, to its end on the device. All members call it at once, and may meet at the team's
  // barrier in it.
  virtual void run() = 0;
  // What one run of all shares does together.
  [[nodiscard]] virtual std::vector<std::pair<std::string, double>> work() const = 0;
  virtual void poison() = 0;
  [[nodiscard]] virtual double error() = 0;
};

// Samples of a series by the host's clock, from the first device's start to the last one's end:
// `make(member)` gives a member's share.
template <class Make>
void measure_together(Program& program, Team& team, const Chosen& chosen, const std::string& series,
                      Make make) {
  constexpr double sample_s = 10e-3;
  std::vector<std::unique_ptr<Share>> shares(chosen.size());
  std::vector<double> errors(2 * chosen.size());
  std::vector<std::vector<Interval>> seen(chosen.size());
  team.run([&](std::size_t member) {
    shares[member] = make(member);
    shares[member]->poison();
  });
  std::uint64_t runs = 1;
  const auto batch = [&](std::size_t member) {
    return timed([&] {
      for (std::uint64_t i = 0; i < runs; ++i)
        or_end([&] { shares[member]->run(); });
    });
  };
  team.run([&](std::size_t member) { static_cast<void>(batch(member)); });
  team.run([&](std::size_t member) { errors[2 * member] = shares[member]->error(); });
  double trial_s = 0;
  team.run([&](std::size_t member) {
    const auto interval = batch(member);
    if (member == 0)
      trial_s = interval.elapsed_s();
  });
  runs = static_cast<std::uint64_t>(std::clamp(sample_s / std::max(trial_s, 1e-7), 1.0, 1e5));
  bool is_last = false;
  const SampleCount count(program.slice_s);
  team.run([&](std::size_t member) {
    for (std::size_t done = 0;; ++done) {
      if (member == 0)
        is_last = count.is_enough(done, done);
      team.barrier().wait();
      const bool is_over = is_last;
      team.barrier().wait(); // nobody decides again before all have read it
      if (is_over)
        break;
      seen[member].push_back(batch(member));
    }
  });
  team.run([&](std::size_t member) { errors[2 * member + 1] = shares[member]->error(); });
  WorstError worst;
  for (const double error : errors)
    worst.add(error);
  for (std::size_t i = 0; i < seen[0].size(); ++i) {
    std::vector<Interval> intervals;
    for (const auto& each : seen)
      intervals.push_back(each[i]);
    json::Object work;
    for (const auto& [what, amount] : shares[0]->work())
      work.add(what, amount * static_cast<double>(runs));
    program.add(sample_event(series, i, elapsed_s(intervals))
                    .add("work", work)
                    .add("device", limiting_facts(chosen, chosen.size())));
  }
  program.check("error", worst.value());
}

} // namespace seatrial::device
