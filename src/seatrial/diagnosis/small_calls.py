"""Reads and writes that are many and small: each costs the kernel time, and the processes that they come from or go to,
such as the launcher that forwards the output of ranks. The kernel counts them, however a program makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.profiler.profile import Profile

_LEAST_RATE = 50_000.0
"""Calls per second of a rank; one takes a microsecond or so in the kernel."""
_MOST_B = 256.0
_MAY_BE_PART = frozenset(
    {Cause.OTHER_PROCESSES, Cause.NO_CPU, Cause.KERNEL_TIME, Cause.IMBALANCE, Cause.COMPUTATION, Cause.SERIAL_IO}
)
_OF_ANY_RANK = frozenset({Cause.OTHER_PROCESSES, Cause.NO_CPU, Cause.KERNEL_TIME, Cause.COMPUTATION})
"""Causes of all ranks, or of one that such calls of another may delay."""


def with_small_calls(profile: Profile, found: Sequence[Diagnosis]) -> list[Diagnosis]:
    """The same, with the small reads and writes as evidence of the first cause that they may be part of."""
    seen = _small_calls(profile)
    named = list(found)
    if not seen:
        return named
    rank = int(next(one.value for one in seen if one.signal is Signal.SMALL_CALLS_RANK))
    for place, one in enumerate(named):
        if one.cause in _MAY_BE_PART and (one.rank == rank or one.cause in _OF_ANY_RANK):
            named[place] = replace(one, evidence=(*one.evidence, *seen))
            break
    return named


def _small_calls(profile: Profile) -> tuple[Evidence, ...]:
    if profile.io is None or profile.elapsed_s <= 0:
        return ()
    calls = {
        rank: (totals.read_calls + totals.write_calls, totals.read_B + totals.written_B)
        for rank, totals in profile.io.known
    }
    if not calls:
        return ()
    rank = max(calls, key=lambda one: calls[one][0])
    made, moved_B = calls[rank]
    if made < _LEAST_RATE * profile.elapsed_s or moved_B > _MOST_B * made:
        return ()
    return (
        Evidence(Signal.SMALL_CALLS, made),
        Evidence(Signal.SMALL_CALL_BYTES, moved_B / made),
        Evidence(Signal.SMALL_CALLS_RANK, rank),
    )
