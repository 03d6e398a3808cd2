"""Input and output that the ranks do outside MPI calls, and time in which they are blocked, whether others wait for it
or not. Measured: these calls are timed, or the kernel counted it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.diagnosis.work import Work, blocked_evidence, file_evidence, work_of
from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.profile_io import METADATA_CALLS

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, RankTotals

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
