// Optimisation barriers. Without them, the compiler evaluates work with constant inputs at compile
// time and removes work whose result is unused.
#pragma once

namespace seatrial {

// Returns the value as if it had been read from outside the program.
template <class Value>
[[nodiscard]] inline Value do_not_fold(Value value) noexcept {
  asm volatile("" : "+m"(value));
  return value;
}

// Uses the value as if it were written outside the program.
template <class Value>
inline void do_not_eliminate(const Value& value) noexcept {
  asm volatile("" : : "m"(value));
}

} // namespace seatrial
