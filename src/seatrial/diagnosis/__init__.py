"""Why an MPI program loses time, as values: a cause, its share, and the evidence for and against it."""
