"""Ranks that others wait for: one that computes longest, one that reads and writes, one that is blocked, and partners
that are late although all compute equally long."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.profiler.diagnosis.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.diagnosis.cpu import LEAST_DELAY
from seatrial.profiler.merge.bound import WaitKind, wait_kind

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, RankTotals

_EXPLAINS = 0.5
"""A cause must explain at least half of the waiting."""
_LEAST_EXCESS = 0.05
"""... and the slowest rank compute so much longer than the mean."""
_MOST_OF_BYTES = 0.8
_LEAST_BYTES = 1 << 20
_MOSTLY = 0.5
_WAITS_OF = {
    Cause.LATE_SENDER: (WaitKind.RECEIVE, WaitKind.REQUESTS),
    Cause.LATE_RECEIVER: (WaitKind.SEND, WaitKind.REQUESTS),
    Cause.LATE_AT_COLLECTIVE: (WaitKind.COLLECTIVE,),
}
_CLEARLY = 2 / 3
"""A partner is named if so much of the waiting is for its messages."""


def rank_diagnoses(profile: Profile) -> list[Diagnosis]:
    """Why ranks wait for others in MPI; empty if they wait for less than 5 % of the time."""
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    if len(profile.per_rank) < 2 or waited_s <= 0:
        return []
    if any(rank.cpu is not None and (rank.cpu.delay_share or 0.0) >= LEAST_DELAY for rank in profile.per_rank):
        return []  # who is late depends on who had a CPU
    one = _uneven(profile) or _late(profile, waited_s)
    return [one] if one is not None else []


def explained_by_computing(profile: Profile) -> float:
    """What the ranks would wait if they differed in computing only, over what they wait; at most 1."""
    times = [rank.compute_s for rank in profile.per_rank]
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    return min(1.0, sum(max(times) - time for time in times) / waited_s) if times and waited_s > 0 else 0.0


def _uneven(profile: Profile) -> Diagnosis | None:
    """The rank that is outside MPI for longest, if that explains the waiting."""
    times = [rank.compute_s for rank in profile.per_rank]
    mean_s = sum(times) / len(times)
    slowest = max(profile.per_rank, key=lambda rank: rank.compute_s)
    excess_s = slowest.compute_s - mean_s
    explained = explained_by_computing(profile)
    if mean_s <= 0 or excess_s < _LEAST_EXCESS * mean_s or explained < _EXPLAINS:
        return None
    evidence = [
        Evidence(Signal.EXCESS_COMPUTING, excess_s / mean_s),
        Evidence(Signal.WAITING_EXPLAINED, explained),
    ]
    share = excess_s / profile.elapsed_s if profile.elapsed_s > 0 else 0.0
    cause, more = _what_it_does(profile, slowest, excess_s)
    sureness = Sureness.MEASURED if cause is Cause.IMBALANCE else Sureness.INFERRED
    return Diagnosis(cause, min(1.0, share), sureness, (*evidence, *more), rank=slowest.rank, host=slowest.host)


def _what_it_does(profile: Profile, slowest: RankTotals, excess_s: float) -> tuple[Cause, list[Evidence]]:
    """Whether the slowest rank computes, reads and writes, or is blocked."""
    blocked = slowest.cpu.blocked_share if slowest.cpu is not None else None
    is_blocked = blocked is not None and slowest.cpu is not None and blocked * slowest.cpu.wall_s >= _MOSTLY * excess_s
    share, own_B = _of_bytes(profile, slowest.rank)
    active_s = _active_s(profile, slowest.rank)
    moves = share >= _MOST_OF_BYTES and own_B >= _LEAST_BYTES
    found = [Evidence(Signal.BLOCKED, blocked)] if blocked is not None else []
    if moves and (is_blocked or active_s >= _MOSTLY * excess_s):
        return Cause.SERIAL_IO, [*found, Evidence(Signal.IO_SHARE, share), Evidence(Signal.IO_BYTES, own_B)]
    if is_blocked:
        return Cause.BLOCKED_RANK, found
    return Cause.IMBALANCE, [replace(one, is_against=True) for one in found]


def _of_bytes(profile: Profile, rank: int) -> tuple[float, float]:
    """A rank's share of all bytes read and written, and these bytes."""
    totals = {
        one.rank: one.totals.read_B + one.totals.written_B
        for one in (profile.io.ranks if profile.io is not None else ())
        if one.totals is not None
    }
    everything = sum(totals.values())
    return (totals.get(rank, 0) / everything if everything > 0 else 0.0), totals.get(rank, 0)


def _active_s(profile: Profile, rank: int) -> float:
    """Seconds of the bins in which a rank moved at least a tenth of what it moved in its busiest one."""
    if profile.io is None:
        return 0.0
    series = next((one.series for one in profile.io.ranks if one.rank == rank), None)
    if series is None:
        return 0.0
    moved = [read + written for read, written in zip(series.read_B, series.written_B, strict=True)]
    return profile.io.width_s * sum(value > 0.1 * max(moved) for value in moved) if any(moved) else 0.0


def _late(profile: Profile, waited_s: float) -> Diagnosis | None:
    """A partner that is late, where differences in computing do not explain the waiting."""
    kinds = {
        Cause.LATE_SENDER: [rank.waits.receive_s for rank in profile.per_rank],
        Cause.LATE_RECEIVER: [rank.waits.send_s for rank in profile.per_rank],
        Cause.LATE_AT_COLLECTIVE: [rank.waits.collective_s for rank in profile.per_rank],
    }
    cause = max(kinds, key=lambda one: sum(kinds[one]))
    seconds = kinds[cause]
    if sum(seconds) < _EXPLAINS * waited_s or profile.wall_s <= 0:
        return None
    evidence = [Evidence(Signal.WAITING_EXPLAINED, explained_by_computing(profile), is_against=True)]
    rank = None
    if cause is not Cause.LATE_AT_COLLECTIVE:
        blamed = _partners(profile, dict(zip((one.rank for one in profile.per_rank), seconds, strict=True)), cause)
        rank = max(blamed, key=lambda one: blamed[one], default=None)
        total = sum(blamed.values())
        if rank is None or total <= 0 or blamed[rank] < _CLEARLY * total:
            rank = None
        else:
            evidence.append(Evidence(Signal.MESSAGES_SHARE, blamed[rank] / total))
    call = next((one for one in profile.calls if one.waiting_s > 0 and wait_kind(one.call) in _WAITS_OF[cause]), None)
    sureness = Sureness.MEASURED if call is not None and call.measured is not None else Sureness.INFERRED
    host = next((one.host for one in profile.per_rank if one.rank == rank), "")
    return Diagnosis(
        cause,
        sum(seconds) / profile.wall_s,
        sureness,
        tuple(evidence),
        rank=rank,
        host=host,
        call=call.call if call is not None else "",
    )


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
