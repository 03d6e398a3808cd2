"""What a call takes by measurements on the same hosts, and diagnoses judged against it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from math import exp, log

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal

_ONE_MESSAGE = re.compile(r"MPI_([SBR]?send|Recv|Mrecv|Sendrecv(_replace)?)(_c)?", re.IGNORECASE)
"""Functions that return once one message is sent or received. Waiting for requests may hold several."""
_OF_PAIRS = frozenset({"MPI_Alltoall"})
"""Functions whose measured size is that of the block for each rank, while a call's bytes are those for all."""
SAME_SIZES = frozenset(
    {
        *("MPI_Barrier", "MPI_Reduce", "MPI_Allreduce", "MPI_Scan", "MPI_Exscan", "MPI_Gather", "MPI_Allgather"),
        *_OF_PAIRS,
    }
)
"""Collective functions for which each rank passes what their measurement counts as the size."""


class MeasuredCall(Frozen):
    """Medians by size in bytes of one collective operation of all ranks, in seconds; a barrier has size 0. `source`
    says where they are from."""

    time_s: Mapping[int, float]
    source: str


class MeasuredNetwork(Frozen):
    """Medians by size in bytes of a message between two ranks: seconds one way, bytes per second of a stream. `source`
    says where they are from. `collectives` are those that were measured with the `ranks` of the profile, by MPI
    function."""

    one_way_s: Mapping[int, float]
    bandwidth_Bps: Mapping[int, float]
    source: str
    collectives: Mapping[str, MeasuredCall] = {}
    ranks: int = 0

    def expected(self, call: str, size_B: int) -> tuple[float, str] | None:
        """Seconds of one call with this many bytes, and the source; None if nothing like it was measured.

        Between two measured sizes on a straight line in logarithms; beyond the largest message, what is left at the
        bandwidth of the largest one. Collective operations are not extrapolated.
        """
        measured = self.collectives.get(call)
        if measured is not None:
            each_B = size_B // max(1, self.ranks) if call in _OF_PAIRS else size_B
            time_s = _between(measured.time_s, each_B)
            return None if time_s is None else (time_s, measured.source)
        if _ONE_MESSAGE.fullmatch(call) is None:
            return None
        time_s = _between(self.one_way_s, size_B)
        if time_s is None:
            time_s = self._beyond(size_B)
        return None if time_s is None else (time_s, self.source)

    def _beyond(self, size_B: int) -> float | None:
        rate = self.bandwidth_Bps[max(self.bandwidth_Bps)] if self.bandwidth_Bps else 0.0
        if rate <= 0 or not self.one_way_s:
            return None
        largest = max(self.one_way_s)
        return self.one_way_s[largest] + (size_B - largest) / rate


def _between(time_s: Mapping[int, float], size_B: int) -> float | None:
    """The time at a size up to the largest measured one; None beyond it."""
    sizes = sorted(size for size, time in time_s.items() if time > 0)
    if not sizes or size_B > sizes[-1]:
        return None
    place = bisect_left(sizes, max(size_B, sizes[0]))
    above = sizes[place]
    below = sizes[place - 1] if place else 0
    if above == size_B or below <= 0:
        return time_s[above]
    part = log(size_B / below) / log(above / below)
    return exp((1 - part) * log(time_s[below]) + part * log(time_s[above]))


def judged(diagnoses: Sequence[Diagnosis], network: MeasuredNetwork) -> tuple[Diagnosis, ...]:
    """The same, with what was measured as evidence where latency or transfer is the cause."""
    return tuple(_judged(one, network) for one in diagnoses)


def _judged(one: Diagnosis, network: MeasuredNetwork) -> Diagnosis:
    if one.cause not in (Cause.LATENCY, Cause.TRANSFER, Cause.PACKING):
        return one
    expected = network.expected(one.call, one.size_B or 0)
    if expected is None:
        return one
    evidence = tuple(signal for signal in one.evidence if signal.signal is not Signal.ALLOWED)
    return replace(one, evidence=(*evidence, Evidence(Signal.REFERENCE, expected[0])), source=expected[1])
