"""What programs are built and run in: compilers, MPI libraries, containers, sites."""
