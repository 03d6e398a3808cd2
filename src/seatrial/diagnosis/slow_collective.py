"""Collective calls that take long by themselves: in each of them some rank is the last to arrive and waits for nobody,
so that the shortest call of all ranks shows what it takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.merge.bound import HALF_PERFORMANCE_B
from seatrial.profiler.merge.reference import reference_of

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, SizeTotals

_WAITS_FOR_ALL = re.compile(r"MPI_(Barrier|Allreduce|Alltoall[vw]?|Allgatherv?|Reduce_scatter(_block)?)(_c)?")
"""Calls that no rank leaves before all have arrived."""
_REDUCES = re.compile(r"MPI_(Allreduce|Reduce_scatter(_block)?)(_c)?")
_MOSTLY = 0.5
"""The shortest call takes at least so much of the mean, and these calls so much of the waiting."""
_CLEARLY_LONGER = 2.0
"""... and so many times what it should take at most."""
_LEAST_CALLS = 20


def slow_collective(profile: Profile, left_s: float) -> Diagnosis | None:
    """The collective call that takes most of the waiting of `left_s` seconds, if its shortest call is hardly shorter
    than the others. None for large messages without an operation of the program's own: that is their transfer."""
    long = [
        one
        for one in profile.sizes
        if one.measured is None
        and is_slow_itself(one, profile)
        and (one.size_B < HALF_PERFORMANCE_B or uses_own_operation(one, profile))
    ]
    long_s = sum(one.waiting_s for one in long)
    if not long or long_s < _MOSTLY * left_s:
        return None
    return slow_collective_of(profile, max(long, key=lambda one: one.waiting_s), min(left_s, long_s))


def slow_collective_of(profile: Profile, main: SizeTotals, time_s: float) -> Diagnosis:
    """The diagnosis that such calls cost `time_s` seconds of all ranks."""
    evidence = [
        Evidence(Signal.CALLS, main.count),
        Evidence(Signal.CALL_MEAN, main.time_s / main.count),
        Evidence(Signal.CALL_BEST, main.least_s),
        Evidence(Signal.ALLOWED, _allowed_s(main, profile)),
    ]
    if uses_own_operation(main, profile):
        evidence.append(Evidence(Signal.OPERATIONS, _operations_made(profile)))
    size, share = round(main.moved_B) or None, min(1.0, time_s / profile.wall_s)
    source = reference_of(profile.hosts).source
    return Diagnosis(
        Cause.SLOW_COLLECTIVE, share, Sureness.INFERRED, tuple(evidence), call=main.call, size_B=size, source=source
    )


def uses_own_operation(one: SizeTotals, profile: Profile) -> bool:
    """Whether a reduction may be by an operation of the program's own."""
    return _REDUCES.fullmatch(one.call) is not None and _operations_made(profile) > 0


def is_slow_itself(one: SizeTotals, profile: Profile) -> bool:
    """Whether even the shortest of these collective calls takes long."""
    return (
        _WAITS_FOR_ALL.fullmatch(one.call) is not None
        and one.count >= _LEAST_CALLS
        and one.least_s >= _MOSTLY * one.time_s / one.count
        and one.least_s >= _CLEARLY_LONGER * _allowed_s(one, profile)
    )


def _operations_made(profile: Profile) -> int:
    return sum(one.count for one in profile.calls if one.call in ("MPI_Op_create", "MPI_Op_create_c"))


def _allowed_s(one: SizeTotals, profile: Profile) -> float:
    return reference_of(profile.hosts).most_s(one.call, one.moved_B, profile.ranks)
