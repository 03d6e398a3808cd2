"""Waiting for partners that are late, where differences between ranks do not explain it: for messages that are sent
late or received late, at collective calls, or for access to a window.

Ranks that are late because of their own time in MPI: one that waits for a late partner and makes others wait for it,
and one whose calls take long although no partner is late.

Collective calls that take long by themselves: in each of them some rank is the last to arrive and waits for nobody,
so that the shortest call of all ranks shows what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.diagnosis.ranks import cpu_varies, explained_by_computing
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.merge.bound import (
    HALF_PERFORMANCE_B,
    MANY_CALLS,
    WaitKind,
    is_blocking_receive,
    is_start,
    receives,
    reference_of,
    sends,
    wait_kind,
)

if TYPE_CHECKING:
    from seatrial.profiler.cause import CallSite
    from seatrial.profiler.profile import Profile, RankTotals, SizeTotals

_CLEARLY = 2 / 3

Wanted = Callable[[str], bool]
"""Whether a function is one of those to look at, by its name."""


def longest_site(profile: Profile, wanted: Wanted) -> CallSite | None:
    """The call site with most of the time of these functions, by whatever path; None if no line or symbol is known."""
    ranked = _ranked(profile, wanted, lambda site: site.time_s)
    return ranked[0][1] if ranked else None


def only_site(profile: Profile, wanted: Wanted) -> CallSite | None:
    """The call site of nearly all calls of these functions; None if they are called from several."""
    ranked = _ranked(profile, wanted, lambda site: site.count)
    total = sum(value for value, _ in ranked)
    return ranked[0][1] if ranked and ranked[0][0] >= _CLEARLY * total else None


def _ranked(profile: Profile, wanted: Wanted, value: Callable[[CallSite], float]) -> list[tuple[float, CallSite]]:
    """Call sites by the sum of a value, the largest first; with the path that takes longest."""
    sums: dict[tuple[object, ...], float] = {}
    longest: dict[tuple[object, ...], CallSite] = {}
    for site in profile.callsites:  # the longest first
        if site.frames and wanted(site.call):
            place = (site.call, site.module, site.offset, site.frames)
            sums[place] = sums.get(place, 0.0) + value(site)
            longest.setdefault(place, site)
    return sorted(((total, longest[place]) for place, total in sums.items()), key=lambda one: -one[0])


_MOSTLY = 0.5
"""Time in other calls of MPI makes a rank late if it is so much of what the others wait."""
_ARRIVES_LAST, _OTHERS_WAIT = 0.1, 0.4
"""The last rank at collectives waits at most so long, all others at least so long, both over the mean of the others."""


def last_at_collectives(seconds: Sequence[float]) -> int | None:
    """The call site of the only rank that hardly waits at collectives, while all others do: it arrives last. `seconds`
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
    free_s = _others_outside_s(profile, last)
    if wait_kind(call) is not WaitKind.WINDOW:
        partners = _chained(profile, last.rank)
        free_s = min(free_s, sum(one.wall_s - one.waits.collective_s for one in others if one.rank in partners))
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


_FAR_ABOVE = 20.0
_SELDOM = 0.25


def slow_receives(profile: Profile, left_s: float) -> Diagnosis | None:
    """Receives of small messages that make up most of `left_s` seconds of waiting, although other ranks were hardly
    outside MPI meanwhile: far longer than the best of them, and than a message takes. None if there are few."""
    possible = could_be_late(profile)
    if possible >= _SELDOM:
        return None
    long = [one for one in profile.sizes if is_blocking_receive(one.call) and _is_far_above(one, profile)]
    long_s = sum(one.waiting_s for one in long)
    if not long or long_s < _MOSTLY * left_s:
        return None
    main = max(long, key=lambda one: one.waiting_s)
    evidence = (
        Evidence(Signal.CALLS, main.count),
        Evidence(Signal.CALL_MEAN, main.time_s / main.count),
        Evidence(Signal.CALL_BEST, main.best_s),
        Evidence(Signal.OUTSIDE_MPI, possible, is_against=True),
    )
    share, size = min(1.0, min(left_s, long_s) / profile.wall_s), round(main.moved_B) or None
    return Diagnosis(Cause.SLOW_RECEIVES, share, Sureness.INFERRED, evidence, call=main.call, size_B=size)


def _is_far_above(one: SizeTotals, profile: Profile) -> bool:
    if one.measured is not None or one.count < MANY_CALLS or one.size_B >= HALF_PERFORMANCE_B:
        return False
    mean_s = one.time_s / one.count
    return mean_s >= _FAR_ABOVE * one.best_s and mean_s > _allowed_s(one, profile)


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
    return not is_start(call) and wait_kind(call) is not WaitKind.COLLECTIVE


def _excess(call: str, last: RankTotals, others: Sequence[RankTotals]) -> float:
    """Seconds that the last rank is in a function for longer than the mean of the others."""
    return last.by_call[call] - sum(rank.by_call.get(call, 0.0) for rank in others) / len(others)


def _chained(profile: Profile, rank: int) -> set[int]:
    """The ranks that exchange messages with a rank."""
    import numpy as np

    src, dst = (np.frombuffer(column, np.uintc) for column in (profile.matrix.src, profile.matrix.dst))
    return {int(one) for one in np.concatenate([src[dst == rank], dst[src == rank]])}


_LEAST_PART = 0.3
"""A kind of waiting is named from this share of all waiting on, ..."""
_LEAST_OF_MESSAGES = 0.15
"""... but for messages from this share on: they say which ranks wait for each other."""
_FEASIBLE = 0.5
"""Ranks can only be late while they are outside MPI: this must be possible for so much of the waiting."""
_ITSELF = 0.1


_WAITS_OF = {
    Cause.LATE_SENDER: (WaitKind.RECEIVE, WaitKind.REQUESTS, WaitKind.POLL),
    Cause.LATE_RECEIVER: (WaitKind.SEND, WaitKind.REQUESTS, WaitKind.POLL),
    Cause.LATE_AT_COLLECTIVE: (WaitKind.COLLECTIVE, WaitKind.REQUESTS, WaitKind.POLL),
    Cause.WINDOW_WAIT: (WaitKind.WINDOW,),
}


_LATE_CALLS = {Cause.LATE_SENDER: sends, Cause.LATE_RECEIVER: receives}


def could_be_late(profile: Profile) -> float:
    """The largest share of the waiting that passed while another rank was outside MPI: only then can it be late."""
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    possible_s = sum(min(rank.waits.all_s, _others_outside_s(profile, rank)) for rank in profile.per_rank)
    return min(1.0, possible_s / waited_s) if waited_s > 0 else 0.0


def _others_outside_s(profile: Profile, rank: RankTotals) -> float:
    """The most of a rank's time in MPI that can have passed while another rank was outside: by slices of time, where
    they are known, else by the sums over the run."""
    outside_s = sum(one.compute_s for one in profile.per_rank if one is not rank)
    slices = profile.differences
    all_inside_s = 0.0 if slices is None else slices.all_inside_s
    return max(0.0, min(outside_s, rank.mpi_s - all_inside_s))


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
    own = list(zip(waits, parts, strict=True))
    kinds = {
        Cause.LATE_SENDER: [one.receive_s * part for one, part in own],
        Cause.LATE_RECEIVER: [one.send_s * part for one, part in own],
        Cause.LATE_AT_COLLECTIVE: [one.collective_s * part for one, part in own],
        Cause.WINDOW_WAIT: [one.window_s * part for one, part in own],
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
            varied = cpu_varies(profile)
            evidence += [] if varied is None else [Evidence(Signal.CPU_VARIES, varied)]
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


_WAITS_FOR_ALL = re.compile(r"MPI_(Barrier|Allreduce|Alltoall[vw]?|Allgatherv?|Reduce_scatter(_block)?)(_c)?")
"""Calls that no rank leaves before all have arrived."""
_REDUCES = re.compile(r"MPI_(Allreduce|Reduce(_scatter(_block)?)?|Scan|Exscan)(_c)?")


_CLEARLY_LONGER = 2.0
"""... and so many times what it should take at most."""
_LEAST_CALLS = 20
_OF_OWN = 0.3
"""Others wait at the next collective for a rank that applies an operation: its call has this part of the waiting."""
_OF_SOME = 0.25
"""Only some ranks of a rooted reduction or a scan apply the operation: their calls make up most of the mean."""


def slow_collective(profile: Profile, left_s: float) -> Diagnosis | None:
    """The collective call that takes most of the waiting of `left_s` seconds, if its shortest call is hardly shorter
    than the others. None for large messages without an operation of the program's own: that is their transfer."""
    long = [
        one
        for one in profile.sizes
        if one.measured is None
        and one.waiting_s > 0
        and is_slow_itself(one, profile)
        and (one.size_B < HALF_PERFORMANCE_B or uses_own_operation(one, profile))
    ]
    long_s = sum(one.waiting_s for one in long)
    least = _OF_OWN if any(uses_own_operation(one, profile) for one in long) else _MOSTLY
    if not long or long_s < least * left_s:
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
        evidence.append(Evidence(Signal.OPERATIONS, profile.untimed_operations))
    size, share = round(main.moved_B) or None, min(1.0, time_s / profile.wall_s)
    source = reference_of(profile.hosts).source
    return Diagnosis(
        Cause.SLOW_COLLECTIVE, share, Sureness.INFERRED, tuple(evidence), call=main.call, size_B=size, source=source
    )


def uses_own_operation(one: SizeTotals, profile: Profile) -> bool:
    """Whether a reduction may be by an operation of the program whose time was not measured."""
    return _REDUCES.fullmatch(one.call) is not None and profile.untimed_operations > 0


def is_slow_itself(one: SizeTotals, profile: Profile) -> bool:
    """Whether even the shortest of these collective calls takes long; of reductions with an operation of the program's
    own, whether calls take about equally long: then it is the operation until something else is shown."""
    mean_s = one.time_s / one.count if one.count else 0.0
    if uses_own_operation(one, profile):
        takes_part = one.least_s >= _MOSTLY * mean_s
        if _WAITS_FOR_ALL.fullmatch(one.call) is None:
            takes_part = one.best_s >= _OF_SOME * mean_s
        return takes_part and mean_s > reference_of(profile.hosts).most_s(one.call, 0, profile.ranks)
    return (
        _WAITS_FOR_ALL.fullmatch(one.call) is not None
        and one.count >= _LEAST_CALLS
        and one.least_s >= _MOSTLY * one.time_s / one.count
        and one.least_s >= _CLEARLY_LONGER * _allowed_s(one, profile)
    )


def _allowed_s(one: SizeTotals, profile: Profile) -> float:
    return reference_of(profile.hosts).most_s(one.call, one.moved_B, profile.ranks)
