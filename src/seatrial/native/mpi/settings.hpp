// Whether the settings that somebody made by variables of the environment are in force: what the
// library itself holds, read back through the tool information interface (MPI 4.0, chapter 15). A
// misspelt name is otherwise ignored without a word.
#pragma once

namespace seatrial::mpi {

class Program;

// Collective, after the measurement. "NAME=what the library holds" for each variable that is set,
// "NAME" for one that it does not know. Notes nothing, and asks nothing, where none is set.
void report_settings(Program& program);

} // namespace seatrial::mpi
