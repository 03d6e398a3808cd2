// What the compiler may not see through. Without it, work whose inputs are constants is done at
// compile time, and work whose result nobody uses is not done at all.
#pragma once

namespace seatrial {

// The value, as if it had been read from outside.
template <class Value>
[[nodiscard]] inline Value from_outside(Value value) noexcept {
  asm volatile("" : "+m"(value));
  return value;
}

// Uses the value, as if it were written to the outside.
template <class Value>
inline void to_outside(const Value& value) noexcept {
  asm volatile("" : : "m"(value));
}

} // namespace seatrial
