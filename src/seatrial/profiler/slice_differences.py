"""How ranks differ within slices of time, where their sums over the run are alike."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class SliceDifferences(Frozen):
    """If ranks differed in their time outside MPI only, they would wait `waiting_s` together for the slowest one of
    each slice of `width_s`."""

    width_s: float
    waiting_s: float
