// Looks at a running process in a separate thread, so that waiting for the process is not delayed:
// the files that it has mapped, and what its threads do.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include <sys/types.h>

#include "clock.hpp"
#include "mapped_files.hpp"
#include "task_looks.hpp"

namespace seatrial {

// Looks 1, 3, 7, 15, ... ms after the start: at files later every half second, at threads about ten
// times a second, at uneven times, because programs may wait in even ones. A slow look (many
// processes) delays the next: looks take at most a hundredth of the time in total. Several
// processes may be followed one after another.
class Watch {
public:
  // The thread is started and sleeping before anything is timed.
  Watch() : thread_([this](const std::stop_token& stop) { run(stop); }) {
    is_ready_.wait(false, std::memory_order_acquire);
  }
  ~Watch() { stop(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Sets the process, 0: none; called inside a timed region, so it wakes no thread.
  void follow(pid_t process) noexcept { process_.store(process, std::memory_order_release); }

  // Afterwards no scan is running and none follows.
  void stop() {
    thread_.request_stop();
    if (thread_.joinable())
      thread_.join();
    tasks_.finish();
  }

  // Call after `stop`.
  [[nodiscard]] MappedFiles& files() noexcept { return files_; }
  [[nodiscard]] const TaskLooks& tasks() const noexcept { return tasks_; }

private:
  using Time = Clock::duration;
  static constexpr Time first = std::chrono::milliseconds(1);
  static constexpr Time longest = std::chrono::milliseconds(500);
  static constexpr Time between = std::chrono::milliseconds(100);

  void run(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any sleeper;
    std::unique_lock lock(mutex);
    auto wait = first;
    auto last = Clock::now();
    is_ready_.store(true, std::memory_order_release);
    is_ready_.notify_one();
    while (!sleeper.wait_for(lock, stop, wait, [&] { return stop.stop_requested(); })) {
      const auto process = process_.load(std::memory_order_acquire);
      const auto start = Clock::now();
      if (process == 0) {
        last = start;
        wait = std::max(std::min(wait, between), uneven());
        continue;
      }
      const auto processes = MappedFiles::with_descendants(process);
      tasks_.look(processes, std::chrono::duration<double>(start - last).count());
      last = start;
      if (start >= next_scan_) {
        files_.scan(processes);
        next_ = std::min(2 * next_, longest);
        next_scan_ = start + next_;
      }
      wait = std::max(uneven(), 100 * (Clock::now() - start));
    }
  }

  // The next time to wait: from 0.6 to 1.4 of what it is on average.
  [[nodiscard]] Time uneven() noexcept {
    constexpr double golden = 0.6180339887498949; // its multiples spread evenly
    const auto wait = std::min(next_, between);
    if (wait < between)
      return wait;
    turn_ += golden;
    turn_ -= turn_ >= 1.0 ? 1.0 : 0.0;
    return std::chrono::duration_cast<Time>(wait * (0.6 + 0.8 * turn_));
  }

  std::atomic<pid_t> process_{0};
  std::atomic<bool> is_ready_{false};
  Time next_ = first;
  Clock::time_point next_scan_{};
  double turn_ = 0.0;
  MappedFiles files_;
  TaskLooks tasks_;
  std::jthread thread_; // declared last: joined before the members it uses are destroyed
};

} // namespace seatrial
