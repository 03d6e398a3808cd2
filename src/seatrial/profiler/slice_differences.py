"""How ranks differ within slices of time, where their sums over the run are alike."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SliceDifferences:
    """If ranks differed in their time outside MPI only, they would wait `waiting_s` together for the slowest one of
    each slice of `width_s`."""

    width_s: float
    waiting_s: float
