"""The library that is loaded into every rank, and how a command is run under it."""
