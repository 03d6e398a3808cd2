// What the time of a run is spent on: each moment belongs to one phase, so that they sum to the
// run.
#pragma once

#include <array>
#include <cstddef>

#include "clock.hpp"

namespace seatrial::dense {

// What the host thread that drives the devices of a rank does, or waits for.
enum class Phase : std::size_t { panel, broadcast, swap, update, copies, solve };

inline constexpr std::array phase_names = {"panel",  "broadcast", "swap",
                                           "update", "copies",    "solve"};

class PhaseClock {
public:
  void begin(Phase phase) noexcept {
    spent_s_ = {};
    now_ = phase;
    since_ = Clock::now();
  }

  void enter(Phase phase) noexcept {
    const auto time = Clock::now();
    spent_s_[static_cast<std::size_t>(now_)] += seconds(time - since_);
    now_ = phase;
    since_ = time;
  }

  // By phase; ends the current one.
  [[nodiscard]] const std::array<double, phase_names.size()>& end() noexcept {
    enter(now_);
    return spent_s_;
  }

private:
  std::array<double, phase_names.size()> spent_s_{};
  Phase now_ = Phase::update;
  Clock::time_point since_ = Clock::now();
};

} // namespace seatrial::dense
