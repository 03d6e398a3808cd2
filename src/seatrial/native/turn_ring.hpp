// A program's two ends of a ring of pipes in which one token circulates: the program that holds it
// runs, all others sleep.
#pragma once

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace seatrial {

// A partner that has ended or died shows as end of file on a pipe: the token is here, or will never
// arrive, and from then on this program runs alone.
class TurnRing {
public:
  // What this program starts does not inherit the ends: they would stay open after this program.
  TurnRing(int from_previous, int to_next) noexcept : from_(from_previous), to_(to_next) {
    for (const int end : {from_, to_})
      ::fcntl(end, F_SETFD, FD_CLOEXEC);
  }

  void send() noexcept {
    const char token = 1;
    ssize_t written = 0;
    do
      written = ::write(to_, &token, 1);
    while (written < 0 && errno == EINTR);
    is_alone_ = written != 1;
  }

  // The pipe to the next program stays open even if the previous one has ended: closing it would be
  // mistaken for the token.
  void receive() noexcept {
    char token = 0;
    ssize_t got = 0;
    do
      got = ::read(from_, &token, 1);
    while (got < 0 && errno == EINTR);
    is_alone_ = got != 1;
    taken_ += got == 1;
  }

  // Lets the partners run, and returns when it is this program's turn again.
  void pass() noexcept {
    if (is_alone_)
      return;
    send();
    if (!is_alone_)
      receive();
  }

  [[nodiscard]] unsigned taken() const noexcept { return taken_; }

private:
  int from_;
  int to_;
  bool is_alone_ = false;
  unsigned taken_ = 0;
};

} // namespace seatrial
