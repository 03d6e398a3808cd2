#include "mpi/turns.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fcntl.h>

#include "failure.hpp"

namespace seatrial::mpi {

namespace {

int open_in(const std::string& process, long descriptor, int flags) {
  const auto path = "/proc/" + process + "/fd/" + std::to_string(descriptor);
  const int opened = ::open(path.c_str(), flags | O_CLOEXEC);
  if (opened < 0)
    throw Failure(Exit::launcher, "--turns: cannot open " + path + ": " + std::strerror(errno));
  return opened;
}

} // namespace

Turns::Turns(Arguments& arguments) : is_leading_(arguments.flag("--leads", false)) {
  const auto pipes = arguments.pairs("--turns");
  if (!pipes)
    return;
  if (pipes->size() != 1)
    throw Failure(Exit::usage, "--turns: expected one pair of descriptors");
  const char* const keep = std::getenv("SEATRIAL_KEEP");
  if (keep == nullptr)
    throw Failure(Exit::launcher, "--turns: SEATRIAL_KEEP is not set in the ranks' environment");
  const int from = open_in(keep, static_cast<long>((*pipes)[0][0]), O_RDONLY);
  const int to = open_in(keep, static_cast<long>((*pipes)[0][1]), O_WRONLY);
  ring_.emplace(from, to);
}

void Turns::await_first() noexcept {
  if (!ring_)
    return;
  std::signal(SIGPIPE, SIG_IGN); // a partner that has ended is an error of write(2)
  if (is_leading_)
    ring_->pass();
  else
    ring_->receive();
}

void Turns::pass() {
  if (!ring_)
    return;
  MPI_Barrier(MPI_COMM_WORLD); // the round has ended on all ranks
  ring_->pass();
}

} // namespace seatrial::mpi
