// Threads, one per CPU and bound to it for life.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "affinity.hpp"
#include "barrier.hpp"
#include "failure.hpp"

namespace seatrial {

// The calling thread is member 0, so that no further thread competes for the CPUs.
class Team {
public:
  using Body = std::function<void(std::size_t member)>;

  explicit Team(std::span<const int> cpus)
      : bound_(cpus.size()), mailboxes_(cpus.size()), barrier_(cpus.size()) {
    const auto bind = [this](std::size_t member, int cpu) {
      guarded([&] {
        bind_to(cpu);
        bound_[member] = bound_cpus(); // read back by the thread itself: asked for is not had
      });
    };
    bind(0, cpus[0]);
    try {
      for (std::size_t member = 1; member < cpus.size(); ++member)
        threads_.emplace_back([this, bind, member, cpu = cpus[member]] {
          bind(member, cpu);
          report_done();
          work(member);
        });
      await(threads_.size());
    } catch (const std::system_error& error) {
      dismiss();
      throw Failure(Exit::system, std::string("cannot start a thread: ") + error.what());
    } catch (...) {
      dismiss();
      throw;
    }
  }

  ~Team() { dismiss(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return bound_.size(); }

  // The CPUs that each member found itself bound to after it had bound itself.
  [[nodiscard]] const std::vector<std::vector<int>>& bound() const noexcept { return bound_; }

  [[nodiscard]] SpinBarrier& barrier() noexcept { return barrier_; }

  // Runs body(member) on every member and returns when all are done. A body that meets others at
  // the barrier must not throw: they would wait for ever.
  void run(const Body& body) {
    std::vector<std::size_t> everyone(size());
    std::iota(everyone.begin(), everyone.end(), std::size_t{0});
    run_on(everyone, body);
  }

  // The same on these members only, each named once. The others are not even woken: on a large
  // machine that takes longer than a short measurement, and disturbs it.
  void run_on(std::span<const std::size_t> members, const Body& body) {
    body_ = body;
    std::size_t woken = 0;
    for (const auto member : members)
      if (member != 0) {
        wake(member);
        ++woken;
      }
    if (woken != members.size())
      guarded([&] { body_(0); });
    await(woken);
  }

private:
  // Jobs for one member. Each sleeps on a word of its own, alone in its pair of lines.
  struct alignas(128) Mailbox {
    std::atomic<unsigned> jobs{0}; // posted so far
  };

  void work(std::size_t member) noexcept {
    for (unsigned done = 0;; ++done) {
      mailboxes_[member].jobs.wait(done, std::memory_order_acquire);
      if (!body_)
        return;
      guarded([&] { body_(member); });
      report_done();
    }
  }

  template <class Action>
  void guarded(Action action) noexcept {
    try {
      action();
    } catch (...) {
      const std::scoped_lock lock(failure_mutex_);
      if (!failure_)
        failure_ = std::current_exception();
    }
  }

  void wake(std::size_t member) noexcept {
    auto& jobs = mailboxes_[member].jobs;
    jobs.fetch_add(1, std::memory_order_release);
    jobs.notify_one();
  }

  void report_done() noexcept {
    done_.fetch_add(1, std::memory_order_release);
    done_.notify_one();
  }

  void await(std::size_t members) {
    for (auto done = done_.load(std::memory_order_acquire); done != members;
         done = done_.load(std::memory_order_acquire))
      done_.wait(done, std::memory_order_acquire);
    done_.store(0, std::memory_order_relaxed);
    if (failure_)
      std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void dismiss() noexcept {
    body_ = nullptr;
    for (std::size_t member = 1; member < size(); ++member)
      wake(member);
    threads_.clear(); // joins
  }

  std::vector<std::vector<int>> bound_;
  std::vector<Mailbox> mailboxes_;
  SpinBarrier barrier_;
  Body body_;                     // of the current job; empty: go home
  std::atomic<unsigned> done_{0}; // members that are done with it
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_; // last: joined before what they use goes away
};

} // namespace seatrial
