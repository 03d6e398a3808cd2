"""The MPI profiler: it records what the ranks of a program do, and says where their time went."""
