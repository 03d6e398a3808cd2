"""The MPI profiler: records the MPI calls of a program's ranks and reports where their time went."""
