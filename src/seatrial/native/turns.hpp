// Programs under comparison take turns on the same CPUs, one round each. A disturbance of a shared
// machine that lasts tenths of a second then affects all of them.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <optional>
#include <vector>

#include "arguments.hpp"
#include "failure.hpp"
#include "team.hpp"
#include "turn_ring.hpp"

namespace seatrial {

// The programs form a ring of pipes in which one token circulates: the program that holds it runs,
// all others sleep. The leader has it from the start. Each of the others sets up when the token
// first arrives, and a program that has finished sampling keeps the token until its process ends,
// so that neither its set-up nor its verification disturbs another program's samples.
//
// A partner that has ended or died shows as end of file on a pipe: the token is here, or will never
// arrive, and from then on this program runs alone.
class Turns {
public:
  // `--turns IN-OUT`: inherited descriptors of the pipes from the previous program and to the next
  // one.
  Turns(Arguments& arguments, std::size_t members)
      : is_leading_(arguments.flag("--leads", false)), calls_(members) {
    if (const auto pipes = arguments.pairs("--turns")) {
      if (pipes->size() != 1)
        throw Failure(Exit::usage, "--turns: expected one pair of descriptors");
      ring_.emplace(static_cast<int>((*pipes)[0][0]), static_cast<int>((*pipes)[0][1]));
    }
  }

  // Call before any set-up.
  void await_first() noexcept {
    if (!ring_)
      return;
    std::signal(SIGPIPE, SIG_IGN); // a partner that has ended is an error of write(2)
    if (!is_leading_)
      ring_->receive();
  }

  // Passes the turn to the partners: called by all members of the team after the warm-up and after
  // each round. Members other than the first sleep meanwhile; at the barrier they would spin on
  // CPUs that the partner uses now.
  void pass(Team& team, std::size_t member) noexcept {
    if (!ring_)
      return;
    team.barrier().wait(); // the round has ended on all CPUs
    if (member == 0) {
      pass();
      passes_.fetch_add(1, std::memory_order_release);
      passes_.notify_all();
    } else {
      passes_.wait(calls_[member].count++, std::memory_order_acquire);
    }
  }

  // The same for a program whose other threads are already asleep.
  void pass() noexcept {
    if (ring_)
      ring_->pass();
  }

  // The number of turns taken; none if the program was not started to take turns.
  [[nodiscard]] std::optional<unsigned> taken() const noexcept {
    return ring_ ? std::optional(ring_->taken()) : std::nullopt;
  }

  [[nodiscard]] bool are_given() const noexcept { return ring_.has_value(); }

private:
  struct alignas(128) Calls {
    unsigned count = 0;
  };

  std::optional<TurnRing> ring_; // used by the first member only, like `is_leading_`
  const bool is_leading_;
  std::vector<Calls> calls_;        // per member
  std::atomic<unsigned> passes_{0}; // completed passes
};

} // namespace seatrial
