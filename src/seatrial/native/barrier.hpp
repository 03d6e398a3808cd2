// A spin barrier for threads before a timed region.
#pragma once

#include <atomic>
#include <cstddef>

namespace seatrial {

inline void spin_pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb"); // `yield` is a no-op on most cores
#endif
}

// Threads leave within one or two cache-line transfers of each other. It never sleeps, so each
// member needs its own CPU.
class SpinBarrier {
public:
  explicit SpinBarrier(std::size_t members) noexcept : members_(members) {}

  void wait() noexcept {
    const auto phase = phase_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
      arrived_.store(0, std::memory_order_relaxed);
      phase_.store(phase + 1, std::memory_order_release);
    } else {
      while (phase_.load(std::memory_order_acquire) == phase)
        spin_pause();
    }
  }

private:
  const std::size_t members_;
  // On a separate line, so that arrivals do not disturb waiting threads.
  alignas(128) std::atomic<std::size_t> arrived_{0};
  alignas(128) std::atomic<unsigned> phase_{0};
};

} // namespace seatrial
