#include "clock_step.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>

#include "clock.hpp"

namespace seatrial {

namespace {

using namespace std::chrono_literals;
using Nanoseconds = std::chrono::nanoseconds;

// Differences of successive reads are multiples of the step, and those of a step that is no whole
// number of nanoseconds show as two neighbouring numbers. Three in a row mean that it is smaller
// than they can show.
[[nodiscard]] Nanoseconds step_in(std::span<const Nanoseconds> ascending) noexcept {
  auto step = ascending.front();
  auto first = ascending.front(); // of neighbouring numbers
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    if (ascending[i] - ascending[i - 1] > 1ns) {
      step = std::min(step, ascending[i] - first);
      first = ascending[i];
    } else if (ascending[i] - first > 1ns) {
      return 1ns;
    }
  }
  return step;
}

[[nodiscard]] Nanoseconds measured_step() noexcept {
  constexpr auto enough = 5ms; // a coarse clock needs only a few of its steps
  std::array<Nanoseconds, 1024> seen{};
  std::size_t n = 0;
  const auto begin = Clock::now();
  for (auto before = begin; n < seen.size() && (n < 2 || before - begin < enough);) {
    const auto now = Clock::now();
    if (now != before)
      seen[n++] = now - before;
    before = now;
  }
  auto* const end = seen.data() + n;
  std::sort(seen.data(), end);
  return step_in(std::span<const Nanoseconds>(seen.data(), std::unique(seen.data(), end)));
}

} // namespace

double clock_step_s() noexcept {
  static const double step_s = seconds(measured_step());
  return step_s;
}

} // namespace seatrial
