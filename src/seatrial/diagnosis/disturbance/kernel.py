"""CPU time of a program that goes into the kernel, or into threads and processes that end at once: what was counted
besides says why. And threads that wait for one of theirs.

Nothing is counted of single system calls: a cause is inferred from the reads and writes of the program, the threads and
processes that the machine started, and what was seen when its threads were looked at. What these do not explain is time
in the kernel whose reason is unknown.
"""

from __future__ import annotations

from typing import Any

from seatrial.diagnosis.cpu import LEAST_DELAY
from seatrial.diagnosis.disturbance.cause import Disturbance, RepeatCause
from seatrial.diagnosis.disturbance.habits import Habits
from seatrial.diagnosis.disturbance.signals import Signals
from seatrial.diagnosis.node import MOST_MINOR_FAULT_S
from seatrial.profiler.cause import Sureness
from seatrial.profiler.waiting_code import main_returns

_LEAST_KERNEL = 0.2
"""Of the CPU time: less in the kernel is usual."""
_RUN_S = 5e-3
"""To start a program and to end it takes up to so long in the kernel."""
_LEAST_RATE_BPS = 1e9
"""Bytes that are read or written are copied at this rate at least."""
_LEAST_CALLS_HZ = 50_000.0
"""Reads and writes in each second of CPU time; one takes a microsecond or so in the kernel."""
_MOST_CALL_B = 1024.0
_MOST_CALL_S = 20e-6
"""Time in the kernel for each read or write; if it is more, something else takes it."""
_MOST_OPENING_S = 100e-6
"""Time in the kernel to find, open and close a file, for each read or write in it."""
_LEAST_WAITS_HZ = 2000.0
"""Voluntary switches in each second of CPU time, ..."""
_MOST_WAIT_S = 100e-6
"""... and CPU time in the kernel for each: to block and to be woken by another."""
_LEAST_STARTED_HZ = 50.0
"""Threads and processes started in each second."""
_MOST_START_S = 200e-6
"""Time in the kernel to start and to end a thread."""
_MOST_LIFE_S = 5e-3
"""CPU time of a process that was started for little work."""
_LEAST_SEEN = 5
_LEAST_NEW, _LEAST_OPENINGS = 0.04, 0.02
"""Threads and processes, or open files, that came and went between looks, as a share of all looks. A file is open for
a small part of the time that its calls take."""
_WORKS = 0.1
"""A thread with less CPU time than this part of the busiest one's has another task: it samples, logs, or hands out
work."""
_BUSY = 0.7
"""The busiest thread ran for so much of the time: the others wait for it, not all for something else."""
_EXPLAINED = 0.5
"""Waiting for other threads that was seen explains the CPU time that is missing."""


def kernel_left_s(known: Habits) -> float:
    """Seconds in the kernel that page faults, the copying of data, and the start of the program do not explain."""
    explained_s = MOST_MINOR_FAULT_S * known.minor_faults + known.moved_B / _LEAST_RATE_BPS + _RUN_S * known.runs
    return max(0.0, known.system_s - explained_s)


def kernel_cause(signals: Signals, known: Habits, *, has_locks: bool) -> Disturbance | None:
    """What CPU time in the kernel, or in short processes, is spent on; None if there is little. `has_locks`: threads
    that wait for mutexes are named already, which may be the reason."""
    return _process_starts(signals, known) or (None if has_locks else _in_kernel(signals, known))


def has_other_reason(signals: Signals, known: Habits) -> bool:
    """Whether time in the kernel has a reason other than locks."""
    return _starts_threads(signals, known) or _makes_small_calls(signals, known)


def _in_kernel(signals: Signals, known: Habits) -> Disturbance | None:
    whole_s, left_s = _whole_s(signals), kernel_left_s(known)
    cpu_s = signals.cpu_s or whole_s
    if left_s < max(LEAST_DELAY * whole_s, _LEAST_KERNEL * cpu_s) or not whole_s:
        return None
    share = min(1.0, left_s / whole_s)
    seen: dict[str, Any] = {"kernel": min(1.0, known.system_s / cpu_s)}
    if _starts_threads(signals, known):
        started = _started(known)
        seen |= {"started": started / max(1.0, known.runs), "rate": started / signals.wall_s}
        return Disturbance(RepeatCause.THREAD_STARTS, share, Sureness.INFERRED, seen)
    runs = max(1.0, known.runs)
    seen |= {"calls": known.calls / runs, "each_B": known.moved_B / known.calls if known.calls else 0.0}
    if _opens_files(known):
        seen |= {"looks": known.openings, "of": known.looks, "file": known.opened}
        return Disturbance(RepeatCause.FILE_OPENINGS, share, Sureness.INFERRED, seen)
    if _makes_small_calls(signals, known):
        seen["each_s"] = left_s / known.calls
        return Disturbance(RepeatCause.SMALL_CALLS, share, Sureness.INFERRED, seen)
    if _synchronises(signals):
        return None
    is_alone = known.most_threads == 1 and known.most_processes == 1  # it has no other thread to wait for
    is_often = known.voluntary >= _LEAST_WAITS_HZ * cpu_s and left_s <= _MOST_WAIT_S * known.voluntary
    waits = is_often and not is_alone
    seen |= {"faults": known.minor_faults / runs, "switches": known.voluntary / signals.wall_s, "waits": waits}
    seen["catches"] = known.catches_faults
    seen |= _system_call(known)
    return Disturbance(RepeatCause.KERNEL_TIME, share, Sureness.MEASURED, seen)


def _system_call(known: Habits) -> dict[str, Any]:
    """The system calls that threads were mostly seen to come back from; empty if there are none."""
    found = main_returns(known.code.calls)
    return {} if found is None else {"call": found.names, "returns": found.samples, "of_returns": found.share}


def waits_in_loop(signals: Signals, known: Habits) -> Disturbance | None:
    """Threads that use their CPUs to wait for others."""
    loop, whole_s = known.code.loop, _whole_s(signals)
    share = min(1.0, known.code.loop_s / whole_s) if whole_s > 0 else 0.0
    if loop is None or share < LEAST_DELAY or not signals.cpu_s:
        return None
    seen = {"cpu": min(1.0, known.code.loop_s / signals.cpu_s), "file": loop.module, "offset": loop.offset}
    return Disturbance(RepeatCause.WAITING_LOOP, share, Sureness.MEASURED, seen)


def _synchronises(signals: Signals) -> bool:
    """It waits in fsync and similar calls, which are named by themselves: they also take the time in the kernel."""
    synced_s = sum(wait.seconds for wait in signals.waits if wait.kind == "sync")
    return synced_s > 0 and synced_s >= LEAST_DELAY * (signals.waits_covered_s or 0.0)


def _opens_files(known: Habits) -> bool:
    """Files come and go between looks, and so often that their calls explain the time in the kernel: each has its
    read or write as a rule."""
    is_often = known.openings >= max(_LEAST_SEEN, _LEAST_OPENINGS * known.looks)
    return is_often and kernel_left_s(known) <= _MOST_OPENING_S * known.calls


def _makes_small_calls(signals: Signals, known: Habits) -> bool:
    calls, cpu_s = known.calls, signals.cpu_s or 0.0
    if calls < _LEAST_CALLS_HZ * cpu_s or not calls:
        return False
    return known.moved_B <= _MOST_CALL_B * calls and kernel_left_s(known) <= _MOST_CALL_S * calls


def _starts_threads(signals: Signals, known: Habits) -> bool:
    started = _started(known)
    is_often = started >= _LEAST_STARTED_HZ * signals.wall_s and kernel_left_s(known) <= _MOST_START_S * started
    return is_often and known.most_threads > 0 and _is_new(known.short_threads, known)


def _process_starts(signals: Signals, known: Habits) -> Disturbance | None:
    """CPU time of processes that ended before they were seen with it. The kernel counts that of a very short process
    as user time, however much of it is spent on starting it."""
    started, whole_s = _started(known), _whole_s(signals)
    if not signals.cpu_s or not whole_s or not started or not _is_new(known.short_processes, known):
        return None
    unseen_s = max(0.0, signals.cpu_s - sum(one.cpu_s for one in known.processes))
    is_often = started >= _LEAST_STARTED_HZ * signals.wall_s and unseen_s <= _MOST_LIFE_S * started
    share = min(1.0, unseen_s / whole_s)
    if not is_often or share < LEAST_DELAY or known.most_processes <= 0:
        return None
    names = sorted(known.processes, key=lambda one: -one.processes)
    seen = {
        "cpu": min(1.0, unseen_s / signals.cpu_s),
        "started": started / max(1.0, known.runs),
        "rate": started / signals.wall_s,
        "names": [one.name for one in names[:2]],
    }
    return Disturbance(RepeatCause.PROCESS_STARTS, share, Sureness.INFERRED, seen)


def _started(known: Habits) -> float:
    """Threads and processes that the program started, at most: those of the machine, and two for each of its voluntary
    switches, since who starts them waits for their end."""
    return min(known.started_tasks, 2 * known.voluntary)


def _is_new(times: float, known: Habits) -> bool:
    return times >= max(_LEAST_SEEN, _LEAST_NEW * known.looks)


def _whole_s(signals: Signals) -> float:
    return max(signals.wall_s, signals.cpu_s or 0.0)


def uneven_threads(signals: Signals, known: Habits) -> Disturbance | None:
    """One thread ran nearly all of the time, and others that work as well waited for threads of the program for the
    rest. CPU time cannot tell work from waiting in a loop: the least that they waited."""
    busiest_s = sum(max(one) for one in known.teams if one)
    teams = [[own for own in one if own >= _WORKS * max(one)] for one in known.teams if one]
    sizes = {len(team) for team in teams}
    if not teams or len(teams) < signals.repeats or len(sizes) != 1 or sizes == {1} or not known.looked_s:
        return None
    size = sizes.pop()
    ran_s = sum(map(sum, teams))
    missing_s = size * busiest_s - ran_s
    # While one waits for a CPU, the others may wait for it in a loop, and use CPU time.
    share = (missing_s - (size - 1) * (signals.delay_s or 0.0)) / (size * busiest_s) if busiest_s > 0 else 0.0
    waits_s = known.thread_waits.seconds
    if busiest_s < _BUSY * known.looked_s or share < LEAST_DELAY or waits_s < _EXPLAINED * missing_s:
        return None
    seen = {
        "threads": size,
        "busiest": busiest_s / known.looked_s,
        "others": (ran_s - busiest_s) / (size - 1) / known.looked_s,
        "used": ran_s / known.looked_s,
    }
    return Disturbance(RepeatCause.UNEVEN_THREADS, share, Sureness.MEASURED, seen)
