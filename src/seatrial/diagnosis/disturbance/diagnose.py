"""From the signals of an experiment's repeats to causes: a CPU that was missing, then I/O, then memory,
then the program itself.

Causes in the program itself: its threads wait for each other's locks, its pages are handed out again and again, it
sleeps, it waits for a child or another process, or its time goes into the kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from seatrial.diagnosis.cpu import LEAST_DELAY as LEAST_SHARE
from seatrial.diagnosis.cpu import CpuSignals, is_busy, is_used_up
from seatrial.diagnosis.disturbance.cause import Disturbance, RepeatCause
from seatrial.diagnosis.disturbance.habits import Habits, HabitSpan, Other, Processes
from seatrial.diagnosis.disturbance.kernel import (
    has_other_reason,
    kernel_cause,
    kernel_left_s,
    uneven_threads,
    waits_in_loop,
)
from seatrial.diagnosis.disturbance.signals import Signals
from seatrial.diagnosis.node import AGAIN, MOST_MINOR_FAULT_S, PAGE_B
from seatrial.profiler.cause import Sureness

_LEAST_SEEN = 5
"""Looks, and ..."""
_LEAST_SEEN_S = 0.4
"""... seconds that they stand for: fewer may be chance."""
_MOST_LOCK_WAIT_S = 0.1
"""Longer waits for a mutex, on average, are few: a thread waits until it is let go, not for its turn."""
_LEAST_LOCKED = 3
"""Looks at a thread that waits for a mutex: enough beside many switches, because such waits are short."""
_OFTEN = 0.05
"""If threads wait for mutexes in this part of the looks, time in the kernel without another reason is for them."""
_MOST_OF_BLOCKS = 0.5
"""If threads that are blocked wait for mutexes in this part of the looks, their switches are for mutexes, too."""
_LEAST_SWITCHES_HZ = 2000.0
"""Voluntary switches in each second of CPU time: less often, contention costs no CPU time worth mentioning."""
_MOST_SWITCH_S = 50e-6
"""CPU time in the kernel for each voluntary switch, at most: calls that find the mutex free again do not switch."""
_MOST_OF_CPU = 0.8
"""Page faults are said only of a process that has this part of the CPU time: to start others costs faults, too."""


def own_causes(signals: Signals) -> Iterator[Disturbance]:
    """At most one of each."""
    known = signals.habits
    if known is None or known.looked_s <= 0:
        return
    locks, faults = _locks(signals, known), _page_faults(signals, known)
    kernel = kernel_cause(signals, known, has_locks=locks is not None)
    others = (_other(known, RepeatCause.OTHERS_DATA), _other(known, RepeatCause.FILE_LOCK))
    threads = (uneven_threads(signals, known), waits_in_loop(signals, known))
    for found in (locks, faults, kernel, *threads, _sleep(known), _child(known), *others):
        if found is not None:
            yield found


def _is_seen(span: HabitSpan) -> bool:
    return span.looks >= _LEAST_SEEN and span.seconds >= _LEAST_SEEN_S


def _locks(signals: Signals, known: Habits) -> Disturbance | None:
    """Waiting for mutexes, as seen, and the CPU time in the kernel that blocking and waking took: of the time in which
    threads ran, were ready to run, or waited for mutexes."""
    locks, ran_s = known.locks, signals.counted_cpu_s
    if locks.wait.looks < _LEAST_LOCKED or not ran_s or signals.delay_s is None:
        return None
    if locks.turns * _MOST_LOCK_WAIT_S < locks.wait.seconds:
        return None
    wait_s = min(locks.wait.seconds, locks.blocked_s)  # what a look sees is not chosen evenly if CPUs are missing
    is_for_locks = locks.wait.looks >= _MOST_OF_BLOCKS * locks.blocked_looks
    kernel_s = min(ran_s, _switching_s(ran_s, known)) if is_for_locks else 0.0
    if is_for_locks and locks.wait.looks >= _OFTEN * known.looks and not has_other_reason(signals, known):
        kernel_s = max(kernel_s, min(ran_s, kernel_left_s(known)))  # most calls for a mutex find it free again
    if not _is_seen(locks.wait) and not kernel_s:
        return None
    whole_s = ran_s + signals.delay_s + wait_s
    share = (wait_s + kernel_s) / whole_s
    if share < LEAST_SHARE:
        return None
    seen = {"blocked": wait_s / whole_s, "kernel": kernel_s / whole_s, "rate": known.voluntary / signals.wall_s}
    return Disturbance(RepeatCause.LOCKS, share, Sureness.INFERRED if kernel_s else Sureness.MEASURED, seen)


def _switching_s(ran_s: float, known: Habits) -> float:
    """CPU time in the kernel that voluntary switches may explain, and page faults do not; 0 if there are few."""
    if known.voluntary < _LEAST_SWITCHES_HZ * ran_s:
        return 0.0
    faults_s = MOST_MINOR_FAULT_S * known.minor_faults
    return max(0.0, min(known.system_s - faults_s, known.voluntary * _MOST_SWITCH_S))


def _page_faults(signals: Signals, known: Habits) -> Disturbance | None:
    """CPU time in the kernel of the process that has most of it, if there are so many page faults that these explain
    it, and so many more than pages that each was handed out repeatedly."""
    main = max(known.processes, key=lambda one: one.cpu_s, default=None)
    if main is None or not main.minor_faults or not signals.cpu_s or main.cpu_s < _MOST_OF_CPU * signals.cpu_s:
        return None
    whole_s = max(signals.wall_s, signals.cpu_s)
    share = min(1.0, main.system_s / whole_s)
    per_fault_s = main.system_s / main.minor_faults
    per_page = main.minor_faults / max(1.0, known.runs) * PAGE_B / known.most_resident_B if known.most_resident_B else 0
    if share < LEAST_SHARE or per_fault_s > MOST_MINOR_FAULT_S or per_page < AGAIN:
        return None
    seen = {"rate": main.minor_faults / main.seen_s if main.seen_s else 0.0, "per_fault_s": per_fault_s}
    return Disturbance(RepeatCause.PAGE_FAULTS, share, Sureness.INFERRED, {**seen, "per_page": per_page})


def _sleep(known: Habits) -> Disturbance | None:
    share = min(1.0, known.sleep.seconds / known.looked_s)
    if share < LEAST_SHARE or not _is_seen(known.sleep):
        return None
    return Disturbance(RepeatCause.SLEEP, share, Sureness.MEASURED, {})


def _child(known: Habits) -> Disturbance | None:
    """The process that waited longest for a child, of those with their own work: a launcher only waits."""
    found = None
    for one in known.processes:
        if not one.waits_for or one.seen_s <= 0 or one.cpu_s < LEAST_SHARE * one.seen_s:
            continue
        child, span = max(one.waits_for.items(), key=lambda entry: entry[1].seconds)
        waited_s = sum(each.seconds for each in one.waits_for.values())
        share = min(1.0, waited_s / known.looked_s)
        if share < LEAST_SHARE or not _is_seen(span) or (found is not None and share <= (found.share or 0.0)):
            continue
        own = min(1.0, one.cpu_s / one.seen_s)
        seen = {"process": one.name, "child": child, "others": len(one.waits_for) - 1, "own": own}
        found = Disturbance(RepeatCause.CHILD, share, Sureness.MEASURED, seen)
    return found


_LEAST_OWN = 0.01
"""A process that waits for another one works itself for so much of its time at least: else it only passes data on."""


def works_beside(one: Processes, other: Other) -> bool:
    """Whether a process that waits for another one has its own work: one that started the other may only read its
    result."""
    return one.cpu_s >= (LEAST_SHARE if other.is_child else _LEAST_OWN) * one.seen_s > 0


def of_file_lock(other: Other) -> bool:
    """Whether it waits for a lock, not for data."""
    return other.where == "file lock"


def _other(known: Habits, cause: RepeatCause) -> Disturbance | None:
    """The process that waited longest for the data of another one, or for a lock that another one holds."""
    is_lock = cause is RepeatCause.FILE_LOCK
    waits = [
        (sums.span, sums.ran, one, other)
        for one in known.processes
        for other, sums in one.waits_on.items()
        if of_file_lock(other) is is_lock and (is_lock or works_beside(one, other))
    ]
    if not waits:
        return None
    span, ran, one, other = max(waits, key=lambda found: found[0].seconds)
    # Several processes of a name wait at the same time.
    share = min(1.0, span.seconds / max(known.looked_s, one.seen_s))
    if share < LEAST_SHARE or not _is_seen(span):
        return None
    seen = {"process": one.name, "other": other.name, "in": other.where, "path": other.path}
    return Disturbance(cause, share, Sureness.MEASURED, {**seen, "ran": ran / span.looks})


_ALL_BUSY = 0.9
_LIMIT_REACHED = 0.7
"""What was moved, over what a limit allows in the time of waiting for I/O."""
_LEAST_MAJOR_FAULTS_HZ = 20.0
SLOW_TYPES = frozenset(
    (
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p"),
        *("panfs", "pvfs2", "orangefs", "virtiofs"),
    )
)
"""File systems whose calls go over a network or to a hypervisor; those of FUSE go through another process."""


def disturbances(signals: Signals) -> list[Disturbance]:
    """Causes of at least `LEAST_SHARE` of the time, the largest first, those without a share last."""
    found = [*cpu_causes(signals), *_io(signals), *_memory(signals), *own_causes(signals)]
    found.sort(key=lambda one: (one.share is None, -(one.share or 0.0)))
    return found


def is_slow(kind: str) -> bool:
    """Whether calls to a file system of this type leave the machine or this kernel."""
    return kind in SLOW_TYPES or kind == "fuse" or kind.startswith("fuse.")


def has_idle_cpus(signals: Signals) -> bool:
    """Whether half a CPU or more of those that the program might use was idle on average: others then took none that
    it needed, as far as is known."""
    idle = _own_cpus(signals)[2]
    return idle is not None and not is_busy(idle)


# A CPU


def cpu_causes(signals: Signals) -> Iterator[Disturbance]:
    """Why its programs were ready to run without a CPU."""
    quota = _quota(signals)
    if quota is not None:
        yield quota
    steal = _steal(signals)
    if steal is not None:
        yield steal
    share = signals.delay_share
    if share is None or signals.delay_s is None or signals.counted_cpu_s is None or signals.threads_s is None:
        if quota is None and steal is None:
            yield from _by_idle_cpus(signals)
        return
    worst: dict[RepeatCause, Disturbance] = {}
    for group in _groups(signals):
        for one in _without_cpu(group):
            if one.cause not in worst or (one.share or 0.0) > (worst[one.cause].share or 0.0):
                worst[one.cause] = one
    for one in worst.values():
        if one.cause is not RepeatCause.NO_CPU or quota is None:  # it is a remainder of the quota's, which has a reason
            yield one if one.cause is not RepeatCause.NO_CPU else _while_waiting(signals, one)


def _while_waiting(signals: Signals, unknown: Disturbance) -> Disturbance:
    """The same with the cause that the repeats that waited show by themselves."""
    if signals.waiting is None:
        return unknown
    found = [one for group in _groups(signals.waiting) for one in _without_cpu(group)]
    main = max(found, key=lambda one: one.share or 0.0, default=unknown)
    if main.cause is RepeatCause.NO_CPU:
        return unknown
    during = f" during {signals.waiting.repeats} of {signals.repeats} repeats"
    return replace(main, share=unknown.share, seen={**main.seen, "during": during})


def _groups(signals: Signals) -> list[Signals]:
    """The signals of the threads on each set of CPUs, if threads are bound to different ones: a thread waits for its
    own CPU while others are idle, and the program for that thread."""
    if not signals.bound or signals.cpu_s is None or not signals.delay_s:
        return [signals]
    part = signals.cpu_s / (sum(one.cpu_s for one in signals.bound) or 1.0)  # what ended between two looks is missing
    throttled = signals.quota.throttled_s / signals.delay_s if signals.quota is not None else 0.0
    return [
        replace(
            signals,
            allowed=one.cpus,
            threads=one.threads,
            cpu_s=one.cpu_s * max(1.0, part),
            counted_cpu_s=one.cpu_s,
            delay_s=one.delay_s,
            quota=replace(signals.quota, throttled_s=throttled * one.delay_s) if signals.quota is not None else None,
            is_part=True,
        )
        for one in signals.bound
    ]


def _without_cpu(signals: Signals) -> Iterator[Disturbance]:
    delay_s, cpu_s, threads_s = signals.delay_s or 0.0, signals.counted_cpu_s or 0.0, signals.threads_s or 0.0
    throttled_s = signals.quota.throttled_s if signals.quota is not None else 0.0
    left_s = max(0.0, delay_s - throttled_s)
    whole_s = max(threads_s, cpu_s + delay_s)
    if left_s >= LEAST_SHARE * whole_s:
        yield from _competition(signals, left_s, whole_s)


def _quota(signals: Signals) -> Disturbance | None:
    quota = signals.quota
    if quota is None or quota.periods <= 0 or not is_used_up(quota.throttled_periods / quota.periods):
        return None
    share = min(1.0, quota.throttled_s / max(signals.wall_s, (signals.cpu_s or 0.0) + quota.throttled_s))
    if share < LEAST_SHARE:
        return None
    seen = {"quota": quota.cpus, "file": quota.file, "throttled": quota.throttled_periods / quota.periods}
    return Disturbance(RepeatCause.CPU_QUOTA, share, Sureness.MEASURED, seen)


def _steal(signals: Signals) -> Disturbance | None:
    if signals.steal_s is None or not signals.window_s:
        return None
    share = min(1.0, signals.steal_s / signals.window_s)
    if share < LEAST_SHARE:
        return None
    return Disturbance(RepeatCause.STEAL, share, Sureness.MEASURED, {"steal": share})


def _window_s(signals: Signals) -> float:
    """The time of one CPU in which all were watched: a little more than the time of the programs."""
    return signals.window_s / len(signals.busy_s) if signals.window_s and signals.busy_s else signals.wall_s


def _own_cpus(signals: Signals) -> tuple[int, float | None, float | None]:
    """The number of CPUs that the program might use, the CPU time that other processes had there, and the CPUs of these
    that were idle on average."""
    watched = frozenset(signals.busy_s or ())
    cpus = signals.allowed & watched if signals.allowed else watched  # an unbound program may use all
    if not cpus or signals.busy_s is None or not signals.window_s or signals.cpu_s is None:
        return len(signals.allowed), None, None
    each_s = _window_s(signals)
    busy_s = sum(signals.busy_s[cpu] for cpu in cpus)
    stolen_s = (signals.steal_s or 0.0) * len(cpus) / len(signals.busy_s)
    others_s = max(0.0, busy_s - signals.cpu_s)
    if cpus == signals.busy_s.keys() and signals.others_s is not None and not signals.is_part:
        others_s = signals.others_s
    return len(cpus), others_s, max(0.0, len(cpus) - (busy_s + stolen_s) / each_s)


def _competition(signals: Signals, left_s: float, whole_s: float) -> Iterator[Disturbance]:
    """Why threads waited `left_s` for a CPU, apart from a quota: the program's own threads are more than its CPUs, or
    other processes ran there."""
    cpus, others_s, idle = _own_cpus(signals)
    throttled_s = signals.quota.throttled_s if signals.quota is not None else 0.0
    threads_s, window_s = signals.threads_s or signals.wall_s, _window_s(signals)
    known = CpuSignals(
        ran=(signals.counted_cpu_s or 0.0) / threads_s,
        waited=left_s / threads_s,
        cpus=cpus,
        others=None if others_s is None else others_s / window_s,
        # CPUs are idle while the quota holds the program back.
        idle=None if idle is None else idle - throttled_s / signals.wall_s,
    )
    seen: dict[str, Any] = {"delay": left_s / whole_s, "cpus": cpus, "threads": signals.threads, "wanted": known.wanted}
    if signals.is_part:
        seen["bound"] = sorted(signals.allowed)
    if known.others is not None:
        seen |= {"others": known.others, "idle": idle}
    own_s = known.crowd * threads_s
    if own_s >= LEAST_SHARE * whole_s:
        yield Disturbance(RepeatCause.MORE_THREADS_THAN_CPUS, own_s / whole_s, Sureness.MEASURED, seen)
    rest_s = left_s - own_s
    if rest_s >= LEAST_SHARE * whole_s:
        cause = RepeatCause(known.taken_by(rest_s / window_s).value)
        yield Disturbance(cause, rest_s / whole_s, Sureness.MEASURED, seen)


def _by_idle_cpus(signals: Signals) -> Iterator[Disturbance]:
    """Where nothing is known of how long threads waited: all CPUs were busy, with other processes, too."""
    cpus, others_s, idle = _own_cpus(signals)
    if others_s is None or idle is None or signals.cpu_s is None or cpus == 0:
        return
    others = others_s / _window_s(signals)
    if idle > (1 - _ALL_BUSY) * cpus or others < LEAST_SHARE * cpus or signals.cpu_s < LEAST_SHARE * signals.wall_s:
        return
    seen = {"delay": None, "cpus": cpus, "others": others, "idle": idle}
    yield Disturbance(RepeatCause.OTHER_PROCESSES, None, Sureness.INFERRED, seen)


# Files


def _io(signals: Signals) -> Iterator[Disturbance]:
    limit = _limit(signals)
    if limit is not None:
        yield limit
    else:
        yield from _waiting_for_files(signals)


def _limit(signals: Signals) -> Disturbance | None:
    """A limit that was reached: what was moved needs most of the time of waiting for I/O under it.

    The times of reading and writing are added: one thread does either.
    """
    needed = {limit: limit.moved / limit.limit for limit in signals.io_limits}
    if not needed:
        return None
    main = max(needed, key=lambda one: needed[one])
    needed_s = sum(seconds for limit, seconds in needed.items() if limit.unit == main.unit)
    waited_s = _waiting_for_io_s(signals)  # less than what is needed if the kernel writes while the program computes
    explained_s = min(needed_s, waited_s)
    if explained_s < LEAST_SHARE * signals.wall_s or needed_s < _LIMIT_REACHED * waited_s:
        return None
    seen = {
        "file": main.file,
        "device": main.device,
        "direction": main.direction,
        "unit": main.unit,
        "limit": main.limit,
        "rate": main.moved / signals.wall_s,
    }
    return Disturbance(RepeatCause.IO_LIMIT, explained_s / signals.wall_s, Sureness.MEASURED, seen)


def _waiting_for_io_s(signals: Signals) -> float:
    """How long the program waited for I/O: as seen in its calls, or as the kernel counts it for the machine, whichever
    is more; the whole time if neither is known.

    The kernel's figure is a mean over the CPUs by the time that each was not idle: w of waiting on one CPU beside b of
    computing on others count as w * w / (w + b) (Documentation/accounting/psi.rst, kernel/sched/psi.c). Where calls
    were not looked at, that is solved for w, which is too much if the program waits and computes in turn.
    """
    counted_s = (signals.pressure_s or {}).get("io_some_s")
    if signals.waits_covered_s:
        return min(signals.wall_s, max(sum(wait.seconds for wait in signals.waits), counted_s or 0.0))
    if counted_s is None or signals.busy_s is None:
        return signals.wall_s
    busy_s = sum(signals.busy_s.values())
    return min(signals.wall_s, (counted_s + math.sqrt(counted_s**2 + 4 * counted_s * busy_s)) / 2)


def _waiting_for_files(signals: Signals) -> Iterator[Disturbance]:
    """Waiting in calls, as seen by looking: for a slow file system, or for fsync on any."""
    covered_s = signals.waits_covered_s or 0.0
    if covered_s > 0:
        slow: dict[tuple[str, str, tuple[str, ...]], float] = {}
        for wait in signals.waits:
            if is_slow(wait.type) or (wait.options and wait.kind in ("write", "sync")):
                key = (wait.type, wait.mount_point, wait.options)
                slow[key] = slow.get(key, 0.0) + wait.seconds
        for (kind, mount_point, options), seconds in slow.items():
            if seconds >= LEAST_SHARE * covered_s:
                seen = {"type": kind, "mount_point": mount_point, "options": options}
                yield Disturbance(RepeatCause.FILE_SYSTEM, min(1.0, seconds / covered_s), Sureness.MEASURED, seen)
        fast = [
            one for one in signals.waits if one.kind == "sync" and (one.type, one.mount_point, one.options) not in slow
        ]
        synced_s = sum(one.seconds for one in fast)
        if synced_s >= LEAST_SHARE * covered_s:
            most = max(fast, key=lambda one: one.seconds)
            seen = {"type": most.type, "mount_point": most.mount_point, "options": most.options}
            yield Disturbance(RepeatCause.SYNCHRONISED_IO, min(1.0, synced_s / covered_s), Sureness.MEASURED, seen)


# Memory


def _memory(signals: Signals) -> Iterator[Disturbance]:
    """Pages were read back from swap or files while the program needed them: the machine counts waiting for memory, and
    the program major faults."""
    stalled_s = (signals.pressure_s or {}).get("memory_some_s", 0.0)
    faults = signals.major_faults or 0.0
    share = min(1.0, stalled_s / signals.wall_s)
    if share >= LEAST_SHARE and faults >= _LEAST_MAJOR_FAULTS_HZ * signals.wall_s:
        seen = {"faults": faults / signals.repeats}
        yield Disturbance(RepeatCause.MEMORY, share, Sureness.MEASURED, seen)
