"""Ranks that others wait for: one that computes longest, one that reads and writes, one that is blocked; and a rank
that has so little to do that it waits for the others. And ranks that wait in a loop of the program.

What a rank does outside MPI: it computes, is in calls on files, sleeps, waits for other programs, for locks or for a
CPU, or is blocked for an unknown reason.

Input and output that the ranks do outside MPI calls, and time in which they are blocked, whether others wait for it
or not. Measured: these calls are timed, or the kernel counted it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.diagnosis.own_threads import OwnThreads, own_thread_evidence, own_threads
from seatrial.model.frozen import Frozen
from seatrial.profiler.cause import CallSite, Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.profile_io import FILE_CALLS, METADATA_CALLS, SystemCall

if TYPE_CHECKING:
    from seatrial.profiler.profile import Profile, RankTotals

_COMPETES = 0.1


class Ran(Frozen):
    """CPU seconds of the ranks of a profile, and their share of the time in which they could have run: what a missing
    CPU leaves of counted times."""

    cpu_s: float
    share: float

    def counted(self, one: Diagnosis, time_s: float) -> Diagnosis:
        """The same with its CPU seconds as a share of all."""
        share = min(1.0, time_s / self.cpu_s) if self.cpu_s > 0 else 0.0
        return replace(one, evidence=(*one.evidence, Evidence(Signal.CPU_SHARE, share)))


def ran_of(profile: Profile) -> Ran | None:
    """None if nothing is known of their CPU time."""
    known = [rank.cpu for rank in profile.per_rank if rank.cpu is not None]
    cpu_s = sum(one.cpu_s or 0.0 for one in known)
    delay_s = sum(one.delay_s or 0.0 for one in known)
    return Ran(cpu_s, cpu_s / (cpu_s + delay_s)) if cpu_s > 0 else None


class Work(StrEnum):
    """A part of the time outside MPI."""

    COMPUTING = "computing"
    LOOP = "loop"  # of the program, which only waits
    IO = "io"
    SLEEP = "sleep"
    OTHERS = "others"
    BLOCKED = "blocked"
    NO_CPU = "no-cpu"


def work_of(rank: RankTotals, own: OwnThreads) -> Mapping[Work, float]:
    """Seconds of each part; their sum is the rank's time outside MPI.

    While it waits for its own threads, it computes as far as these use its CPUs. Blocked for an unknown reason is what
    neither these calls nor waiting in MPI can explain: the least that it can be.
    Waiting for a CPU is taken to be as frequent in MPI as outside.
    """
    outside_s = rank.compute_s
    parts = {
        Work.LOOP: rank.loop_s,
        Work.IO: rank.system_s(*FILE_CALLS),
        Work.SLEEP: rank.system_s(SystemCall.SLEEP),
        Work.OTHERS: rank.system_s(SystemCall.POLL, SystemCall.CHILD, SystemCall.LOCK, SystemCall.THREAD),
    }
    known_s = sum(parts.values()) - rank.loop_s
    parts[Work.OTHERS] = max(0.0, parts[Work.OTHERS] - own.computed_s)
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
        Evidence(Signal.READ_CALLS, calls(SystemCall.READ)),
        Evidence(Signal.WRITE_TIME, time_s(SystemCall.WRITE)),
        Evidence(Signal.WRITE_CALLS, calls(SystemCall.WRITE)),
        Evidence(Signal.SYNC_TIME, time_s(SystemCall.SYNC)),
        Evidence(Signal.SYNC_CALLS, calls(SystemCall.SYNC)),
        Evidence(Signal.METADATA_TIME, time_s(*METADATA_CALLS)),
        Evidence(Signal.METADATA_CALLS, calls(*METADATA_CALLS)),
        Evidence(Signal.OPEN_CALLS, calls(SystemCall.OPEN)),
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
        Evidence(Signal.THREAD_TIME, rank.system_s(SystemCall.THREAD)),
        Evidence(Signal.LOCK_RANKS, sum(one >= _COMPETES * sum(locks_s) > 0 for one in locks_s)),
    ]
    if rank.cpu is not None and rank.cpu.blocked_share is not None:
        found.insert(0, Evidence(Signal.BLOCKED, rank.cpu.blocked_share))
    found += own_thread_evidence(profile, rank)
    if rank.cpu is not None and rank.cpu.major_faults:
        found.append(Evidence(Signal.MAJOR_FAULTS, rank.cpu.major_faults))
    return tuple(found)


def loop_evidence(rank: RankTotals) -> tuple[Evidence, ...]:
    """How long a rank is in loops that only wait."""
    share = min(1.0, rank.loop_s / rank.wall_s) if rank.wall_s > 0 else 0.0
    return (Evidence(Signal.LOOP_TIME, rank.loop_s), Evidence(Signal.LOOP_SHARE, share))


def loop_site(rank: RankTotals) -> CallSite | None:
    """Where its loop that only waits is."""
    loop = None if rank.code is None else rank.code.loop
    return None if loop is None else CallSite("", loop.module, loop.offset, 0, rank.loop_s, 0, 1, loop.frames)


def loop_diagnoses(profile: Profile, named: frozenset[int]) -> list[Diagnosis]:
    """Ranks that wait in loops of the program outside MPI, with the one that does so for longest."""
    ranks = [rank for rank in profile.per_rank if rank.rank not in named]
    found = _outside(profile, ranks, lambda rank: rank.loop_s)
    if found is None:
        return []
    total_s, most, alone = found
    evidence = (Evidence(Signal.RANKS, 1 if alone else sum(rank.loop_s > 0 for rank in ranks)), *loop_evidence(most))
    share = min(1.0, total_s / profile.wall_s)
    cause, site = Cause.WAITING_LOOP, loop_site(most)
    return [Diagnosis(cause, share, Sureness.MEASURED, evidence, rank=most.rank, host=most.host, site=site)]


_ALONE = 0.8
"""A rank with more of the time in calls on files than this does the input and output."""


def _outside(
    profile: Profile, ranks: Sequence[RankTotals], of: Callable[[RankTotals], float]
) -> tuple[float, RankTotals, bool] | None:
    """The seconds of all ranks outside MPI, the rank with most of them, and whether they are nearly all its own."""
    times = {rank.rank: of(rank) for rank in ranks}
    total_s = sum(times.values())
    if total_s <= 0 or profile.wall_s <= 0:
        return None
    most = max(ranks, key=lambda rank: times[rank.rank])
    return total_s, most, len(profile.per_rank) > 1 and times[most.rank] >= _ALONE * total_s


def io_diagnoses(profile: Profile, named: frozenset[int]) -> list[Diagnosis]:
    """The calls on files of all ranks but those `named` already, and of one alone."""
    ranks = [rank for rank in profile.per_rank if rank.rank not in named and rank.system is not None]
    found = _outside(profile, ranks, lambda rank: work_of(rank, own_threads(profile, rank))[Work.IO])
    if found is None:
        return []
    total_s, most, alone = found
    of = [most] if alone else ranks
    is_metadata = sum(rank.system_s(*METADATA_CALLS) for rank in of) > _MOSTLY * total_s
    cause, share = Cause.METADATA if is_metadata else Cause.IO, min(1.0, total_s / profile.wall_s)
    evidence = (Evidence(Signal.RANKS, len(of)), *file_evidence(profile, of))
    if not alone:
        return [Diagnosis(cause, share, Sureness.MEASURED, evidence)]
    return [Diagnosis(cause, share, Sureness.MEASURED, evidence, rank=most.rank, host=most.host)]


def blocked_diagnoses(profile: Profile, named: frozenset[int]) -> list[Diagnosis]:
    """Ranks that sleep, wait for other programs, or are blocked for an unknown reason, outside MPI."""
    ranks = [rank for rank in profile.per_rank if rank.rank not in named]
    found = _outside(profile, ranks, lambda rank: _blocked_s(rank, own_threads(profile, rank)))
    if found is None:
        return []
    total_s, most, alone = found
    evidence = (Evidence(Signal.RANKS, 1 if alone else len(ranks)), *blocked_evidence(profile, most))
    share = min(1.0, total_s / profile.wall_s)
    return [Diagnosis(Cause.BLOCKED, share, Sureness.MEASURED, evidence, rank=most.rank, host=most.host)]


def _blocked_s(rank: RankTotals, own: OwnThreads) -> float:
    """With OpenMP, what is blocked for an unknown reason counts as far as it cannot have been in parallel regions:
    there, a rank may wait for its own threads to wake up."""
    work = work_of(rank, own)
    parallel_s = 0.0 if rank.openmp is None else rank.openmp.parallel_s
    return work[Work.SLEEP] + work[Work.OTHERS] + max(0.0, work[Work.BLOCKED] - parallel_s)


_LEAST_EXPLAINED = 0.2
"""Differences between ranks that explain less of the waiting are not its cause."""
_LEAST_EXCESS = 0.05
"""... and the slowest rank must be outside MPI so much longer than the mean, and a part of its work must make up so
much of the program's time."""
_PART = 0.2
"""A part of the work is named beside others from this share of the excess on."""
_IDLE = 0.5
"""A rank that is outside MPI for less than this share of the median has little to do, ..."""
_FEW = 1 / 3
"""... if it is one of few, ..."""
_ALIKE = 0.1
"""... and no rank has more to do than the median by more than this."""
_EXPLAINS_REST = (0.4, 1.3)
_MOST_OF_BYTES = 0.8
_LEAST_BYTES = 1 << 20
_MOSTLY = 0.5
_NAMED = tuple(part for part in Work if part is not Work.NO_CPU)


class Uneven(Frozen):
    """Causes by ranks that differ, and (n,) the seconds of each rank's waiting that the differences explain."""

    causes: tuple[Diagnosis, ...] = ()
    explained_s: tuple[float, ...] = ()


def explained_by_computing(profile: Profile) -> float:
    """What the ranks would wait if they differed in their time outside MPI only, over what they wait; at most 1."""
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    return min(1.0, _differences([rank.compute_s for rank in profile.per_rank]) / waited_s) if waited_s > 0 else 0.0


def uneven(profile: Profile) -> Uneven:
    """The rank that is outside MPI for longest, by what it does there, as far as that explains the waiting; then ranks
    that take longer in different parts of their work, so that their totals are even."""
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    nothing = (0.0,) * len(profile.per_rank)
    if len(profile.per_rank) < 2 or waited_s <= 0 or profile.elapsed_s <= 0:
        return Uneven((), nothing)
    works = [work_of(rank, own_threads(profile, rank)) for rank in profile.per_rank]
    found = _slowest(profile, works)
    if found:
        most_s = max(rank.compute_s for rank in profile.per_rank)
        return Uneven(tuple(found), tuple(most_s - rank.compute_s for rank in profile.per_rank))
    found, explained = _in_turn(profile, works, waited_s)
    return Uneven(tuple(found), tuple(explained * rank.waits.all_s for rank in profile.per_rank))


def uneven_despite_delay(profile: Profile) -> list[Diagnosis]:
    """The rank that is outside MPI for longest, where ranks waited for CPUs: only if that explains less than half of
    the difference. Its share is without the time that it waited for a CPU longer than the mean of all ranks."""
    if (
        len(profile.per_rank) < 2
        or profile.elapsed_s <= 0
        or not any(rank.waits.all_s > 0 for rank in profile.per_rank)
    ):
        return []
    works = [work_of(rank, own_threads(profile, rank)) for rank in profile.per_rank]
    return _slowest(profile, works, is_delayed=True)


def _differences(times: Sequence[float]) -> float:
    most = max(times, default=0.0)
    return sum(most - time for time in times)


def _slowest(profile: Profile, works: Sequence[Mapping[Work, float]], *, is_delayed: bool = False) -> list[Diagnosis]:
    times = [rank.compute_s for rank in profile.per_rank]
    mean_s = sum(times) / len(times)
    place = max(range(len(times)), key=lambda k: times[k])
    excess_s = times[place] - mean_s
    explained = explained_by_computing(profile)
    delays = [work[Work.NO_CPU] for work in works]
    delayed_s = max(0.0, delays[place] - sum(delays) / len(delays))
    if mean_s <= 0 or excess_s < _LEAST_EXCESS * mean_s or explained < _LEAST_EXPLAINED:
        return []
    if delayed_s >= _MOSTLY * excess_s:
        return []  # it may be late because it waited for a CPU longer than the others
    idle = _idle(profile, explained)
    if idle is not None:
        return [idle]
    evidence = (Evidence(Signal.EXCESS_COMPUTING, excess_s / mean_s), Evidence(Signal.WAITING_EXPLAINED, explained))
    over = {part: works[place][part] - sum(work[part] for work in works) / len(works) for part in Work}
    named = {part: time_s for part, time_s in over.items() if part in _NAMED and time_s >= _PART * excess_s}
    excess_s -= delayed_s if is_delayed else 0.0
    return [
        _of_part(profile, profile.per_rank[place], part, excess_s * time_s / sum(named.values()), evidence)
        for part, time_s in named.items()
    ]


def _in_turn(profile: Profile, works: Sequence[Mapping[Work, float]], waited_s: float) -> tuple[list[Diagnosis], float]:
    """Ranks that wait for each other in turn, for different work: one reads and writes, another computes longer. And
    the share of the waiting that this explains."""
    found: list[tuple[RankTotals, Work, float]] = []
    needed_s = 0.0
    for part in _NAMED:
        times = [work[part] for work in works]
        place = max(range(len(times)), key=lambda k: times[k])
        excess_s = times[place] - sum(times) / len(times)
        if excess_s >= _LEAST_EXCESS * profile.elapsed_s:
            found.append((profile.per_rank[place], part, excess_s))
            needed_s += _differences(times)
    least, most = _EXPLAINS_REST
    if len({rank.rank for rank, _, _ in found}) < 2 or not least * waited_s <= needed_s <= most * waited_s:
        return [], 0.0
    explained = min(1.0, needed_s / waited_s)
    mean_s = sum(rank.compute_s for rank in profile.per_rank) / len(profile.per_rank)
    causes = [
        _of_part(
            profile,
            rank,
            part,
            excess_s,
            (Evidence(Signal.EXCESS_COMPUTING, excess_s / mean_s), Evidence(Signal.WAITING_EXPLAINED, explained)),
        )
        for rank, part, excess_s in found
    ]
    return [replace(one, sureness=Sureness.INFERRED) for one in causes], explained


def _idle(profile: Profile, explained: float) -> Diagnosis | None:
    """A few ranks with little to do, such as one that only distributes work: they wait for all others."""
    times = [rank.compute_s for rank in profile.per_rank]
    middle_s = median(times)
    idle = [rank for rank in profile.per_rank if rank.compute_s < _IDLE * middle_s]
    if not idle or len(idle) > _FEW * len(times) or max(times) > (1 + _ALIKE) * middle_s:
        return None
    least = min(idle, key=lambda rank: rank.compute_s)
    share = sum(middle_s - rank.compute_s for rank in idle) / profile.wall_s
    evidence = (
        Evidence(Signal.COMPUTING_OF_MEDIAN, least.compute_s / middle_s),
        Evidence(Signal.RANKS, len(idle)),
        Evidence(Signal.WAITING_EXPLAINED, explained),
    )
    return Diagnosis(Cause.IDLE_RANK, min(1.0, share), Sureness.MEASURED, evidence, rank=least.rank, host=least.host)


def _of_part(
    profile: Profile, rank: RankTotals, part: Work, excess_s: float, evidence: tuple[Evidence, ...]
) -> Diagnosis:
    cause, more = _what_it_does(profile, rank, part, excess_s)
    sureness = Sureness.MEASURED if cause in (Cause.IMBALANCE, Cause.SERIAL_IO) else Sureness.INFERRED
    share = min(1.0, excess_s / profile.elapsed_s)
    site = loop_site(rank) if cause is Cause.WAITING_LOOP else None
    return Diagnosis(cause, share, sureness, (*evidence, *more), rank=rank.rank, host=rank.host, site=site)


def _what_it_does(
    profile: Profile, rank: RankTotals, part: Work, excess_s: float
) -> tuple[Cause, tuple[Evidence, ...]]:
    if part is Work.IO:
        return Cause.SERIAL_IO, file_evidence(profile, [rank])
    if part is Work.LOOP:
        return Cause.WAITING_LOOP, loop_evidence(rank)
    if part in (Work.SLEEP, Work.OTHERS):
        return Cause.BLOCKED_RANK, blocked_evidence(profile, rank)
    blocked = rank.cpu.blocked_share if rank.cpu is not None else None
    if _moves_most(profile, rank, excess_s, is_blocked=part is Work.BLOCKED):
        return Cause.SERIAL_IO, file_evidence(profile, [rank])
    if part is Work.BLOCKED:
        return Cause.BLOCKED_RANK, blocked_evidence(profile, rank)
    against = () if blocked is None else (Evidence(Signal.BLOCKED, blocked, is_against=True),)
    cause, speed = _work_or_cpu(profile, rank)
    return cause, (*against, *speed)


_LEAST_LOOPS = 40
_MOST_OF_IT, _LITTLE_OF_IT = 0.5, 0.25
_EVEN_SPEED = 0.02


def _above_mean(values: Sequence[float | None], place: int) -> float | None:
    """One of these over their mean, less 1; None if one of them is unknown."""
    known = [value for value in values if value]
    own = values[place]
    return None if own is None or len(known) < len(values) else own / (sum(known) / len(known)) - 1


def _work_or_cpu(profile: Profile, rank: RankTotals) -> tuple[Cause, tuple[Evidence, ...]]:
    """Whether the rank that computes longest has more work or a slower CPU: by its instructions, where they were
    counted, else by a loop that is the same on all ranks. IMBALANCE also if nothing separates them."""
    place = profile.per_rank.index(rank)
    excess = _above_mean([one.compute_s for one in profile.per_rank], place) or 0.0
    more = _above_mean([_instructions_outside(one) for one in profile.per_rank], place)
    if more is not None and not _LITTLE_OF_IT * excess < more < _MOST_OF_IT * excess:
        cause = Cause.SLOW_CPU if more <= _LITTLE_OF_IT * excess else Cause.IMBALANCE
        return cause, (Evidence(Signal.MORE_INSTRUCTIONS, more, is_against=cause is Cause.SLOW_CPU),)
    slower = _above_mean([_loop_s(one) for one in profile.per_rank], place)
    if slower is None:
        return Cause.IMBALANCE, ()
    if slower >= _MOST_OF_IT * excess:
        return Cause.SLOW_CPU, (Evidence(Signal.SLOWER_CPU, slower),)
    is_even = slower <= max(_EVEN_SPEED, _LITTLE_OF_IT * excess)
    return Cause.IMBALANCE, (Evidence(Signal.SLOWER_CPU, slower, is_against=is_even),)


def _loop_s(rank: RankTotals) -> float | None:
    return None if rank.cpu is None or rank.cpu.loops < _LEAST_LOOPS else rank.cpu.loop_s


def _instructions_outside(rank: RankTotals) -> float | None:
    counters = rank.counters
    if counters is None or counters.instructions is None or counters.in_mpi is None:
        return None
    return max(0.0, counters.instructions - (counters.in_mpi.instructions or 0.0))


def cpu_varies(profile: Profile) -> float | None:
    """How far the mean of the loop is above its shortest run, on the rank where it varied most; None if not known of
    all ranks."""
    found = [
        None if _loop_s(one) is None or one.cpu is None or not one.cpu.least_loop_s else one.cpu.loop_s
        for one in profile.per_rank
    ]
    if not found or None in found:
        return None
    return max(
        value / one.cpu.least_loop_s - 1
        for value, one in zip(found, profile.per_rank, strict=True)
        if value is not None and one.cpu is not None
    )


def _moves_most(profile: Profile, rank: RankTotals, excess_s: float, *, is_blocked: bool) -> bool:
    """Whether the rank reads and writes nearly all bytes, while blocked or for most of the excess: by the bytes alone,
    for what the timed calls do not show."""
    share, own_B = bytes_of(profile, {rank.rank})
    if share < _MOST_OF_BYTES or own_B < _LEAST_BYTES:
        return False
    return is_blocked or (rank.system is None and _active_s(profile, rank.rank) >= _MOSTLY * excess_s)


def _active_s(profile: Profile, rank: int) -> float:
    """Seconds of the bins in which a rank moved at least a tenth of what it moved in its busiest one."""
    if profile.io is None:
        return 0.0
    series = next((one.series for one in profile.io.ranks if one.rank == rank), None)
    if series is None:
        return 0.0
    moved = [read + written for read, written in zip(series.read_B, series.written_B, strict=True)]
    return profile.io.width_s * sum(value > 0.1 * max(moved) for value in moved) if any(moved) else 0.0
