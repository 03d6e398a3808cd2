"""The causes of lost time in a profile, the largest share first: a CPU that was missing, ranks that others wait for,
messages, the kernel. What is waited for without a known reason is said to be not known.

A missing CPU makes ranks wait in MPI, so it comes before such waiting; it hides nothing that was counted: calls, page
faults and CPU time in the kernel keep their place by their share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.diagnosis.calls import call_diagnoses, slow_transfer, with_small_calls
from seatrial.diagnosis.cpu import LEAST_DELAY, cpu_diagnoses
from seatrial.diagnosis.late import (
    could_be_late,
    late,
    late_in_call,
    longest_site,
    slow_collective,
    slow_receives,
    waits_itself,
)
from seatrial.diagnosis.node import node_diagnoses
from seatrial.diagnosis.operations import operation_diagnosis, waits_for_operations
from seatrial.diagnosis.ranks import (
    Uneven,
    blocked_diagnoses,
    explained_by_computing,
    io_diagnoses,
    loop_diagnoses,
    ran_of,
    uneven,
    uneven_despite_delay,
)
from seatrial.profiler.cause import (
    BLOCKING,
    NO_CPU_CAUSES,
    WAITING_CAUSES,
    Cause,
    Diagnosis,
    Evidence,
    Resolve,
    Signal,
    Sureness,
    no_symbols,
)
from seatrial.profiler.merge.bound import wait_kind

if TYPE_CHECKING:
    from seatrial.profiler.cause import CallSite
    from seatrial.profiler.cpu import NodeLimits
    from seatrial.profiler.profile import Profile
    from seatrial.profiler.tables.io_samples import IoSamples
    from seatrial.profiler.tables.process_table import ProcessTable

LEAST_SHARE = 0.05
"""Causes of less of the time are not named."""
_LEAST_WAITING = 0.08
"""Nor is less waiting for other ranks: as much comes and goes by itself."""
_LEAST_STARTUP = 0.2
_MOST = 0.5
_CLEARLY = 2 / 3
_ABOUT = 0.4
"""Ranks that are blocked for this part of the time for which others wait, or longer, are blocked about as long."""
_BLOCKED = (Cause.BLOCKED, Cause.BLOCKED_RANK)
_MOST_WAIT_FOR_DELAY = 4
"""While one rank waits for a CPU, all others may wait for it, each for as long: with many ranks, delays overlap."""
_DELAYS_COST = 1.5
"""A delay costs a little more than itself: caches are cold, and samples of waiting catch more of it or less."""
_NOT_AT_CALLS = frozenset(
    {
        *(Cause.STARTUP, Cause.IO, Cause.METADATA, Cause.BLOCKED),
        *(Cause.THREAD_IMBALANCE, Cause.PAGING, Cause.MEMORY_BOUND, Cause.COMPUTE_BOUND),
        *(Cause.PAGE_FAULTS, Cause.KERNEL_TIME, Cause.OPERATION, Cause.WAITING_LOOP),
    }
)
"""The call site is not part of these."""
_BEFORE_ALL = NO_CPU_CAUSES - {Cause.NO_CPU}
"""Missing CPUs with a known reason come first, if they were missing for a tenth of the time: that ranks wait for each
other depends on them, ..."""
_COUNTED = frozenset(
    {
        *(Cause.PAGE_FAULTS, Cause.KERNEL_TIME, Cause.MESSAGE_RATE, Cause.LOCAL_CALLS, Cause.MPI_IO),
        *(Cause.COMMUNICATORS, Cause.POLLING, Cause.IO, Cause.METADATA, Cause.SERIAL_IO),
        *(Cause.THREAD_IMBALANCE, Cause.OPERATION, Cause.WAITING_LOOP),
        *(Cause.IMBALANCE, Cause.SLOW_CPU, Cause.LATE_SENDER, Cause.LATE_RECEIVER, Cause.SLOW_RECEIVES),
    }
)
"""... but not these, nor ranks that are blocked in timed calls, which come before them with a larger share: they were
counted, or their share is without what a missing CPU can explain."""


def diagnosed_profiles(
    tables: Sequence[ProcessTable],
    names: Sequence[str],
    resolve: Resolve = no_symbols,
    damaged: int = 0,
    samples: Sequence[IoSamples] = (),
    limits: NodeLimits | None = None,
) -> list[Profile]:
    """The profiles of these tables, as `merge.profiles` makes them, with their diagnoses."""
    from seatrial.profiler.merge.merge import profiles  # it loads numpy

    merged = profiles(tables, names, resolve, damaged, samples, limits)
    return [replace(profile, diagnoses=diagnose(profile)) for profile in merged]


def diagnose(profile: Profile) -> tuple[Diagnosis, ...]:
    """What takes the program's time apart from its own computing, largest share first; COMPUTATION alone if nothing
    does."""
    if not profile.calls or profile.wall_s <= 0:
        return ()
    no_cpu = cpu_diagnoses(profile)
    is_delayed = (_most_delay(profile) >= LEAST_DELAY) or any(one.share >= LEAST_DELAY for one in no_cpu)
    ran = ran_of(profile) if is_delayed else None
    inside = node_diagnoses(profile, ran)
    if not profile.trust.has_sizes:
        rest = _without_sizes(profile) if profile.mpi_share >= _LEAST_WAITING else _computation(profile)
        return _ordered(profile, [*no_cpu, *inside, rest])
    found = [*no_cpu, *(_waiting_despite_delay(profile) if is_delayed else _waiting(profile))]
    serial = frozenset(one.rank for one in found if one.cause is Cause.SERIAL_IO and one.rank is not None)
    blocked = frozenset(one.rank for one in found if one.cause is Cause.BLOCKED_RANK and one.rank is not None)
    looping = frozenset(one.rank for one in found if one.cause is Cause.WAITING_LOOP and one.rank is not None)
    found += [*io_diagnoses(profile, serial), *blocked_diagnoses(profile, blocked | serial)]
    found += loop_diagnoses(profile, looping)
    found = _joined(found, call_diagnoses(profile, ran))
    operation = operation_diagnosis(profile, ran)
    found += [] if operation is None else [operation]
    return _ordered(profile, _with_paging([*found, *inside]))


def _joined(waiting: Sequence[Diagnosis], calls: Sequence[Diagnosis]) -> list[Diagnosis]:
    """With collective calls that are slow themselves as one, which may count as waiting for a part."""
    slow = next((one for one in waiting if one.cause is Cause.SLOW_COLLECTIVE), None)
    more = next((one for one in calls if one.cause is Cause.SLOW_COLLECTIVE), None)
    if slow is None or more is None:
        return [*waiting, *calls]
    both = replace(max(slow, more, key=lambda one: one.share), share=min(1.0, slow.share + more.share))
    return [both, *(one for one in (*waiting, *calls) if one is not slow and one is not more)]


def _ordered(profile: Profile, found: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Those with a relevant share, the largest first; COMPUTATION if there is none."""
    named = [replace(one, site=one.site or _site(profile, one)) for one in found if _is_relevant(one)]
    named = [one for one in named if len(named) > 1 or not is_note(one) or one.share >= _LEAST_STARTUP]
    missing = max((one.share for one in named if _is_before_all(one)), default=1.0)

    def rank_of(one: Diagnosis) -> tuple[bool, bool, float]:
        is_early = _is_before_all(one) or (_is_counted(one) and one.share > missing)
        return not is_early, is_note(one), -min(weight(one, named), _most(one, profile, named))

    return tuple(with_small_calls(profile, sorted(named, key=rank_of) or [_computation(profile)]))


def weight(one: Diagnosis, named: Sequence[Diagnosis]) -> float:
    """Its share; less than that of ranks that are blocked outside MPI if it only says that somebody comes late at a
    collective call, and they are blocked for about as long: that is why they come late."""
    is_unexplained = one.cause is Cause.LATE_AT_COLLECTIVE and one.rank is None
    blocked = max((other.share for other in named if other.cause in _BLOCKED), default=0.0)
    return min(one.share, 0.99 * blocked) if is_unexplained and blocked >= _ABOUT * one.share else one.share


def _most(one: Diagnosis, profile: Profile, named: Sequence[Diagnosis]) -> float:
    """Less than the share of partners that are late, if the rank that computes longest waits for them: ranks work
    in turn, and evener work would leave that."""
    late = max((other.share for other in named if other.cause in (Cause.LATE_SENDER, Cause.LATE_RECEIVER)), default=0.0)
    if one.cause is not Cause.IMBALANCE or late == 0 or not waits_itself(profile, one.rank):
        return one.share
    return 0.99 * late


def is_note(one: Diagnosis) -> bool:
    """Whether it is only to be noted beside other causes: startup, of which every short run has much."""
    return one.cause is Cause.STARTUP


def _is_before_all(one: Diagnosis) -> bool:
    return one.cause in _BEFORE_ALL and one.share >= LEAST_DELAY


def _is_counted(one: Diagnosis) -> bool:
    return one.cause in _COUNTED or (one.cause in _BLOCKED and any(one.value(signal) for signal in BLOCKING))


def _is_relevant(one: Diagnosis) -> bool:
    of_cpu = one.value(Signal.CPU_SHARE) or 0.0
    least = _LEAST_WAITING if one.cause in WAITING_CAUSES else LEAST_SHARE
    return max(one.share, of_cpu) >= least


def _most_delay(profile: Profile) -> float:
    return max((rank.cpu.delay_share or 0.0 for rank in profile.per_rank if rank.cpu is not None), default=0.0)


def _waiting(profile: Profile) -> list[Diagnosis]:
    """Why ranks wait for others in MPI, from 5 % of the time on; what nothing explains is unknown."""
    waited_s = sum(rank.waits.all_s for rank in profile.per_rank)
    if waited_s < LEAST_SHARE * profile.wall_s:
        return []
    differing = Uneven((), (0.0,) * len(profile.per_rank)) if _is_for_windows(profile) else uneven(profile)
    found = list(differing.causes)
    waits, for_operations_s = [rank.waits for rank in profile.per_rank], waits_for_operations(profile)
    explained_s = [sum(two) for two in zip(differing.explained_s, for_operations_s, strict=True)]
    left_s = sum(max(0.0, one.clear_s - own_s) for one, own_s in zip(waits, explained_s, strict=True))
    of_delays = _DELAYS_COST * min(_MOST_WAIT_FOR_DELAY, len(waits) - 1) * _most_delay(profile)
    if left_s < max(LEAST_SHARE, of_delays) * profile.wall_s:
        return found
    slowest = frozenset(one.rank for one in found if one.rank is not None)
    long_itself = slow_collective(profile, left_s)
    if long_itself is not None:
        return [*found, long_itself]
    in_call = None if found else late_in_call(profile)
    if in_call is not None and (in_call.value(Signal.WAITING_SHARE) or 0.0) >= LEAST_SHARE:
        return [in_call]
    receives = slow_receives(profile, left_s)
    if receives is not None or in_call is not None:
        return [*found, *(one for one in (receives or in_call,) if one is not None)]
    partners = late(profile, explained_s, slowest)
    if partners or left_s < _MOST * sum(one.clear_s for one in waits):
        return [*found, *partners]
    transfer = slow_transfer(profile, left_s) if could_be_late(profile) < _MOST else None
    return [*found, transfer or _not_known(profile, left_s / profile.wall_s)]


def _waiting_despite_delay(profile: Profile) -> list[Diagnosis]:
    """The rank that is outside MPI for longest; else receives that take long, or messages that are late, without the
    waiting that missing CPUs can explain, if that is less than half: while one rank waits for a CPU, all others may
    wait for it."""
    found = uneven_despite_delay(profile)
    delays = [rank.cpu.delay_s or 0.0 for rank in profile.per_rank if rank.cpu is not None]
    delayed_s = (len(profile.per_rank) - 1) * sum(delays)
    clear_s = sum(rank.waits.clear_s for rank in profile.per_rank)
    if found or not delays or clear_s <= 0 or delayed_s >= _MOST * clear_s:
        return found
    receives = slow_receives(profile, clear_s - delayed_s)
    if receives is not None:
        return [receives]
    partners = late(profile, (0.0,) * len(profile.per_rank), frozenset())
    return [
        replace(one, share=one.share * (1 - delayed_s / clear_s))
        for one in partners
        if one.cause in (Cause.LATE_SENDER, Cause.LATE_RECEIVER)
    ]


def _is_for_windows(profile: Profile) -> bool:
    """Whether ranks wait for access to windows: no other rank has to come for that, so that one with more to do is not
    a reason."""
    waits = [rank.waits for rank in profile.per_rank]
    return sum(one.window_s for one in waits) >= _CLEARLY * sum(one.all_s for one in waits)


def _with_paging(found: list[Diagnosis]) -> list[Diagnosis]:
    """Without a blocked rank whose blocks are page faults."""
    paging = {one.rank for one in found if one.cause is Cause.PAGING}
    return [one for one in found if one.cause is not Cause.BLOCKED_RANK or one.rank not in paging]


def _site(profile: Profile, one: Diagnosis) -> CallSite | None:
    """The call site with most of the time of the diagnosis's calls, by whatever path; of all calls that wait, if it
    names none."""
    if one.cause in NO_CPU_CAUSES or one.cause in _NOT_AT_CALLS:
        return None
    return longest_site(profile, lambda call: call == one.call if one.call else wait_kind(call) is not None)


def _not_known(profile: Profile, waiting: float) -> Diagnosis:
    call = max(profile.calls, key=lambda one: one.waiting_s)
    delays = [rank.cpu.delay_share for rank in profile.per_rank if rank.cpu is not None]
    known = [delay for delay in delays if delay is not None]
    evidence = [Evidence(Signal.WAITING_EXPLAINED, explained_by_computing(profile), is_against=True)]
    evidence.append(Evidence(Signal.OUTSIDE_MPI, could_be_late(profile), is_against=True))
    evidence += [Evidence(Signal.RUN_DELAY, max(known), is_against=True)] if known else []
    return Diagnosis(Cause.NOT_KNOWN, min(1.0, waiting), Sureness.INFERRED, tuple(evidence), call=call.call)


def _without_sizes(profile: Profile) -> Diagnosis:
    evidence = Evidence(Signal.CALL_SHARE, profile.calls[0].time_s / profile.wall_s)
    return Diagnosis(
        Cause.NOT_KNOWN, min(1.0, profile.mpi_share), Sureness.INFERRED, (evidence,), call=profile.calls[0].call
    )


def _computation(profile: Profile) -> Diagnosis:
    return Diagnosis(Cause.COMPUTATION, max(0.0, 1.0 - profile.mpi_share), Sureness.MEASURED)
