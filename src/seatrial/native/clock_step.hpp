// The step of the clock, and work that lasts long enough for it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace seatrial {

// The smallest difference that Clock shows, in seconds, as measured in this process. Most advance
// by nanoseconds, some in virtual machines or on small boards by microseconds or kernel ticks.
[[nodiscard]] double clock_step_s() noexcept;

// At least 1000 steps, so that a time of this length is right to a tenth of a percent.
[[nodiscard]] inline double resolved_s(double wanted_s, double step_s = clock_step_s()) noexcept {
  return std::max(wanted_s, 1e3 * step_s);
}

// The n for which `run(n)`, which returns the seconds that it took, lasts `wanted_s`, or as long as
// the clock needs. An interruption by the system gives too small an n, so the shorter of two trials
// counts; on a coarse clock, n itself is tried, and grows until it lasts half as long. Ranks that
// run together must pass the same step and get the same seconds.
template <class Run>
[[nodiscard]] std::uint64_t repetitions_lasting(double wanted_s, double step_s, std::uint64_t trial,
                                                Run run) {
  const double enough_s =
      std::max(20 * step_s, wanted_s / 100); // much longer than reading the clock
  const auto shorter_of_two = [&](std::uint64_t n) {
    const double first_s = run(n);
    return first_s < enough_s ? first_s : std::min(first_s, run(n));
  };
  double trial_s = shorter_of_two(trial);
  for (; trial_s < enough_s; trial_s = shorter_of_two(trial))
    trial *= 8;
  const double target_s = resolved_s(wanted_s, step_s);
  const auto in_target = [target_s](std::uint64_t n, double took_s) {
    return static_cast<std::uint64_t>(static_cast<double>(n) * target_s / took_s) + 1;
  };
  std::uint64_t repetitions = in_target(trial, trial_s);
  if (wanted_s > 10 * resolved_s(0, step_s))
    return repetitions;
  for (trial_s = run(repetitions); trial_s < target_s / 2; trial_s = run(repetitions))
    repetitions = std::max(2 * repetitions, in_target(repetitions, trial_s));
  return repetitions;
}

} // namespace seatrial
