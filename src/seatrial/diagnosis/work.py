"""What a rank does outside MPI: it computes, is in calls on files, sleeps, waits for other programs, for locks or for a
CPU, or is blocked for an unknown reason.

Input and output that the ranks do outside MPI calls, and time in which they are blocked, whether others wait for it
or not. Measured: these calls are timed, or the kernel counted it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.profile_io import FILE_CALLS, METADATA_CALLS, SystemCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.profiler.profile import Profile, RankTotals

_COMPETES = 0.1


class Work(StrEnum):
    """A part of the time outside MPI."""

    COMPUTING = "computing"
    IO = "io"
    SLEEP = "sleep"
    OTHERS = "others"
    BLOCKED = "blocked"
    NO_CPU = "no-cpu"


def work_of(rank: RankTotals) -> Mapping[Work, float]:
    """Seconds of each part; their sum is the rank's time outside MPI.

    Blocked for an unknown reason is what neither these calls nor waiting in MPI can explain: the least that it can be.
    Waiting for a CPU is taken to be as frequent in MPI as outside.
    """
    outside_s = rank.compute_s
    parts = {
        Work.IO: rank.system_s(*FILE_CALLS),
        Work.SLEEP: rank.system_s(SystemCall.SLEEP),
        Work.OTHERS: rank.system_s(SystemCall.POLL, SystemCall.CHILD, SystemCall.LOCK),
    }
    known_s = sum(parts.values())
    share = rank.cpu.blocked_share if rank.cpu is not None else None
    if share is not None and rank.cpu is not None:
        parts[Work.BLOCKED] = max(0.0, share * rank.cpu.wall_s - known_s - rank.waits.all_s)
    delay = rank.cpu.delay_share if rank.cpu is not None else None
    parts[Work.NO_CPU] = (delay or 0.0) * outside_s
    spent_s = sum(parts.values())
    if spent_s > outside_s:  # several threads at a time
        parts = {part: time_s * outside_s / spent_s for part, time_s in parts.items()}
    return {Work.COMPUTING: max(0.0, outside_s - sum(parts.values())), Work.BLOCKED: 0.0, **parts}


def file_evidence(profile: Profile, ranks: Sequence[RankTotals]) -> tuple[Evidence, ...]:
    """Times and numbers of the calls on files of these ranks, and the bytes that they moved."""

    def time_s(*kinds: SystemCall) -> float:
        return sum(rank.system_s(*kinds) for rank in ranks)

    def calls(*kinds: SystemCall) -> int:
        return sum(use.calls for rank in ranks for use in rank.system or () if use.kind in kinds)

    found = [
        Evidence(Signal.IO_TIME, time_s(*FILE_CALLS)),
        Evidence(Signal.READ_TIME, time_s(SystemCall.READ)),
        Evidence(Signal.WRITE_TIME, time_s(SystemCall.WRITE)),
        Evidence(Signal.SYNC_TIME, time_s(SystemCall.SYNC)),
        Evidence(Signal.SYNC_CALLS, calls(SystemCall.SYNC)),
        Evidence(Signal.METADATA_TIME, time_s(*METADATA_CALLS)),
        Evidence(Signal.METADATA_CALLS, calls(*METADATA_CALLS)),
    ]
    share, own_B = bytes_of(profile, {rank.rank for rank in ranks})
    return (*found, Evidence(Signal.IO_SHARE, share), Evidence(Signal.IO_BYTES, own_B))


def bytes_of(profile: Profile, ranks: set[int]) -> tuple[float, float]:
    """The share of all bytes read and written that these ranks moved, and these bytes."""
    totals = {
        one.rank: one.totals.read_B + one.totals.written_B
        for one in (profile.io.ranks if profile.io is not None else ())
        if one.totals is not None
    }
    own, everything = sum(totals.get(rank, 0) for rank in ranks), sum(totals.values())
    return (own / everything if everything > 0 else 0.0), own


def blocked_evidence(profile: Profile, rank: RankTotals) -> tuple[Evidence, ...]:
    """How long a rank was blocked, and in which calls."""
    locks_s = [one.system_s(SystemCall.LOCK) for one in profile.per_rank]
    found = [
        Evidence(Signal.SLEEP_TIME, rank.system_s(SystemCall.SLEEP)),
        Evidence(Signal.POLL_TIME, rank.system_s(SystemCall.POLL)),
        Evidence(Signal.CHILD_TIME, rank.system_s(SystemCall.CHILD)),
        Evidence(Signal.LOCK_TIME, rank.system_s(SystemCall.LOCK)),
        Evidence(Signal.LOCK_RANKS, sum(one >= _COMPETES * sum(locks_s) > 0 for one in locks_s)),
    ]
    if rank.cpu is not None and rank.cpu.blocked_share is not None:
        found.insert(0, Evidence(Signal.BLOCKED, rank.cpu.blocked_share))
    if rank.cpu is not None and rank.cpu.major_faults:
        found.append(Evidence(Signal.MAJOR_FAULTS, rank.cpu.major_faults))
    return tuple(found)


_ALONE = 0.8
"""A rank with more of the time in calls on files than this does the input and output."""
_MOSTLY = 0.5


def io_diagnoses(profile: Profile, named: frozenset[int]) -> list[Diagnosis]:
    """The calls on files of all ranks but those `named` already, and of one alone."""
    ranks = [rank for rank in profile.per_rank if rank.rank not in named and rank.system is not None]
    times = {rank.rank: work_of(rank)[Work.IO] for rank in ranks}
    total_s = sum(times.values())
    if total_s <= 0 or profile.wall_s <= 0:
        return []
    most = max(ranks, key=lambda rank: times[rank.rank])
    alone = len(profile.per_rank) > 1 and times[most.rank] >= _ALONE * total_s
    of = [most] if alone else ranks
    metadata_s = sum(rank.system_s(*METADATA_CALLS) for rank in of)
    return [
        Diagnosis(
            Cause.METADATA if metadata_s > _MOSTLY * total_s else Cause.IO,
            min(1.0, total_s / profile.wall_s),
            Sureness.MEASURED,
            (Evidence(Signal.RANKS, len(of)), *file_evidence(profile, of)),
            rank=most.rank if alone else None,
            host=most.host if alone else "",
        )
    ]


def blocked_diagnoses(profile: Profile, named: frozenset[int]) -> list[Diagnosis]:
    """Ranks that sleep, wait for other programs, or are blocked for an unknown reason, outside MPI."""
    ranks = [rank for rank in profile.per_rank if rank.rank not in named]
    times = {rank.rank: _blocked_s(rank) for rank in ranks}
    total_s = sum(times.values())
    if total_s <= 0 or profile.wall_s <= 0:
        return []
    most = max(ranks, key=lambda rank: times[rank.rank])
    alone = len(profile.per_rank) > 1 and times[most.rank] >= _ALONE * total_s
    evidence = (Evidence(Signal.RANKS, 1 if alone else len(ranks)), *blocked_evidence(profile, most))
    share = min(1.0, total_s / profile.wall_s)
    return [Diagnosis(Cause.BLOCKED, share, Sureness.MEASURED, evidence, rank=most.rank, host=most.host)]


def _blocked_s(rank: RankTotals) -> float:
    """With OpenMP, what is blocked for an unknown reason counts as far as it cannot have been in parallel regions:
    there, a rank may wait for its own threads to wake up."""
    work = work_of(rank)
    parallel_s = 0.0 if rank.openmp is None else rank.openmp.parallel_s
    return work[Work.SLEEP] + work[Work.OTHERS] + max(0.0, work[Work.BLOCKED] - parallel_s)
