// Programs that are compared take turns on the same CPUs: a round of one, a round of the next. What
// a shared machine does for tenths of a second then falls on all alike.
#pragma once

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <optional>
#include <vector>

#include <unistd.h>

#include "arguments.hpp"
#include "failure.hpp"
#include "team.hpp"

namespace seatrial {

// The programs stand in a ring of pipes, in which one token goes round: who has it works, all
// others sleep. The leader has it from the start. Each of the others sets up when the token first
// comes, and whoever is done with sampling keeps it until its process has ended, so that neither
// set-up nor verification of one falls on the samples of another.
//
// A partner that has ended or died is seen as the end of a pipe: the token is here, or will not
// come any more, and from then on this program works alone.
class Turns {
public:
  // `--turns IN-OUT`: inherited descriptors of the pipes from the one before and to the next one.
  Turns(Arguments& arguments, std::size_t members)
      : ring_(arguments.pairs("--turns")), is_leading_(arguments.flag("--leads", false)),
        calls_(members) {
    if (ring_ && ring_->size() != 1)
      throw Failure(Exit::usage, "--turns: expected one pair of descriptors");
  }

  // Before anything is set up.
  void await_first() noexcept {
    if (!ring_)
      return;
    std::signal(SIGPIPE, SIG_IGN); // a partner that is gone is an error of write(2)
    if (!is_leading_)
      receive();
  }

  // Lets the partners have their turns: called by all members of the team after the warm-up and
  // after each round. Members other than the first sleep meanwhile, where they would spin at the
  // barrier on CPUs that are the partner's now.
  void pass(Team& team, std::size_t member) noexcept {
    if (!ring_)
      return;
    team.barrier().wait(); // the round is over on all CPUs
    if (member == 0) {
      pass();
      passes_.fetch_add(1, std::memory_order_release);
      passes_.notify_all();
    } else {
      passes_.wait(calls_[member].count++, std::memory_order_acquire);
    }
  }

  // The same for a program whose other threads are asleep already.
  void pass() noexcept {
    if (is_alone_ || !ring_)
      return;
    send();
    if (!is_alone_)
      receive();
  }

  // Turns that came back; none where the program was not started to take turns.
  [[nodiscard]] std::optional<unsigned> taken() const noexcept {
    return ring_ ? std::optional(taken_) : std::nullopt;
  }

  [[nodiscard]] bool are_given() const noexcept { return ring_.has_value(); }

private:
  struct alignas(128) Calls {
    unsigned count = 0;
  };

  void send() noexcept {
    const char token = 1;
    ssize_t written = 0;
    do
      written = ::write(static_cast<int>((*ring_)[0][1]), &token, 1);
    while (written < 0 && errno == EINTR);
    is_alone_ = written != 1;
  }

  // The pipe to the next one stays open even where the one before is gone: its end would be taken
  // for the token.
  void receive() noexcept {
    char token = 0;
    ssize_t got = 0;
    do
      got = ::read(static_cast<int>((*ring_)[0][0]), &token, 1);
    while (got < 0 && errno == EINTR);
    is_alone_ = got != 1;
    taken_ += got == 1;
  }

  const std::optional<std::vector<Arguments::Pair>> ring_;
  const bool is_leading_;
  bool is_alone_ = false; // of the first member, as all below that are not its members'
  unsigned taken_ = 0;
  std::vector<Calls> calls_;        // of each member
  std::atomic<unsigned> passes_{0}; // that are over
};

} // namespace seatrial
