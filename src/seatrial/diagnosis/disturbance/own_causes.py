"""Causes in the program itself: its threads wait for each other's locks, its pages are handed out again and again, it
sleeps, or it waits for a child process."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.diagnosis.cpu import LEAST_DELAY as LEAST_SHARE
from seatrial.diagnosis.disturbance.cause import Cause, Disturbance
from seatrial.diagnosis.disturbance.habits import Habits, Span
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
    for found in (_locks(signals, known), _page_faults(signals, known), _sleep(known), _child(known)):
        if found is not None:
            yield found


def _is_seen(span: Span) -> bool:
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
    if not _is_seen(locks.wait) and not kernel_s:
        return None
    whole_s = ran_s + signals.delay_s + wait_s
    share = (wait_s + kernel_s) / whole_s
    if share < LEAST_SHARE:
        return None
    seen = {"blocked": wait_s / whole_s, "kernel": kernel_s / whole_s, "rate": known.voluntary / signals.wall_s}
    return Disturbance(Cause.LOCKS, share, Sureness.INFERRED if kernel_s else Sureness.MEASURED, seen)


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
    return Disturbance(Cause.PAGE_FAULTS, share, Sureness.INFERRED, {**seen, "per_page": per_page})


def _sleep(known: Habits) -> Disturbance | None:
    share = min(1.0, known.sleep.seconds / known.looked_s)
    if share < LEAST_SHARE or not _is_seen(known.sleep):
        return None
    return Disturbance(Cause.SLEEP, share, Sureness.MEASURED, {})


def _child(known: Habits) -> Disturbance | None:
    """The process that waited longest for a child, of those with work of their own: a launcher only waits."""
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
        found = Disturbance(Cause.CHILD, share, Sureness.MEASURED, seen)
    return found
