"""Traces of MPI calls, converted to actions that a simulator replays."""
