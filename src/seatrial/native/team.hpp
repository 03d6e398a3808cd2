// Threads, one per CPU and bound to it for life.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
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
  explicit Team(std::span<const int> cpus) : bound_(cpus.size()), barrier_(cpus.size()) {
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
      await_all();
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

  // Runs body(member) on every member and returns when all are done. Members that have nothing to
  // do sleep. A body that meets others at the barrier must not throw: they would wait for ever.
  void run(const std::function<void(std::size_t)>& body) {
    body_ = body;
    next_job();
    guarded([&] { body(0); });
    await_all();
  }

private:
  void work(std::size_t member) noexcept {
    for (unsigned seen = 0;;) {
      job_.wait(seen, std::memory_order_acquire);
      seen = job_.load(std::memory_order_acquire);
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

  void next_job() noexcept {
    job_.fetch_add(1, std::memory_order_release);
    job_.notify_all();
  }

  void report_done() noexcept {
    done_.fetch_add(1, std::memory_order_release);
    done_.notify_one();
  }

  void await_all() {
    for (auto done = done_.load(std::memory_order_acquire); done != threads_.size();
         done = done_.load(std::memory_order_acquire))
      done_.wait(done, std::memory_order_acquire);
    done_.store(0, std::memory_order_relaxed);
    if (failure_)
      std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void dismiss() noexcept {
    body_ = nullptr;
    next_job();
    threads_.clear(); // joins
  }

  std::vector<std::vector<int>> bound_;
  SpinBarrier barrier_;
  std::function<void(std::size_t)> body_;
  std::atomic<unsigned> job_{0};
  std::atomic<std::size_t> done_{0};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::jthread> threads_; // last: joined before what they use goes away
};

} // namespace seatrial
