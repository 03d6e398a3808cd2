// The threads that a library computes with, in addition to the calling thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "tasks.hpp"

namespace seatrial {

class LibraryThreads {
  using Times = std::vector<std::pair<pid_t, double>>;

public:
  // Call before the library is loaded: all threads created later are the library's.
  LibraryThreads() : before_(tasks()) {}

  // Finds the threads that compute during an action; repeats it until there are `expected`: on a
  // busy machine a thread may hardly get to run.
  template <class Action>
  void find(std::size_t expected, Action action) {
    constexpr int tries = 5;
    for (int i = 0; i < tries && ids_.size() != expected; ++i) {
      const Snapshot start(*this);
      action();
      const Snapshot end(*this);
      // CPU time used by neither this thread nor any living one was used by threads that ended.
      double ended_s = end.process_s - start.process_s - (end.caller_s - start.caller_s);
      for (const auto& [task, time] : end.library)
        ended_s -= time - at(start.library, task);
      are_recreated_ = ended_s > computes * (end.caller_s - start.caller_s);
      if (const auto found = busiest(start, end); found.size() > ids_.size())
        ids_ = found;
    }
  }

  // Whether the library creates its threads anew in each call, so that they cannot be bound.
  [[nodiscard]] bool are_recreated() const noexcept { return are_recreated_ && ids_.empty(); }

  [[nodiscard]] const std::vector<pid_t>& ids() const noexcept { return ids_; }

  // The CPU times of all threads at one moment, as read by the calling thread.
  struct Snapshot {
    explicit Snapshot(const LibraryThreads& threads)
        : process_s(process_cpu_time_s()), caller_s(cpu_time_s(gettid())) {
      for (const auto task : threads.living())
        library.emplace_back(task, cpu_time_s(task));
    }

    double process_s;
    double caller_s;
    Times library; // of living threads
  };

  // The library threads that computed between two snapshots: those with a substantial part of the
  // busiest thread's CPU time. A thread that only waits has less.
  [[nodiscard]] static std::vector<pid_t> busiest(const Snapshot& start, const Snapshot& end) {
    double most = end.caller_s - start.caller_s;
    for (const auto& [task, time] : end.library)
      most = std::max(most, time - at(start.library, task));
    std::vector<pid_t> found;
    for (const auto& [task, time] : end.library)
      if (time - at(start.library, task) > computes * most)
        found.push_back(task);
    return found;
  }

  // The largest number of library threads that existed at once during an action. It polls
  // continuously, which disturbs the action.
  template <class Action>
  [[nodiscard]] std::size_t max_alive(Action action) {
    std::atomic<bool> done{false};
    std::size_t most = 0;
    {
      const std::jthread watcher([&] {
        while (!done.load(std::memory_order_relaxed))
          most = std::max(most, living().size() - 1); // without this one
      });
      action();
      done.store(true, std::memory_order_relaxed);
    }
    return most;
  }

private:
  static constexpr double computes = 0.2;

  [[nodiscard]] std::vector<pid_t> living() const {
    std::vector<pid_t> found;
    std::ranges::set_difference(tasks(), before_, std::back_inserter(found));
    return found;
  }

  [[nodiscard]] static double at(const Times& times, pid_t task) noexcept {
    const auto found = std::ranges::find(times, task, &Times::value_type::first);
    return found == times.end() ? 0 : found->second;
  }

  std::vector<pid_t> before_;
  std::vector<pid_t> ids_;
  bool are_recreated_ = false;
};

} // namespace seatrial
