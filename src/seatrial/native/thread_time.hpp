// What the kernel counted for threads that have ended: a zombie process keeps it of its main thread
// only.
#pragma once

#include <cstddef>

namespace seatrial {

struct ThreadTime {
  std::size_t threads = 0;
  double cpu_s = 0.0;
  double delay_s = 0.0; // ready to run, but no CPU
};

// Adds the calling thread, which is about to end. Does nothing if the kernel does not count.
void count_this_thread() noexcept;

// All that were added.
[[nodiscard]] ThreadTime counted_threads() noexcept;

} // namespace seatrial
