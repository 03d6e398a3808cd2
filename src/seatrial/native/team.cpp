#include "team.hpp"

#include <numeric>
#include <string>
#include <system_error>
#include <utility>

#include "affinity.hpp"
#include "failure.hpp"
#include "thread_time.hpp"

namespace seatrial {

template <class Action>
void Team::guarded(Action action) noexcept {
  try {
    action();
  } catch (...) {
    const std::scoped_lock lock(failure_mutex_);
    if (!failure_)
      failure_ = std::current_exception();
  }
}

Team::Team(std::span<const int> cpus)
    : bound_(cpus.size()), mailboxes_(cpus.size()), barrier_(cpus.size()) {
  const auto bind = [this](std::size_t member, int cpu) {
    guarded([&] {
      bind_to(cpu);
      bound_[member] =
          bound_cpus(); // read back by the thread itself: a request may not take effect
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

void Team::run(const Body& body) {
  std::vector<std::size_t> everyone(size());
  std::iota(everyone.begin(), everyone.end(), std::size_t{0});
  run_on(everyone, body);
}

void Team::run_on(std::span<const std::size_t> members, const Body& body) {
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

void Team::work(std::size_t member) noexcept {
  for (unsigned done = 0;; ++done) {
    mailboxes_[member].jobs.wait(done, std::memory_order_acquire);
    if (!body_) {
      count_this_thread();
      return;
    }
    guarded([&] { body_(member); });
    report_done();
  }
}

void Team::wake(std::size_t member) noexcept {
  auto& jobs = mailboxes_[member].jobs;
  jobs.fetch_add(1, std::memory_order_release);
  jobs.notify_one();
}

void Team::report_done() noexcept {
  done_.fetch_add(1, std::memory_order_release);
  done_.notify_one();
}

void Team::await(std::size_t members) {
  for (auto done = done_.load(std::memory_order_acquire); done != members;
       done = done_.load(std::memory_order_acquire))
    done_.wait(done, std::memory_order_acquire);
  done_.store(0, std::memory_order_relaxed);
  if (failure_)
    std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Team::dismiss() noexcept {
  body_ = nullptr;
  for (std::size_t member = 1; member < size(); ++member)
    wake(member);
  threads_.clear(); // joins
}

} // namespace seatrial
