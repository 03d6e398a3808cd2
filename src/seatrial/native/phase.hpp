// When samples are taken: a meter of power, which is read beside the program, shows the energy of
// this time, without set-up and verification.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "arguments.hpp"
#include "clock.hpp"
#include "json.hpp"
#include "wall_clock.hpp"

namespace seatrial {

class SamplingPhase {
public:
  // Call outside of timed regions, in one thread. The first begin counts, and the last end.
  void begin() noexcept {
    if (begin_)
      return;
    began_at_s_ = wall_clock_s();
    begin_ = Clock::now();
  }

  void end() noexcept { end_ = Clock::now(); }

  // On CLOCK_MONOTONIC of this node and, for other nodes, by the time of day.
  [[nodiscard]] std::optional<json::Object> note() const {
    if (!begin_ || !end_)
      return std::nullopt;
    return json::Object()
        .add("from_s", seconds(begin_->time_since_epoch()))
        .add("until_s", seconds(end_->time_since_epoch()))
        .add("began_at_s", began_at_s_);
  }

private:
  std::optional<Clock::time_point> begin_;
  std::optional<Clock::time_point> end_;
  double began_at_s_ = 0;
};

constexpr double usual_slice_s = 0.25;

// The time for taking samples: `--at-least` extends it until a meter of power has enough values.
[[nodiscard]] inline double slice_of(Arguments& arguments) {
  constexpr double longest_s = 86400.0;
  const double slice_s = arguments.number("--slice", usual_slice_s, 0.0, longest_s);
  return std::max(slice_s, arguments.number("--at-least", 0.0, 0.0, longest_s));
}

// A limit on the number of samples that does not end a longer phase before its time.
[[nodiscard]] inline std::size_t most_samples(std::size_t usual, double slice_s) noexcept {
  return static_cast<std::size_t>(static_cast<double>(usual) *
                                  std::max(1.0, slice_s / usual_slice_s));
}

} // namespace seatrial
