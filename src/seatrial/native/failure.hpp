// Why a program stops, as an exception that carries the exit status.
#pragma once

#include <stdexcept>
#include <string>

namespace seatrial {

// Uses the status of sysexits.h where one fits.
enum class Exit : int {
  ok = 0,
  usage = 64,       // EX_USAGE: invalid arguments
  wrong_cpu = 65,   // the program was built for a different CPU
  software = 70,    // EX_SOFTWARE: a bug in the program
  system = 71,      // EX_OSERR: a thread or a system call failed
  record = 74,      // EX_IOERR: the record could not be written
  parent_gone = 75, // EX_TEMPFAIL: the parent process has ended
  launcher = 76,    // EX_PROTOCOL: MPI's number of ranks is not the number started
};

class Failure : public std::runtime_error {
public:
  Failure(Exit status, const std::string& what) : std::runtime_error(what), status_(status) {}
  [[nodiscard]] Exit status() const noexcept { return status_; }

private:
  Exit status_;
};

// The machine cannot provide what the benchmark needs: a result, not an error.
class Skip : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

} // namespace seatrial
