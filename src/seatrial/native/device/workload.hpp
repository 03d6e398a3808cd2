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
[[nodiscard]] double checked_run(Workload& workload);

// What a sample's limit follows from: it is of so many devices, from the `first` chosen one on.
[[nodiscard]] json::Object limiting_facts(const Chosen& chosen, std::size_t devices,
                                          std::size_t first = 0);

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
[[nodiscard]] std::size_t whole_rounds(const std::vector<std::vector<Timed>>& samples,
                                       std::size_t points);

using WorkloadMaker = std::function<std::unique_ptr<Workload>(Device&)>;

// Samples of a series by the devices' clocks, on each chosen device at once: `make(device)` gives a
// device's workload. Returns the error of the worst device, before and after the measurement.
//
// On one device a sample is of that. On several there is one for each, with the device as its
// point, and one of the series NAME_all: the work of all over the time of the slowest. `point` are
// the coordinates of what this call measures, for programs that measure several things; they take
// the worst error of all calls as their check.
[[nodiscard]] double measured_each(Program& program, Team& team, const Chosen& chosen,
                                   const std::string& series,
                                   const std::optional<json::Object>& point,
                                   const WorkloadMaker& make);

// The same for programs that measure one thing; the error is their check.
void measure_each(Program& program, Team& team, const Chosen& chosen, const std::string& series,
                  const WorkloadMaker& make);

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
using ShareMaker = std::function<std::unique_ptr<Share>(std::size_t member)>;
void measure_together(Program& program, Team& team, const Chosen& chosen, const std::string& series,
                      const ShareMaker& make);

} // namespace seatrial::device
