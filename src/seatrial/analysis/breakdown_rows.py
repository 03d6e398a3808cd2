"""The MPI summary of one repeat, and the difference of two repeats split into parts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.profiler.merge.bound import (
    BETWEEN_HOSTS,
    HALF_PERFORMANCE_B,
    ON_ONE_HOST,
    ReferenceLink,
    WaitKind,
    is_start,
    wait_kind,
)
from seatrial.profiler.merge.recorded import recorded_profile
from seatrial.profiler.profile import Profile, RankTotals

Call = tuple[str, int | None]
"""MPI function and message size; None: any size."""

_POLLS = re.compile(r"MPI_(Test\w*|Im?probe|Request_get_status\w*|Parrived)(_c)?")
_SLOWER = 1.25
"""The shortest call of one side is so much longer: of thousands of calls, it is steady."""
_WITH_THE_SHORTEST = 1.5
"""The mean moved with the shortest call if its ratio is at most so much larger,"""
_MOSTLY_PROMPT = 4.0
"""and the mean is at most so many times the shortest one: else it is mostly waiting."""


class Moving(StrEnum):
    """A part of the difference; those of calls add up to the time in MPI."""

    WHOLE = "whole"
    NO_CPU = "no-cpu"
    CPU = "cpu"
    BLOCKED = "blocked"
    STARTUP = "startup"
    COMPUTING = "computing"
    EXCESS = "excess"
    CALLS = "calls"
    SIZES = "sizes"
    LATENCY = "latency"
    TRANSFER = "transfer"
    WAIT_RECEIVE = "wait-receive"
    WAIT_SEND = "wait-send"
    WAIT_COLLECTIVE = "wait-collective"
    WAITING = "waiting"


_WAIT_OF = {
    WaitKind.RECEIVE: Moving.WAIT_RECEIVE,
    WaitKind.REQUESTS: Moving.WAIT_RECEIVE,
    WaitKind.SEND: Moving.WAIT_SEND,
    WaitKind.COLLECTIVE: Moving.WAIT_COLLECTIVE,
}


class BreakdownRow(Frozen):
    """The calls of one function and size: number and seconds per rank, bytes of one call, and the shortest call of any
    rank (None in records of earlier versions)."""

    count: float
    time_s: float
    bytes: float
    least_s: float | None

    @property
    def mean_s(self) -> float:
        """Seconds of one call."""
        return self.time_s / self.count if self.count else 0.0


_NO_CALLS = BreakdownRow(0.0, 0.0, 0.0, None)


class Repeat(Frozen):
    """One repeat: seconds of a rank, the mean over ranks. `profile` has its ranks and nodes; None in records of earlier
    versions and of very many ranks."""

    ranks: int
    wall_s: float
    mpi_s: float
    calls: Mapping[Call, BreakdownRow]
    profile: Profile | None

    @property
    def computing_s(self) -> list[float]:
        """Seconds outside MPI by rank, ascending; the mean alone where the ranks are not known."""
        if self.profile is None:
            return [max(0.0, self.wall_s - self.mpi_s)]
        return sorted(rank.compute_s for rank in self.profile.per_rank)

    @property
    def middle_s(self) -> float:
        """Seconds outside MPI of the middle rank; of two ranks, the one that is there for less."""
        times = self.computing_s
        return times[(len(times) - 1) // 2]

    @property
    def excess_s(self) -> float:
        """How much longer the slowest rank is outside MPI than the middle one."""
        return self.computing_s[-1] - self.middle_s

    @property
    def waiting_for_slowest_s(self) -> float:
        """What a rank would wait, on average, if the ranks differed in computing only."""
        times = self.computing_s
        return times[-1] - sum(times) / len(times)

    @property
    def delay_s(self) -> float | None:
        """Seconds in which a rank was ready to run, but had no CPU; None if it is unknown for all ranks."""
        return _mean(self.profile, _missing_s)

    @property
    def delay_share(self) -> float:
        """The largest share of a rank's time without a CPU; 0 if it is unknown."""
        if self.profile is None:
            return 0.0
        return max(
            ((_missing_s(rank) or 0.0) / rank.cpu.wall_s for rank in self.profile.per_rank if rank.cpu is not None),
            default=0.0,
        )

    @property
    def cpu_s(self) -> float | None:
        """CPU seconds of a rank."""
        return _mean(self.profile, lambda rank: None if rank.cpu is None else rank.cpu.cpu_s)

    @property
    def blocked_s(self) -> float | None:
        """Seconds in which a rank neither ran nor was ready to run."""
        return _mean(self.profile, _blocked_s)


def _mean(profile: Profile | None, of: Any) -> float | None:
    values = [of(rank) for rank in profile.per_rank] if profile is not None else []
    return sum(values) / len(values) if values and None not in values else None


def _missing_s(rank: RankTotals) -> float | None:
    """The kernel counts throttled time as ready to run in some versions only: the longer of both."""
    if rank.cpu is None or rank.cpu.delay_s is None:
        return None
    return min(rank.cpu.wall_s, max(rank.cpu.delay_s, rank.cpu.throttled_s or 0.0))


def _blocked_s(rank: RankTotals) -> float | None:
    share = rank.cpu.blocked_share if rank.cpu is not None else None
    return None if share is None or rank.cpu is None else share * rank.cpu.wall_s


def repeat_of(summary: Mapping[str, Any]) -> Repeat:
    """The repeat in the summary of a complete profile, with its types checked (`model/results/record_shape.py`)."""
    ranks = max(1, summary["ranks"])
    least = summary.get("least_s") or []
    known = least if len(least) == len(summary["calls"]) else [None] * len(summary["calls"])
    calls = {
        (call, size): BreakdownRow(count / ranks, time_s / ranks, total_B / count if count else 0.0, shortest)
        for (call, size, count, total_B, time_s), shortest in zip(summary["calls"], known, strict=True)
    }
    return Repeat(ranks, summary["wall_s"] / ranks, summary["mpi_s"] / ranks, calls, recorded_profile(summary))


class Split(Frozen):
    """Candidate minus baseline in one block, in seconds per rank; `by_call` has the part of each call."""

    parts: Mapping[Moving, float]
    by_call: Mapping[tuple[Moving, Call], float] = {}


def split(baseline: Repeat, candidate: Repeat) -> Split:
    """The parts of the difference between two repeats; those that are not known on both sides are 0."""
    parts: dict[Moving, float] = dict.fromkeys(Moving, 0.0)
    parts[Moving.WHOLE] = candidate.wall_s - baseline.wall_s
    parts[Moving.COMPUTING] = candidate.middle_s - baseline.middle_s
    parts[Moving.EXCESS] = candidate.excess_s - baseline.excess_s
    parts[Moving.NO_CPU] = _no_cpu_s(baseline, candidate)
    pairs = {Moving.CPU: (baseline.cpu_s, candidate.cpu_s), Moving.BLOCKED: (baseline.blocked_s, candidate.blocked_s)}
    for part, (before, after) in pairs.items():
        if before is not None and after is not None:
            parts[part] = after - before
    by_call: dict[tuple[Moving, Call], float] = defaultdict(float)
    sides = (baseline.calls, candidate.calls)
    sends_ratio = _sends_ratio(*sides)
    most = _reference(baseline), _reference(candidate)
    for call in dict.fromkeys((*sides[0], *sides[1])):
        first, second = (side.get(call, _NO_CALLS) for side in sides)
        for part, seconds in _of_call(call, (first, second), sends_ratio, most, max(1, baseline.ranks)):
            parts[part] += seconds
            by_call[part, call] += seconds
    for call, seconds in _other_sizes(*sides):
        parts[Moving.CALLS] -= seconds
        parts[Moving.SIZES] += seconds
        by_call[Moving.CALLS, call] -= seconds
        by_call[Moving.SIZES, call] += seconds
    parts[Moving.WAITING] = sum(parts[part] for part in set(_WAIT_OF.values()))
    return Split(parts, by_call)


def _no_cpu_s(baseline: Repeat, candidate: Repeat) -> float:
    """What the ranks waited longer for a CPU, per second that they ran: a program that computes longer beside the same
    other processes also waits longer, but the cause of that is computing."""
    if baseline.delay_s is None or candidate.delay_s is None:
        return 0.0
    ran = [max(1e-9, repeat.wall_s - (repeat.delay_s or 0.0)) for repeat in (baseline, candidate)]
    return sum(ran) / 2 * (candidate.delay_s / ran[1] - baseline.delay_s / ran[0])


def _reference(repeat: Repeat) -> ReferenceLink:
    hosts = {rank.host for rank in repeat.profile.per_rank} if repeat.profile is not None else {""}
    return ON_ONE_HOST if len(hosts) == 1 else BETWEEN_HOSTS


def is_late(row: BreakdownRow, call: Call, repeat: Repeat) -> bool:
    """Whether a call takes ten times as long as on any working fabric: no transport explains it."""
    return row.mean_s > 10 * _reference(repeat).most_s(call[0], row.bytes, repeat.ranks)


def _of_call(
    call: Call,
    rows: tuple[BreakdownRow, BreakdownRow],
    sends_ratio: float,
    references: tuple[ReferenceLink, ReferenceLink],
    ranks: int,
) -> list[tuple[Moving, float]]:
    """The parts of one function and size; they add up to its difference."""
    (name, size_B), (first, second) = call, rows
    whole = second.time_s - first.time_s
    if is_start(name):
        return [(Moving.STARTUP, whole)]
    if _POLLS.fullmatch(name):
        return [(Moving.WAIT_RECEIVE, whole)]  # the number of tests follows from the waiting
    if not first.count or not second.count:
        return [(Moving.CALLS, whole)]
    more = (second.count - first.count) * (first.mean_s + second.mean_s) / 2
    longer = whole - more
    kind = wait_kind(name)
    cost = Moving.TRANSFER if (size_B or 0) >= HALF_PERFORMANCE_B else Moving.LATENCY
    if kind is None:
        return [(Moving.CALLS, more), (cost, longer)]
    prompt = _prompt_s(name, kind, rows, sends_ratio, references, ranks)
    return [(Moving.CALLS, more), (cost, prompt), (_WAIT_OF[kind], longer - prompt)]


def _other_sizes(first: Mapping[Call, BreakdownRow], second: Mapping[Call, BreakdownRow]) -> list[tuple[Call, float]]:
    """What the calls of sizes that only one side has take longer, for functions that both have: as many calls as both
    sides have in these sizes changed their size, the others are more calls. Each with the call that has most of it."""
    only = [
        {call: row for call, row in own.items() if call not in other and not is_start(call[0])}
        for own, other in ((first, second), (second, first))
    ]
    found = []
    for name in dict.fromkeys(call[0] for call in only[0]):
        sides = [{call: row for call, row in side.items() if call[0] == name} for side in only]
        counts = [sum(row.count for row in side.values()) for side in sides]
        if not all(counts):
            continue
        before, after = (sum(row.time_s for row in side.values()) / n for side, n in zip(sides, counts, strict=True))
        calls = sides[after > before]
        found.append((max(calls, key=lambda call: calls[call].time_s), min(counts) * (after - before)))
    return found


def _prompt_s(
    name: str,
    kind: WaitKind,
    rows: tuple[BreakdownRow, BreakdownRow],
    sends_ratio: float,
    references: tuple[ReferenceLink, ReferenceLink],
    ranks: int,
) -> float:
    """What the calls take longer without waiting: as the shortest call, with the mean if that moved as much.

    The shortest call of any rank has no waiting where the last rank to come returns at once. A rank that only receives
    may wait in each call: its shortest one counts if it is within what a working fabric takes, or if calls that do not
    wait changed as much.
    """
    first, second = rows
    if first.least_s is None or second.least_s is None or min(first.least_s, second.least_s) <= 0:
        return 0.0
    ratio = second.least_s / first.least_s
    if kind in (WaitKind.RECEIVE, WaitKind.REQUESTS) and not name.startswith("MPI_Sendrecv"):
        is_within = all(
            row.least_s is not None and row.least_s <= reference.most_s(name, row.bytes, ranks)
            for row, reference in zip(rows, references, strict=True)
        )
        is_confirmed = (ratio > 1) == (sends_ratio > 1) and max(sends_ratio, 1 / sends_ratio) >= _SLOWER
        if not (is_within or is_confirmed):
            return 0.0
    count = (first.count + second.count) / 2
    means = second.mean_s / first.mean_s if first.mean_s > 0 else 1.0
    moved = max(ratio, 1 / ratio)
    is_prompt = all(row.least_s and row.mean_s <= _MOSTLY_PROMPT * row.least_s for row in rows)
    if (
        is_prompt
        and moved >= _SLOWER
        and (ratio > 1) == (means > 1)
        and max(means, 1 / means) <= _WITH_THE_SHORTEST * moved
    ):
        return count * (second.mean_s - first.mean_s)
    return count * (second.least_s - first.least_s)


def _sends_ratio(first: Mapping[Call, BreakdownRow], second: Mapping[Call, BreakdownRow]) -> float:
    """The shortest call of the candidate over that of the baseline, for the most frequent send on both sides; 1 if
    there is none."""
    found = [
        (min(row.count, second[call].count), second[call].least_s, row.least_s)
        for call, row in first.items()
        if call in second and (wait_kind(call[0]) is WaitKind.SEND or call[0].startswith(("MPI_Isend", "MPI_Sendrecv")))
    ]
    best = max(found, key=lambda one: one[0], default=None)
    if best is None or not best[1] or not best[2]:
        return 1.0
    return best[1] / best[2]
