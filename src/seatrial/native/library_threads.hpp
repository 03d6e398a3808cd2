// The threads that a library computes with, besides the thread that calls it.
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
  // Call it before the library is loaded: whatever thread comes later is the library's.
  LibraryThreads() : before_(tasks()) {}

  // Finds those that compute during an action, trying until there are `expected`: on a busy machine
  // one may hardly get to run.
  template <class Action>
  void find(std::size_t expected, Action action) {
    constexpr int tries = 5;
    for (int i = 0; i < tries && ids_.size() != expected; ++i) {
      const Look start(*this);
      action();
      const Look end(*this);
      // What neither this thread nor any that still lives has used was used by threads that ended.
      double ended_s = end.process_s - start.process_s - (end.caller_s - start.caller_s);
      for (const auto& [task, time] : end.library)
        ended_s -= time - at(start.library, task);
      come_and_go_ = ended_s > computes * (end.caller_s - start.caller_s);
      if (const auto found = that_computed(start, end); found.size() > ids_.size())
        ids_ = found;
    }
  }

  // Whether the library makes its threads anew in each call, so that none can be bound.
  [[nodiscard]] bool come_and_go() const noexcept { return come_and_go_ && ids_.empty(); }

  [[nodiscard]] const std::vector<pid_t>& ids() const noexcept { return ids_; }

  // The CPU times of all threads at one moment; the calling thread is the one that looks.
  struct Look {
    explicit Look(const LibraryThreads& threads)
        : process_s(process_cpu_time_s()), caller_s(cpu_time_s(gettid())) {
      for (const auto task : threads.living())
        library.emplace_back(task, cpu_time_s(task));
    }

    double process_s;
    double caller_s;
    Times library; // of those that live
  };

  // The threads of the library that computed between two looks: those that had a fair part of what
  // the busiest had. One that only waits for the end has less.
  [[nodiscard]] static std::vector<pid_t> that_computed(const Look& start, const Look& end) {
    double most = end.caller_s - start.caller_s;
    for (const auto& [task, time] : end.library)
      most = std::max(most, time - at(start.library, task));
    std::vector<pid_t> found;
    for (const auto& [task, time] : end.library)
      if (time - at(start.library, task) > computes * most)
        found.push_back(task);
    return found;
  }

  // The most threads of the library that lived at any one time of an action. It looks all the time,
  // which disturbs the action.
  template <class Action>
  [[nodiscard]] std::size_t most_alive(Action action) {
    std::atomic<bool> done{false};
    std::size_t most = 0;
    {
      const std::jthread watcher([&] {
        while (!done.load(std::memory_order_relaxed))
          most = std::max(most, living().size() - 1); // less this one
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
  bool come_and_go_ = false;
};

} // namespace seatrial
