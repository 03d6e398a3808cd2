// Why a program gives up, as an exception that carries the process's exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace seatrial {

// Where sysexits.h has a fitting status it is used, so that a shell user recognises it.
enum class Exit : int {
  ok = 0,
  usage = 64,       // EX_USAGE: arguments that make no sense
  wrong_cpu = 65,   // the program was built for another CPU than the one it runs on
  software = 70,    // EX_SOFTWARE: a mistake of ours
  system = 71,      // EX_OSERR: a thread or a system call could not be had
  record = 74,      // EX_IOERR: the record could not be written
  parent_gone = 75, // EX_TEMPFAIL: the process that asked for the measurement is no more
  launcher = 76,    // EX_PROTOCOL: MPI knows of another number of ranks than were started
};

class Failure : public std::runtime_error {
public:
  Failure(Exit status, const std::string& what) : std::runtime_error(what), status_(status) {}
  [[nodiscard]] Exit status() const noexcept { return status_; }

private:
  Exit status_;
};

// The machine cannot give what the benchmark needs: a result, not an error.
class Skip : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace seatrial
