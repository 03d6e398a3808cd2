"""Waiting for partners that are late, where differences between ranks do not explain it: for messages that are sent
late or received late, at collective calls, or for access to a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.diagnosis.chain import chained, last_at_collectives
from seatrial.diagnosis.ranks import explained_by_computing
from seatrial.diagnosis.sites import only_site
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.merge.bound import WaitKind, receives, sends, wait_kind

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile

_LEAST_PART = 0.3
"""A kind of waiting is named from this share of all waiting on, ..."""
_LEAST_OF_MESSAGES = 0.15
"""... but for messages from this share on: they say which ranks wait for each other."""
_FEASIBLE = 0.5
"""Ranks can only be late while they are outside MPI: this must be possible for so much of the waiting."""
_ITSELF = 0.1
_CLEARLY = 2 / 3
"""A partner is named if so much of the waiting is for its messages."""
_WAITS_OF = {
    Cause.LATE_SENDER: (WaitKind.RECEIVE, WaitKind.REQUESTS, WaitKind.POLL),
    Cause.LATE_RECEIVER: (WaitKind.SEND, WaitKind.REQUESTS, WaitKind.POLL),
    Cause.LATE_AT_COLLECTIVE: (WaitKind.COLLECTIVE, WaitKind.REQUESTS, WaitKind.POLL),
    Cause.WINDOW_WAIT: (WaitKind.WINDOW,),
}


_LATE_CALLS = {Cause.LATE_SENDER: sends, Cause.LATE_RECEIVER: receives}


def could_be_late(profile: Profile) -> float:
    """The largest share of the waiting that passed while another rank was outside MPI: only then can it be late."""
    outside_s = sum(rank.compute_s for rank in profile.per_rank)
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    possible_s = sum(min(rank.waits.all_s, outside_s - rank.compute_s) for rank in profile.per_rank)
    return min(1.0, possible_s / waited_s) if waited_s > 0 else 0.0


def late(profile: Profile, explained_s: Sequence[float], slowest: frozenset[int]) -> list[Diagnosis]:
    """The kinds of waiting that nothing else explains; empty if it cannot be for late ranks. `explained_s` (n,): the
    seconds that each rank waits for a `slowest` rank."""
    clear_s = sum(rank.waits.clear_s for rank in profile.per_rank)
    if len(profile.per_rank) < 2 or clear_s <= 0 or profile.wall_s <= 0 or could_be_late(profile) < _FEASIBLE:
        return []
    waits = [rank.waits for rank in profile.per_rank]
    parts = [
        max(0.0, 1.0 - own_s / one.all_s) if one.all_s > 0 else 0.0
        for one, own_s in zip(waits, explained_s, strict=True)
    ]
    kinds = {
        Cause.LATE_SENDER: [one.receive_s * part for one, part in zip(waits, parts, strict=True)],
        Cause.LATE_RECEIVER: [one.send_s * part for one, part in zip(waits, parts, strict=True)],
        Cause.LATE_AT_COLLECTIVE: [one.collective_s * part for one, part in zip(waits, parts, strict=True)],
        Cause.WINDOW_WAIT: [one.window_s * part for one, part in zip(waits, parts, strict=True)],
    }
    found = [
        _of_kind(profile, cause, seconds)
        for cause, seconds in kinds.items()
        if sum(seconds) >= (_LEAST_OF_MESSAGES if cause in _LATE_CALLS else _LEAST_PART) * clear_s
    ]
    others = [one for one in found if one.rank not in slowest or waits_itself(profile, one.rank)]
    return chained(profile, others, kinds)


def waits_itself(profile: Profile, rank: int | None) -> bool:
    """Whether a rank that others wait for waits for others, too: then ranks work in turn."""
    return any(one.rank == rank and one.waits.clear_s >= _ITSELF * one.wall_s for one in profile.per_rank)


def _of_kind(profile: Profile, cause: Cause, seconds: Sequence[float]) -> Diagnosis:
    evidence = [Evidence(Signal.WAITING_EXPLAINED, explained_by_computing(profile), is_against=True)]
    rank = None
    if cause is Cause.LATE_AT_COLLECTIVE:
        place = last_at_collectives(seconds)
        if place is None:
            evidence += _in_turn(profile, seconds)
        else:
            rank = profile.per_rank[place].rank
    elif cause is not Cause.WINDOW_WAIT:
        blamed = _partners(profile, dict(zip((one.rank for one in profile.per_rank), seconds, strict=True)), cause)
        total = sum(blamed.values())
        rank = max(blamed, key=lambda one: blamed[one], default=None)
        if rank is None or total <= 0 or blamed[rank] < _CLEARLY * total:
            rank = None
        else:
            evidence.append(Evidence(Signal.MESSAGES_SHARE, blamed[rank] / total))
    call = next((one for one in profile.calls if one.waiting_s > 0 and wait_kind(one.call) in _WAITS_OF[cause]), None)
    sureness = Sureness.MEASURED if call is not None and call.measured is not None else Sureness.INFERRED
    return Diagnosis(
        cause,
        min(1.0, sum(seconds) / profile.wall_s),
        sureness,
        tuple(evidence),
        rank=rank,
        host=next((one.host for one in profile.per_rank if one.rank == rank), ""),
        call=call.call if call is not None else "",
        late_at=None if rank is None or cause not in _LATE_CALLS else only_site(profile, _LATE_CALLS[cause]),
    )


def _in_turn(profile: Profile, seconds: Sequence[float]) -> list[Evidence]:
    """What shows that ranks are late in turn: each of them waits, and within slices of time they differ."""
    mean_s = sum(seconds) / len(seconds)
    found = [Evidence(Signal.LEAST_WAITING, min(seconds) / mean_s if mean_s > 0 else 0.0)]
    differences = profile.differences
    if differences is not None:
        waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
        found.append(Evidence(Signal.SLICE, differences.width_s))
        found.append(Evidence(Signal.EXPLAINED_IN_SLICES, min(1.0, differences.waiting_s / waited_s)))
    return found


def _partners(profile: Profile, waited_s: dict[int, float], cause: Cause) -> dict[int, float]:
    """Rank -> seconds that others waited for it: each rank's waiting, shared by its partners' messages."""
    import numpy as np

    src, dst = (np.frombuffer(column, np.uintc).astype(np.int64) for column in (profile.matrix.src, profile.matrix.dst))
    if not len(src):
        return {}
    partner, waiting = (src, dst) if cause is Cause.LATE_SENDER else (dst, src)
    count = np.frombuffer(profile.matrix.count, np.uint64).astype(float)
    own_s = np.array([waited_s.get(rank, 0.0) for rank in range(int(max(src.max(), dst.max())) + 1)])
    messages = np.bincount(waiting, count, len(own_s))
    blamed = np.bincount(partner, own_s[waiting] * count / np.maximum(messages, 1.0)[waiting], len(own_s))
    return {int(rank): float(blamed[rank]) for rank in np.flatnonzero(blamed)}
