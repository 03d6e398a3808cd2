"""What a message takes by this host's own measurements, and diagnoses judged against it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from seatrial.profiler.diagnosis.cause import Cause, Diagnosis, Evidence, Signal

_ONE_MESSAGE = re.compile(r"MPI_([SBR]?send|Recv|Mrecv|Sendrecv(_replace)?)(_c)?", re.IGNORECASE)
"""Functions that return once one message is sent or received. Waiting for requests may hold several."""


@dataclass(frozen=True, slots=True)
class MeasuredNetwork:
    """Medians by size in bytes of a message between two ranks: seconds one way, bytes per second of a stream. `source`
    says where they are from."""

    one_way_s: Mapping[int, float]
    bandwidth_Bps: Mapping[int, float]
    source: str

    def expected_s(self, call: str, size_B: int) -> float | None:
        """Seconds of one message of this size, one way; between two measured sizes, on a straight line in logarithms.
        None beyond the measured sizes, and for functions that do more than send one message."""
        sizes = sorted(size for size, time_s in self.one_way_s.items() if time_s > 0)
        if not sizes or _ONE_MESSAGE.fullmatch(call) is None or size_B > sizes[-1]:
            return None
        place = bisect_left(sizes, max(size_B, sizes[0]))
        above = sizes[place]
        if above == size_B or place == 0:
            return self.one_way_s[above]
        below = sizes[place - 1]
        if below <= 0:
            return self.one_way_s[above]
        part = log(size_B / below) / log(above / below)
        return exp((1 - part) * log(self.one_way_s[below]) + part * log(self.one_way_s[above]))


def judged(diagnoses: Sequence[Diagnosis], network: MeasuredNetwork) -> tuple[Diagnosis, ...]:
    """The same, with what was measured as evidence where latency or transfer is the cause."""
    return tuple(_judged(one, network) for one in diagnoses)


def _judged(one: Diagnosis, network: MeasuredNetwork) -> Diagnosis:
    if one.cause not in (Cause.LATENCY, Cause.TRANSFER):
        return one
    expected_s = network.expected_s(one.call, one.size_B or 0)
    if expected_s is None:
        return one
    evidence = (*one.evidence, Evidence(Signal.REFERENCE, expected_s))
    return replace(one, evidence=evidence, source=network.source)
