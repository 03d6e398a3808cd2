// Common parts of the collective benchmarks: arguments, the order of samples, the record.
//
// Samples of all sizes are interleaved, so that a disturbance of the machine affects all of them.
// Before each sample the buffers are filled with new data, and after it the result is compared with
// the expected one. Rank 0 gathers the times after the timed region.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "mpi/collective_call.hpp"
#include "mpi/collective_data.hpp"
#include "mpi/collective_overlap.hpp"
#include "mpi/collective_timing.hpp"
#include "mpi/mpi.hpp"
#include "mpi/program.hpp"
#include "round_order.hpp"

namespace seatrial::mpi {

enum class Form { blocking, nonblocking, persistent };

struct CollectiveSettings {
  std::string operation;
  std::vector<std::size_t> sizes; // empty: the operation has no size
  Form form;
  Start start;
  std::uint64_t tests; // MPI_Test calls during the computation

  CollectiveSettings(Arguments& arguments, std::initializer_list<std::string_view> operations)
      : operation(arguments.choice("--operation", "", operations)) {
    constexpr std::size_t largest = std::size_t{1} << 46;
    if (operation != "barrier")
      sizes = arguments.numbers<std::size_t>("--sizes", 1, largest);
    const auto call =
        arguments.choice("--call", "blocking", {"blocking", "nonblocking", "persistent"});
    form = call == "blocking"      ? Form::blocking
           : call == "nonblocking" ? Form::nonblocking
                                   : Form::persistent;
    start = start_of(arguments.choice("--start", "clock", {"clock", "barrier", "back-to-back"}));
    tests = arguments.number<std::uint64_t>("--tests", 0, 0, 1'000'000);
  }
};

// One operation at one size. `kept` owns the buffers that the call's arguments point to.
struct Operation {
  std::shared_ptr<void> kept;
  std::unique_ptr<Data> data;
  std::unique_ptr<Call> call;
};

namespace detail {

// The timed operation: everything else is prepared beforehand.
class Timed {
public:
  Timed(Call& call, Form form) : call_(call), form_(form) {
    if (form == Form::persistent)
      call.persistent(&request_);
  }
  ~Timed() {
    if (form_ == Form::persistent && request_ != MPI_REQUEST_NULL)
      MPI_Request_free(&request_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

  [[nodiscard]] Series run(Timing& timing, Pace& pace) {
    switch (form_) {
    case Form::blocking:
      return timing.run(pace, [this] { call_.blocking(); });
    case Form::nonblocking:
      return timing.run(pace, [this] {
        call_.nonblocking(&request_);
        MPI_Wait(&request_, MPI_STATUS_IGNORE);
      });
    case Form::persistent:
      break;
    }
    return timing.run(pace, [this] {
      MPI_Start(&request_);
      MPI_Wait(&request_, MPI_STATUS_IGNORE);
    });
  }

  // Starts the operation, computes `steps` with `tests` calls of MPI_Test in between, and waits.
  [[nodiscard]] Series run_overlapped(Timing& timing, Pace& pace, std::uint64_t steps,
                                      std::uint64_t tests) {
    const auto part = steps / (tests + 1);
    const auto rest = steps - part * tests;
    return timing.run(pace, [=, this] {
      call_.nonblocking(&request_);
      for (std::uint64_t i = 0; i < tests; ++i) {
        compute(part);
        int is_done = 0;
        MPI_Test(&request_, &is_done, MPI_STATUS_IGNORE);
      }
      compute(rest);
      MPI_Wait(&request_, MPI_STATUS_IGNORE);
    });
  }

private:
  Call& call_;
  Form form_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

} // namespace detail

class CollectiveRun {
public:
  using Make = std::function<Operation(std::size_t bytes)>;

  CollectiveRun(Program& program, const CollectiveSettings& settings, const Make& make)
      : program_(program), settings_(settings), timing_(settings.start),
        step_s_(of_first(time_of_step())) {
    const auto sizes = settings.sizes.empty() ? std::vector<std::size_t>{0} : settings.sizes;
    for (const auto bytes : sizes) {
      program.at("preparing " + title(bytes));
      auto operation = make(bytes);
      auto timed = std::make_unique<detail::Timed>(*operation.call, settings.form);
      points_.push_back({.bytes = bytes,
                         .operation = std::move(operation),
                         .timed = std::move(timed),
                         .pace = {},
                         .overlapped_pace = {},
                         .compute_pace = {},
                         .samples = {}});
    }
  }

  // Collective: does all measurements and checks.
  void measure() {
    for (auto& point : points_) // the first sample of each size is discarded: its pages are new
      take(point, "warm-up");
    for (auto& point : points_)
      point.samples.clear();
    counted_ = dropped_ = overran_ = 0;
    for (std::size_t round = 0; goes_on(round); ++round)
      for (const auto place : round_order(points_.size(), round))
        take(points_[place], "round " + std::to_string(round));
    report();
  }

private:
  static constexpr std::size_t min_rounds = 3;

  // Rank 0's data of one sample, in seconds over `counted` iterations.
  struct Sample {
    Series alone;
    double overlapped_s = 0; // these two for one iteration
    double compute_s = 0;
  };

  struct Point {
    std::size_t bytes;
    Operation operation;
    std::unique_ptr<detail::Timed> timed;
    Pace pace;
    Pace overlapped_pace;
    Pace compute_pace;
    std::vector<Sample> samples;
  };

  [[nodiscard]] std::string title(std::size_t bytes) const {
    return settings_.operation +
           (settings_.sizes.empty() ? "" : ", " + std::to_string(bytes) + " B");
  }

  // Samples without a valid iteration are repeated, within limits.
  [[nodiscard]] bool goes_on(std::size_t round) {
    program_.turns.pass();
    if (round == 0) {
      begin_ = Clock::now(); // after the set-up of the others
      program_.phase.begin();
    }
    program_.phase.end();
    const double elapsed_s = seconds(Clock::now() - begin_);
    const bool has_too_few = std::ranges::any_of(
        points_, [](const auto& point) { return point.samples.size() < min_rounds; });
    const bool more = round < min_rounds || elapsed_s < program_.slice_s ||
                      (has_too_few && elapsed_s < 40 * program_.slice_s);
    return of_first(more ? 1.0 : 0.0) != 0.0;
  }

  void take(Point& point, const std::string& what) {
    program_.at(title(point.bytes) + ", " + what);
    timing_.check_clocks();
    const auto seed = ++round_;
    point.operation.data->fill(seed);
    Sample sample{.alone = point.timed->run(timing_, point.pace)};
    if (settings_.form == Form::nonblocking)
      overlap(point, sample);
    wrong_ += static_cast<double>(point.operation.data->wrong(seed));
    count(sample.alone);
    if (sample.alone.counted != 0 && sample.overlapped_s >= 0)
      point.samples.push_back(sample);
  }

  void count(const Series& series) {
    counted_ += series.counted;
    dropped_ += series.dropped;
    overran_ += series.overran;
  }

  // Computes for as long as the operation took, alone and overlapped with the operation. The sample
  // is dropped if one of the series has no valid iteration.
  void overlap(Point& point, Sample& sample) {
    const bool is_known = sample.alone.counted != 0;
    const double alone_s = of_first(is_known ? sample.alone.median_s : 0.0);
    const auto steps = static_cast<std::uint64_t>(alone_s / step_s_) + 1;
    const auto computed = timing_.run(point.compute_pace, [steps] { compute(steps); });
    const auto overlapped =
        point.timed->run_overlapped(timing_, point.overlapped_pace, steps, settings_.tests);
    count(computed);
    count(overlapped);
    const bool is_sample = is_known && computed.counted != 0 && overlapped.counted != 0;
    sample.compute_s = is_sample ? computed.median_s : 0;
    sample.overlapped_s = is_sample ? overlapped.median_s : -1;
  }

  // Adds one event; the point of an operation without a size is empty.
  void add(const Point& point, std::string_view series, std::size_t index, double elapsed_s,
           const json::Object& work) {
    auto event = sample_event(series, index, elapsed_s);
    if (!settings_.sizes.empty())
      event.add("point", json::Object().add("size_B", point.bytes));
    program_.add(event.add("work", work));
  }

  void report() {
    for (const auto& point : points_)
      for (std::size_t i = 0; i < point.samples.size(); ++i) {
        const auto& sample = point.samples[i];
        const auto work = json::Object().add("ops", sample.alone.counted);
        add(point, "time_max", i, sample.alone.slowest_s, work);
        add(point, "time_mean", i, sample.alone.mean_s, work);
        if (settings_.form == Form::nonblocking)
          add(point, "overlap", i, sample.overlapped_s,
              json::Object()
                  .add("compute_s", sample.compute_s)
                  .add("alone_s", sample.alone.median_s));
      }
    const auto clock_error = timing_.clock_error();
    const auto in_time = static_cast<double>(counted_ + overran_);
    program_.check("wrong_data", sum(wrong_));
    program_.check("overrun_share", in_time == 0 ? 0.0 : static_cast<double>(overran_) / in_time);
    program_.check("clock_error", shortest_s() == 0 ? 1.0 : clock_error.seen_s / shortest_s());
    if (settings_.start == Start::clock) {
      program_.note("common_clock",
                    timing_.one_clock() ? "one clock for all ranks" : "measured between hosts");
      program_.note("clock_error_s", clock_error.seen_s);
      program_.note("clock_error_bound_s", clock_error.bound_s);
      program_.note("dropped_iterations", dropped_);
      program_.note("bursts", timing_.bursts());
      program_.note("missed_bursts", timing_.missed());
    }
  }

  // On rank 0: the shortest time of a measured iteration.
  [[nodiscard]] double shortest_s() const {
    double shortest_s = 0;
    for (const auto& point : points_)
      for (const auto& sample : point.samples) {
        const double each_s = sample.alone.slowest_s / static_cast<double>(sample.alone.counted);
        shortest_s = shortest_s == 0 ? each_s : std::min(shortest_s, each_s);
      }
    return shortest_s;
  }

  Program& program_;
  const CollectiveSettings& settings_;
  Timing timing_;
  double step_s_;
  std::vector<Point> points_;
  Clock::time_point begin_;
  std::uint64_t round_ = 0;
  double wrong_ = 0;
  std::size_t counted_ = 0;
  std::size_t dropped_ = 0;
  std::size_t overran_ = 0;
};

} // namespace seatrial::mpi
