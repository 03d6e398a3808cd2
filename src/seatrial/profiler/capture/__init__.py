"""The library that is preloaded into every rank, and running a command with it."""
