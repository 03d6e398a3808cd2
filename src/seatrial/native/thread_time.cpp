#include "thread_time.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

namespace seatrial {

namespace {

std::atomic<std::size_t> threads{0};
std::atomic<std::uint64_t> cpu_ns{0};
std::atomic<std::uint64_t> delay_ns{0};

} // namespace

// "CPU time, time ready to run, number of times", in ns (proc_pid_schedstat).
void count_this_thread() noexcept {
  const int file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return;
  std::array<char, 128> text{};
  const auto length = ::read(file, text.data(), text.size() - 1);
  ::close(file);
  if (length <= 0)
    return;
  char* behind = nullptr;
  cpu_ns += std::strtoull(text.data(), &behind, 10);
  delay_ns += std::strtoull(behind, nullptr, 10);
  ++threads;
}

ThreadTime counted_threads() noexcept {
  return {.threads = threads,
          .cpu_s = 1e-9 * static_cast<double>(cpu_ns),
          .delay_s = 1e-9 * static_cast<double>(delay_ns)};
}

} // namespace seatrial
