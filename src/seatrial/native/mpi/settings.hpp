// Checks whether MPI settings in environment variables are in force: the library's own values are
// read back through the tool information interface (MPI 4.0, chapter 15). A misspelt name would
// otherwise be silently ignored.
#pragma once

#include <optional>
#include <string>

namespace seatrial::mpi {

class Program;

// Collective, after the measurement. Notes "NAME=value in the library" for each variable that is
// set, "NAME" for one that the library does not have. Does nothing if none is set.
void report_settings(Program& program);

// How Open MPI's shared-memory layer copies large messages: "1 (cma)", "3 (none)"; none for other
// libraries, and since Open MPI 5, which has another component for it.
[[nodiscard]] std::optional<std::string> single_copy_mechanism();

} // namespace seatrial::mpi
