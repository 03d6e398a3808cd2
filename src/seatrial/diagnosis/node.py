"""Time lost inside ranks, not between them: threads that wait for each other, pages that are read from a device, and
the limits of memory and arithmetic, where hardware counters were read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.profiler.cause import Cause, Diagnosis, Evidence, Signal, Sureness
from seatrial.profiler.profile_io import SystemCall
from seatrial.profiler.waiting_code import main_returns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seatrial.diagnosis.ranks import Ran
    from seatrial.profiler.profile import Profile, RankCpu, RankTotals

_LEAST_REGION_S = 500e-6
"""The last thread of a shorter parallel region may be late because of its start, not of its work: to wake a thread
takes up to some 100 µs."""
_LEAST_BLOCKED = 0.1
_LEAST_FAULTS = 100
_MOST_FAULT_S = 0.02
"""A page takes at most so long from a disk."""
_MOST_OF_SWITCHES = 0.5
"""A fault that is waited for is one voluntary switch: so many of them must be faults."""
MOST_MINOR_FAULT_S = 5e-6
"""A page fault takes up to so long in the kernel, with clearing a page of 4 KiB, on a busy virtual machine; with huge
pages, it takes longer, and is not named."""
USUAL_MINOR_FAULT_S = 0.5e-6
"""A page fault takes about so long in the kernel at least, with clearing the page."""
_ALONE = 0.8
"""A rank with more of the time in the kernel than this is named."""
_MOSTLY = 0.5
PAGE_B = 4096
"""The smallest page: with larger ones, memory was handed out more often than computed here."""
AGAIN = 2.0
"""Pages were handed out again and again if there were so many faults for each. Touching memory once is not a loss."""
_MEMORY_BOUND, _COMPUTE_BOUND = 0.6, 0.5
"""Parts of the measured limit of memory bandwidth and of arithmetic from which on they are what bounds the program."""


def node_diagnoses(profile: Profile, ran: Ran | None = None) -> list[Diagnosis]:
    """At most one of each kind. `ran`: ranks waited for a CPU, so that only what the kernel counted is known, and that
    threads wait for their team as far as a missing CPU cannot explain it."""
    if ran is not None:
        found = [_threads_despite_delay(profile), _paging(profile), _counted_kernel(profile, ran)]
    else:
        found = [_threads(profile), _paging(profile), _kernel(profile), _bound(profile)]
    return [one for one in found if one is not None]


def _threads(profile: Profile) -> Diagnosis | None:
    """Threads that wait for the last one of their team, at the region where most is lost."""
    long = [
        one for one in profile.parallel if one.threads > 1 and one.count and one.time_s / one.count >= _LEAST_REGION_S
    ]
    if not long or profile.wall_s <= 0:
        return None
    worst = max(long, key=lambda one: one.lost_s)
    evidence = (
        Evidence(Signal.THREADS, worst.threads),
        Evidence(Signal.THREADS_WAIT, worst.end_wait_s / worst.thread_s if worst.thread_s > 0 else 0.0),
        Evidence(Signal.REGIONS, worst.count),
    )
    share = min(1.0, sum(one.lost_s for one in long) / profile.wall_s)
    return Diagnosis(Cause.THREAD_IMBALANCE, share, Sureness.MEASURED, evidence, site=worst.site)


def _threads_despite_delay(profile: Profile) -> Diagnosis | None:
    """The same where threads waited for a CPU, which makes their team wait: only if that explains less than half, and
    without it."""
    found = _threads(profile)
    delayed_s = sum(rank.cpu.delay_s or 0.0 for rank in profile.per_rank if rank.cpu is not None)
    delayed = delayed_s / profile.wall_s if profile.wall_s > 0 else 1.0
    return None if found is None or delayed >= _MOSTLY * found.share else replace(found, share=found.share - delayed)


def _paging(profile: Profile) -> Diagnosis | None:
    """The rank that was blocked longest of those whose blocks are page faults."""
    paging = [(rank, rank.cpu) for rank in profile.per_rank if rank.cpu is not None and _is_paging(rank, rank.cpu)]
    if not paging or profile.wall_s <= 0:
        return None
    worst, cpu = max(paging, key=lambda one: _blocked_s(one[1]))
    evidence = (
        Evidence(Signal.MAJOR_FAULTS, cpu.major_faults or 0),
        Evidence(Signal.BLOCKED, cpu.blocked_share or 0.0),
        Evidence(Signal.RESIDENT, cpu.most_resident_B or 0),
    )
    share = min(1.0, sum(_blocked_s(one) for _, one in paging) / profile.wall_s)
    return Diagnosis(Cause.PAGING, share, Sureness.INFERRED, evidence, rank=worst.rank, host=worst.host)


def _blocked_s(cpu: RankCpu) -> float:
    return (cpu.blocked_share or 0.0) * cpu.wall_s


def _is_paging(rank: RankTotals, cpu: RankCpu) -> bool:
    faults, switches = cpu.major_faults or 0, cpu.voluntary
    if switches is None or faults < _LEAST_FAULTS or (cpu.blocked_share or 0.0) < _LEAST_BLOCKED:
        return False
    return faults >= _MOST_OF_SWITCHES * switches and _blocked_s(cpu) <= faults * _MOST_FAULT_S


def _counted_kernel(profile: Profile, ran: Ran) -> Diagnosis | None:
    """The same where ranks waited for a CPU: their calls then took longer than their CPU time, so that the time in the
    kernel is bounded by the part that they ran; and for page faults by their number."""
    times = {}
    for rank in profile.per_rank:
        cpu = rank.cpu
        if cpu is not None and cpu.system_s is not None:
            faults_s = min(cpu.system_s, (cpu.minor_faults or 0) * USUAL_MINOR_FAULT_S)
            in_calls_s = ran.share * (rank.mpi_s + rank.system_s(*SystemCall))
            times[rank.rank] = max(faults_s, cpu.system_s - in_calls_s)
    found = _kernel(profile, times)
    return None if found is None else ran.counted(found, sum(times.values()))


def _kernel(profile: Profile, counted_s: Mapping[int, float] | None = None) -> Diagnosis | None:
    """CPU time in the kernel that is neither in MPI, where ranks may wait by system calls, nor in timed calls; page
    faults, if there are enough of them for it. `counted_s`: these seconds by rank, where they are known otherwise."""
    known = [rank for rank in profile.per_rank if rank.cpu is not None and rank.cpu.system_s is not None]
    times = {rank.rank: _kernel_s(rank) for rank in known} if counted_s is None else counted_s
    total_s = sum(times.values())
    if total_s <= 0 or profile.wall_s <= 0 or len(known) < len(profile.per_rank):
        return None
    faults = sum(rank.cpu.minor_faults or 0 for rank in known if rank.cpu is not None)
    share = min(1.0, total_s / profile.wall_s)
    evidence = [Evidence(Signal.KERNEL_TIME, share), Evidence(Signal.MINOR_FAULTS, faults)]
    if faults and counted_s is None:
        evidence.append(Evidence(Signal.KERNEL_PER_FAULT, total_s / faults))
    is_faults = faults > 0 and total_s / faults <= MOST_MINOR_FAULT_S
    each = _faults_per_page(known, faults)
    if is_faults and each is not None:
        if each < AGAIN:
            return None
        evidence.append(Evidence(Signal.FAULTS_PER_PAGE, each))
        evidence.append(Evidence(Signal.FAULT_RATE, faults / profile.wall_s))
    worst = max(known, key=lambda rank: times[rank.rank])
    alone = len(known) > 1 and times[worst.rank] >= _ALONE * total_s
    call, seen = ("", ()) if is_faults else _system_call([worst] if alone else known)
    return Diagnosis(
        Cause.PAGE_FAULTS if is_faults else Cause.KERNEL_TIME,
        share,
        Sureness.INFERRED if is_faults else Sureness.MEASURED,
        (*evidence, *seen),
        rank=worst.rank if alone else None,
        host=worst.host if alone else "",
        system_call=call,
    )


def _system_call(ranks: Sequence[RankTotals]) -> tuple[str, tuple[Evidence, ...]]:
    """The system calls that these ranks were mostly seen to come back from; "" if there are none."""
    seen: dict[str, int] = {}
    for rank in ranks:
        for name, samples in () if rank.code is None else rank.code.calls.items():
            seen[name] = seen.get(name, 0) + samples
    found = main_returns(seen)
    if found is None:
        return "", ()
    return found.names, (Evidence(Signal.RETURNS, found.samples), Evidence(Signal.RETURNS_SHARE, found.share))


def _faults_per_page(ranks: Sequence[RankTotals], faults: int) -> float | None:
    """None if the memory of a rank is unknown."""
    resident = [None if rank.cpu is None else rank.cpu.most_resident_B for rank in ranks]
    known = [value for value in resident if value]
    return faults * PAGE_B / sum(known) if len(known) == len(resident) else None


def _kernel_s(rank: RankTotals) -> float:
    """At least: all of the time in MPI and in timed calls may be in the kernel."""
    system_s = 0.0 if rank.cpu is None else rank.cpu.system_s or 0.0
    return max(0.0, system_s - rank.mpi_s - rank.system_s(*SystemCall))


def _bound(profile: Profile) -> Diagnosis | None:
    """Memory or arithmetic, if all ranks together come near what was measured on this machine."""
    counted = [(rank, rank.counters) for rank in profile.per_rank if rank.counters is not None]
    limits = profile.limits
    if limits is None or not counted or len(counted) < len(profile.per_rank):
        return None
    wall_s = max(counters.wall_s for _, counters in counted)
    lines = [counters.memory_B for _, counters in counted]
    flops = [counters.flops for _, counters in counted]
    if wall_s <= 0:
        return None
    share = max(0.0, 1.0 - profile.mpi_share)
    if limits.memory_Bps and None not in lines:
        rate = sum(one for one in lines if one is not None) / wall_s
        if rate >= _MEMORY_BOUND * limits.memory_Bps:
            evidence = (Evidence(Signal.MEMORY_RATE, rate), Evidence(Signal.MEMORY_LIMIT, limits.memory_Bps))
            return Diagnosis(Cause.MEMORY_BOUND, share, Sureness.MEASURED, evidence)
    if limits.flops and None not in flops:
        rate = sum(one for one in flops if one is not None) / wall_s
        if rate >= _COMPUTE_BOUND * limits.flops:
            evidence = (Evidence(Signal.FLOP_RATE, rate), Evidence(Signal.FLOP_LIMIT, limits.flops))
            return Diagnosis(Cause.COMPUTE_BOUND, share, Sureness.MEASURED, evidence)
    return None
