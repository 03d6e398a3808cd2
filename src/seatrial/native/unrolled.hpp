// A loop unrolled at compile time: whether a compiler unrolls a loop, and by how much, is its own
// choice, and arrays stay in registers only if every index is a constant.
#pragma once

#include <cstddef>
#include <utility>

namespace seatrial {

namespace detail {

template <class Body, std::size_t... i>
[[gnu::always_inline]] inline void unrolled(Body body, std::index_sequence<i...>) noexcept {
  (body(i), ...);
}

} // namespace detail

// Calls body(0), body(1), ... body(count - 1).
template <std::size_t count, class Body>
[[gnu::always_inline]] inline void unrolled(Body body) noexcept {
  detail::unrolled(body, std::make_index_sequence<count>());
}

} // namespace seatrial
