// A benchmark's work on one device, measured on one device (S), on several independent devices at
// once (EP), or on several that share one problem (TP).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
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

// Created for one device and run many times. It owns all its memory.
class Workload {
public:
  Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;
  virtual ~Workload() = default;

  [[nodiscard]] virtual Queue& queue() = 0;
  // Submits one run to the queue.
  virtual void enqueue() = 0;
  // The work of one run: {"bytes": ...} or {"ops": ...}.
  [[nodiscard]] virtual std::vector<std::pair<std::string, double>> work() const = 0;
  // Fills all outputs with values that no correct result has.
  virtual void poison() = 0;
  // The error of the last run's results relative to the reference, in the unit of the benchmark's
  // check; NaN if a result is missing.
  [[nodiscard]] virtual double error() = 0;
};

// The largest of several errors; infinite if there is none.
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

// Runs once on poisoned memory and returns the error.
[[nodiscard]] double checked_run(Workload& workload);

// The facts from which a sample's limit is derived, for `devices` devices from the `first` chosen
// one on.
[[nodiscard]] json::Object facts_for_limit(const ChosenDevices& chosen, std::size_t devices,
                                           std::size_t first = 0);

// For code that other members wait for at a barrier: an exception would leave them waiting forever,
// so it ends the program at once with its message and exit status.
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

// Decides how many rounds of samples to take: as many as fit into the time slice, within limits.
// Rounds without a sample of some device are repeated.
struct SampleCount {
  static constexpr std::size_t least = 5;
  static constexpr std::size_t most = 200;
  static constexpr double late_times =
      20; // beyond this multiple of the slice one complete round is enough

  explicit SampleCount(Program& program)
      : phase_(program.phase), slice_s_(program.slice_s), most_(most_samples(most, slice_s_)) {
    phase_.begin();
  }

  [[nodiscard]] bool is_enough(std::size_t done, std::size_t whole) const {
    phase_.end();
    const double spent_s = seconds(Clock::now() - begin_);
    return done >= most_ || (whole >= least && spent_s >= slice_s_) ||
           (whole >= 1 && spent_s >= late_times * slice_s_);
  }

private:
  SamplingPhase& phase_;
  double slice_s_;
  std::size_t most_;
  Clock::time_point begin_ = Clock::now();
};

// The number of rounds in which every device has a sample, at the point with the fewest. Each
// device's samples are ordered by round, then by point.
[[nodiscard]] std::size_t whole_rounds(const std::vector<std::vector<Timed>>& samples,
                                       std::size_t points);

using WorkloadMaker = std::function<std::unique_ptr<Workload>(Device&)>;

// Takes samples of a series with the devices' clocks, on all chosen devices at once: `make(device)`
// creates a device's workload. Returns the worst error of any device, before and after the
// measurement.
//
// With several devices there is one sample per device, with the device in its point, and one in the
// series NAME_all: the work of all devices over the time of the slowest. `point` holds the
// coordinates of this call, for programs that measure several points; they report the worst error
// of all calls as their check.
[[nodiscard]] double measured_each(Program& program, Team& team, const ChosenDevices& chosen,
                                   const std::string& series,
                                   const std::optional<json::Object>& point,
                                   const WorkloadMaker& make);

// The same for programs that measure a single point; the error is their check.
void measure_each(Program& program, Team& team, const ChosenDevices& chosen,
                  const std::string& series, const WorkloadMaker& make);

// One device's share of the work on a common problem.
class Share {
public:
  Share() = default;
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  virtual ~Share() = default;

  // Does one run and waits for the device. All members call it at once; it may use the team's
  // barrier.
  virtual void run() = 0;
  // The total work of one run over all shares.
  [[nodiscard]] virtual std::vector<std::pair<std::string, double>> work() const = 0;
  virtual void poison() = 0;
  [[nodiscard]] virtual double error() = 0;
};

// Takes samples of a series with the host's clock, from the first device's start to the last one's
// end: `make(member)` creates a member's share.
using ShareMaker = std::function<std::unique_ptr<Share>(std::size_t member)>;
void measure_together(Program& program, Team& team, const ChosenDevices& chosen,
                      const std::string& series, const ShareMaker& make);

} // namespace seatrial::device
