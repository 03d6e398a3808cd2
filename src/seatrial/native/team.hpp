// One thread per CPU, bound to it for its lifetime.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "barrier.hpp"
#include "thread_time.hpp"

namespace seatrial {

// The calling thread is member 0, so that no extra thread competes for the CPUs.
class Team {
public:
  using Body = std::function<void(std::size_t member)>;

  explicit Team(std::span<const int> cpus);
  ~Team() {
    dismiss();
    count_this_thread();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return bound_.size(); }

  // Each member's CPUs as read back after binding.
  [[nodiscard]] const std::vector<std::vector<int>>& bound() const noexcept { return bound_; }

  [[nodiscard]] SpinBarrier& barrier() noexcept { return barrier_; }

  // Runs body(member) on every member and returns when all are done. A body that uses the barrier
  // must not throw: the others would wait forever.
  void run(const Body& body);

  // The same on these members only, without repeats. The others are not woken: on a large machine
  // waking them takes longer than a short measurement, and disturbs it.
  void run_on(std::span<const std::size_t> members, const Body& body);

private:
  // Jobs for one member. Each member sleeps on its own word, alone in its pair of cache lines.
  struct alignas(128) Mailbox {
    std::atomic<unsigned> jobs{0}; // posted so far
  };

  void work(std::size_t member) noexcept;

  // Keeps the first exception of any member.
  template <class Action>
  void guarded(Action action) noexcept;

  void wake(std::size_t member) noexcept;
  void report_done() noexcept;
  void await(std::size_t members);
  void dismiss() noexcept;

  std::vector<std::vector<int>> bound_;
  std::vector<Mailbox> mailboxes_;
  SpinBarrier barrier_;
  Body body_;                     // the current job; empty: exit
  std::atomic<unsigned> done_{0}; // members that finished it
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread>
      threads_; // declared last: joined before the members they use are destroyed
};

} // namespace seatrial
