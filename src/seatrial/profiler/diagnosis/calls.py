"""Time in MPI that is no waiting: startup, the number of messages, latency, transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.profiler.diagnosis.cause import Cause, Diagnosis, Evidence, Signal, Sureness

from seatrial.profiler.merge.bound import SMALL_B, bound_of, is_start
from seatrial.profiler.profile import Bound

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, SizeTotals

_SHORT_CALL_S = 1e-6
"""A call of less is never waiting: the number of calls is what costs."""
_MANY_CALLS = 10_000


def call_diagnoses(profile: Profile, *, is_delayed: bool = False) -> list[Diagnosis]:
    """The kinds of time in MPI without waiting, each with the call that has most of it. `is_delayed`: ranks waited for a
    CPU, so that only what fast calls take is counted."""
    found: dict[Cause, list[tuple[float, SizeTotals]]] = {}
    small = _small_best_s(profile)
    for one in profile.sizes:
        if one.count == 0 or profile.wall_s <= 0:
            continue
        cause = _cause(one, small.get(one.call))
        if cause is None:
            continue
        time_s = one.time_s
        if cause in (Cause.LATENCY, Cause.TRANSFER):
            time_s = max(0.0, one.time_s - one.waiting_s)
        if is_delayed:
            time_s = min(time_s, one.count * one.best_s)
        found.setdefault(cause, []).append((time_s, one))
    return [
        _diagnosis(cause, sum(time for time, _ in own), max(own, key=lambda pair: pair[0])[1], profile)
        for cause, own in found.items()
    ]


def _small_best_s(profile: Profile) -> dict[str, float]:
    """Function -> the best time of its calls with at most SMALL_B."""
    found: dict[str, float] = {}
    for one in profile.sizes:
        if one.largest_B <= SMALL_B:
            found[one.call] = min(found.get(one.call, one.best_s), one.best_s)
    return found


def _cause(one: SizeTotals, small_best_s: float | None) -> Cause | None:
    if is_start(one.call):
        return Cause.STARTUP
    if one.bound is Bound.WAITING and not one.prompt_s:
        return None  # it polls
    if _is_many_short_calls(one):
        return Cause.MESSAGE_RATE
    bound = one.bound
    if bound is Bound.WAITING:  # the rest of its time
        bound = bound_of(one.call, one.size_B, one.time_s, 0.0, 1.0, one.prompt_s, small_best_s)
    if bound is Bound.BANDWIDTH:
        return Cause.TRANSFER
    return Cause.LATENCY if bound is Bound.LATENCY else None


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
