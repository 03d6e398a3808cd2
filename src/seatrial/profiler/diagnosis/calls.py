"""Time in MPI that is no waiting: startup, the number of messages, latency, transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.profiler.diagnosis.cause import Cause, Diagnosis, Evidence, Signal, Sureness

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, SizeTotals

_SHORT_CALL_S = 1e-6
"""A call of less is never waiting: the number of calls is what costs."""
_MANY_CALLS = 10_000


def call_diagnoses(profile: Profile) -> list[Diagnosis]:
    """The kinds of time in MPI without waiting, each with the call that has most of it."""
    from seatrial.profiler.profile import Bound

    found: dict[Cause, list[tuple[float, SizeTotals]]] = {}
    for one in profile.sizes:
        if one.count == 0 or profile.wall_s <= 0:
            continue
        if one.bound is Bound.START:
            found.setdefault(Cause.STARTUP, []).append((one.time_s, one))
        elif _is_many_short_calls(one):
            found.setdefault(Cause.MESSAGE_RATE, []).append((one.time_s, one))
        elif one.bound in (Bound.LATENCY, Bound.BANDWIDTH):
            cause = Cause.LATENCY if one.bound is Bound.LATENCY else Cause.TRANSFER
            found.setdefault(cause, []).append((max(0.0, one.time_s - one.waiting_s), one))
    return [
        _diagnosis(cause, sum(time for time, _ in own), max(own, key=lambda pair: pair[0])[1], profile)
        for cause, own in found.items()
    ]


def _is_many_short_calls(one: SizeTotals) -> bool:
    """Whether calls are so short and many that their number is what costs."""
    mean_s = one.time_s / one.count if one.count else 0.0
    return one.count >= _MANY_CALLS and mean_s <= _SHORT_CALL_S


def _diagnosis(cause: Cause, time_s: float, main: SizeTotals, profile: Profile) -> Diagnosis:
    evidence = (
        Evidence(Signal.CALL_SHARE, main.time_s / profile.wall_s),
        Evidence(Signal.CALLS, main.count),
        Evidence(Signal.CALL_MEAN, main.time_s / main.count),
        Evidence(Signal.CALL_BEST, main.best_s),
    )
    size = None if cause is Cause.STARTUP or not main.largest_B else main.size_B
    return Diagnosis(cause, min(1.0, time_s / profile.wall_s), Sureness.INFERRED, evidence, call=main.call, size_B=size)
