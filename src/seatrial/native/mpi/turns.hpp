// Runs of ranks under comparison take turns on the same CPUs of one host, one round each, as
// native/turns.hpp describes for other programs.
#pragma once

#include <optional>

#include "arguments.hpp"
#include "mpi/mpi.hpp"
#include "turn_ring.hpp"

namespace seatrial::mpi {

// Every rank sends a token after each round and then waits for one, asleep in read(2): a rank that
// waits in MPI would spin on a CPU that the partner uses now. The partners have as many ranks, so a
// pass moves one token for each of them, and no rank can take two.
class Turns {
public:
  // `--turns IN-OUT`: descriptors of the pipes in the process that runs the launcher
  // (launch/keep.cpp), whose id is in SEATRIAL_KEEP. Launchers close them in the ranks, which open
  // them again through /proc.
  explicit Turns(Arguments& arguments);

  // Call after MPI_Init: the libraries of all partners start up at the same time, and the first
  // turn begins when that is over.
  void await_first() noexcept;

  // Collective: after the warm-up and after each round.
  void pass();

  // The number of turns that this rank took; none if the run was not started to take turns.
  [[nodiscard]] std::optional<unsigned> taken() const noexcept {
    return ring_ ? std::optional(ring_->taken()) : std::nullopt;
  }

private:
  std::optional<TurnRing> ring_;
  bool is_leading_;
};

} // namespace seatrial::mpi
