"""Ranks that are late because of their own time in MPI: one that waits for a late partner and makes others wait for it,
and one whose calls take long although no partner is late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.diagnosis.sites import longest_site
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.merge.bound import WaitKind, is_start, wait_kind

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, RankTotals

_MOSTLY = 0.5
"""Time in other calls of MPI makes a rank late if it is so much of what the others wait."""
_ARRIVES_LAST, _OTHERS_WAIT = 0.1, 0.4
"""The last rank at collectives waits at most so long, all others at least so long, both over the mean of the others."""


def last_at_collectives(seconds: Sequence[float]) -> int | None:
    """The place of the only rank that hardly waits at collectives, while all others do: it arrives last. `seconds`
    (n,): what each rank waits there, n at least 2."""
    order = sorted(range(len(seconds)), key=lambda k: seconds[k])
    others = [seconds[k] for k in order[1:]]
    mean_s = sum(others) / len(others)
    if mean_s <= 0:
        return None
    if seconds[order[0]] > _ARRIVES_LAST * mean_s or others[0] < _OTHERS_WAIT * mean_s:
        return None
    return order[0]


def late_in_call(profile: Profile) -> Diagnosis | None:
    """The rank that all others wait for at collectives while it is in other calls of MPI, if its partners are not
    outside such waiting for long enough to be late for these calls."""
    ranks = profile.per_rank
    waits = [rank.waits.collective_s for rank in ranks]
    place = last_at_collectives(waits) if len(ranks) > 1 else None
    if place is None or profile.wall_s <= 0:
        return None
    last, others = ranks[place], [rank for rank in ranks if rank is not ranks[place]]
    waited_s = sum(waits) - waits[place]
    call = max(
        (call for call in last.by_call if _is_other(call)), key=lambda one: _excess(one, last, others), default=""
    )
    if not call or _excess(call, last, others) < _MOSTLY * waited_s / len(others):
        return None
    free_s = sum(rank.wall_s - rank.waits.collective_s for rank in others if rank.rank in _partners(profile, last.rank))
    call_s = last.by_call[call]
    if free_s >= _MOSTLY * call_s:
        return None
    size = max((one for one in profile.sizes if one.call == call), key=lambda one: one.time_s)
    evidence = (
        Evidence(Signal.CALL_TIME, call_s),
        Evidence(Signal.CALLS, size.count),
        Evidence(Signal.CALL_MEAN, size.time_s / size.count),
        Evidence(Signal.CALL_BEST, size.best_s),
        Evidence(Signal.PARTNERS_FREE, free_s),
        Evidence(Signal.WAITING_SHARE, waited_s / profile.wall_s),
    )
    return Diagnosis(
        Cause.LATE_IN_CALL,
        min(1.0, (waited_s + call_s) / profile.wall_s),
        Sureness.INFERRED,
        evidence,
        rank=last.rank,
        host=last.host,
        call=call,
        size_B=round(size.moved_B) or None,
        site=longest_site(profile, lambda one: wait_kind(one) is WaitKind.COLLECTIVE),
        late_at=longest_site(profile, lambda one: one == call),
    )


def chained(profile: Profile, found: Sequence[Diagnosis], kinds: Mapping[Cause, Sequence[float]]) -> list[Diagnosis]:
    """The same, with waiting at collectives as part of its cause: the last rank there waits for a late partner before.
    `kinds`: seconds of each rank by kind of waiting."""
    at = next((one for one in found if one.cause is Cause.LATE_AT_COLLECTIVE and one.rank is not None), None)
    if at is None:
        return list(found)
    place = next(k for k, rank in enumerate(profile.per_rank) if rank.rank == at.rank)
    waits = kinds[Cause.LATE_AT_COLLECTIVE]
    mean_s = (sum(waits) - waits[place]) / (len(waits) - 1)
    roots = [
        one
        for one in found
        if one.cause in (Cause.LATE_SENDER, Cause.LATE_RECEIVER) and kinds[one.cause][place] >= _MOSTLY * mean_s
    ]
    if len(roots) != 1:
        return list(found)
    then = longest_site(profile, lambda call: wait_kind(call) is WaitKind.COLLECTIVE)
    root = replace(roots[0], share=min(1.0, roots[0].share + at.share), then=then, then_rank=at.rank)
    return [root, *(one for one in found if one is not roots[0] and one is not at)]


def _is_other(call: str) -> bool:
    return not is_start(call) and wait_kind(call) not in (WaitKind.COLLECTIVE, WaitKind.WINDOW)


def _excess(call: str, last: RankTotals, others: Sequence[RankTotals]) -> float:
    """Seconds that the last rank is in a function for longer than the mean of the others."""
    return last.by_call[call] - sum(rank.by_call.get(call, 0.0) for rank in others) / len(others)


def _partners(profile: Profile, rank: int) -> set[int]:
    """The ranks that exchange messages with a rank."""
    import numpy as np

    src, dst = (np.frombuffer(column, np.uintc) for column in (profile.matrix.src, profile.matrix.dst))
    return {int(one) for one in np.concatenate([src[dst == rank], dst[src == rank]])}
