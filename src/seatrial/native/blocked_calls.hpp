// What a thread that is blocked in a system call waits for, other than files: time, a child
// process, a lock, or another thread.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <system_error>

#include <linux/futex.h>
#include <sys/syscall.h>

namespace seatrial {

enum class Blocked {
  sleep, // until some time has passed
  child, // until a child process ends
  lock,  // until a mutex is free
  futex, // for another thread, in another way: a condition variable, a barrier, its end
  other,
};

// A line of `/proc/PID/task/TID/syscall`: `202 0x7f... 0x80 0x2 ...` (proc_pid_syscall(5)).
struct CallLine {
  std::int64_t number = -1; // -1: outside of a call, or none is known
  std::array<std::uint64_t, 4> arguments{};

  [[nodiscard]] static CallLine read(std::string_view text) noexcept {
    CallLine line;
    const char* const end = text.data() + text.size();
    auto [at, error] = std::from_chars(text.data(), end, line.number);
    if (error != std::errc{})
      return {};
    for (auto& argument : line.arguments) {
      if (end - at <= 3) // " 0x"
        break;
      at = std::from_chars(at + 3, end, argument, 16).ptr;
    }
    return line;
  }
};

namespace detail {

// Whether this waits for a mutex, by the value that the waiter expects in it: glibc and Rust write
// 2 into a mutex that has waiters (nptl/lowlevellock.h), GCC's OpenMP -1 (config/linux/mutex.c).
// Barriers and condition variables expect a count, which is one of these only in passing.
[[nodiscard]] constexpr bool is_lock(std::uint64_t operation, std::uint64_t value) noexcept {
  switch (operation & FUTEX_CMD_MASK) {
  case FUTEX_LOCK_PI:
    return true;
  case FUTEX_WAIT:
  case FUTEX_WAIT_BITSET:
    return static_cast<std::uint32_t>(value) == 2 || static_cast<std::uint32_t>(value) == ~0U;
  default:
    return false;
  }
}

} // namespace detail

[[nodiscard]] constexpr Blocked blocked_in(const CallLine& call) noexcept {
  switch (call.number) {
  case SYS_nanosleep:
  case SYS_clock_nanosleep:
    return Blocked::sleep;
  // Without descriptors, these only wait for their time limit.
  case SYS_pselect6:
#ifdef SYS_select
  case SYS_select:
#endif
    return call.arguments[0] == 0 ? Blocked::sleep : Blocked::other;
  case SYS_ppoll:
#ifdef SYS_poll
  case SYS_poll:
#endif
    return call.arguments[1] == 0 ? Blocked::sleep : Blocked::other;
  case SYS_wait4:
  case SYS_waitid:
    return Blocked::child;
  case SYS_futex:
    return detail::is_lock(call.arguments[1], call.arguments[2]) ? Blocked::lock : Blocked::futex;
  default:
    return Blocked::other;
  }
}

} // namespace seatrial
