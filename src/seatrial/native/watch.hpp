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

// Scans 1, 3, 7, 15, ... ms after the start, later every half second. A slow scan (many processes)
// delays the next: scans take at most a hundredth of the time in total. Several processes may be
// followed one after another.
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
  }

  // Call after `stop`.
  [[nodiscard]] MappedFiles& files() noexcept { return files_; }
  [[nodiscard]] const TaskLooks& tasks() const noexcept { return tasks_; }

private:
  using Time = Clock::duration;
  static constexpr Time first = std::chrono::milliseconds(1);
  static constexpr Time longest = std::chrono::milliseconds(500);

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
      if (process == 0) {
        last = Clock::now();
        wait = std::min(std::max(wait, next_), longest);
        continue;
      }
      const auto start = Clock::now();
      const auto processes = MappedFiles::with_descendants(process);
      tasks_.look(processes, std::chrono::duration<double>(start - last).count());
      last = start;
      files_.scan(processes);
      next_ = std::min(2 * next_, longest);
      wait = std::max(next_, 100 * (Clock::now() - start));
    }
  }

  std::atomic<pid_t> process_{0};
  std::atomic<bool> is_ready_{false};
  Time next_ = first;
  MappedFiles files_;
  TaskLooks tasks_;
  std::jthread thread_; // declared last: joined before the members it uses are destroyed
};

} // namespace seatrial
