"""Parts of sentences about a diagnosis: the value of a signal, CPUs, a rank, an MPI call."""

from __future__ import annotations

from seatrial.profiler.cause import Diagnosis, Signal
from seatrial.report.units import show


def number_of(one: Diagnosis, signal: Signal) -> float:
    """The value of a signal, 0 if it is not part of the evidence."""
    return one.value(signal) or 0.0


def cpus_words(value: float) -> str:
    """A number of CPUs."""
    return "1 CPU" if value == 1 else f"{value:.3g} CPUs"


def rank_words(one: Diagnosis) -> str:
    """The rank of a diagnosis and its host."""
    return "a rank" if one.rank is None else f"rank {one.rank}{f' on {one.host}' if one.host else ''}"


def call_words(one: Diagnosis) -> str:
    """The MPI call of a diagnosis and its size."""
    if one.size_B is None:
        return one.call
    return f"{one.call} ({show(one.size_B, 'B', binary=one.size_B % 1024 == 0)})"
