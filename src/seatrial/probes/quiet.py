"""Is this machine quiet enough to measure on? The load, what other processes and the hypervisor use of its CPUs over a
short look, and which processes these are (proc_stat(5), proc_pid_stat(5)); and the wait until it is quiet."""

from __future__ import annotations

import logging
import os
import pwd
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from seatrial.model.frozen import Frozen
from seatrial.model.units import duration
from seatrial.probes.system import Snapshot, kernel_text, snapshot

_LOOK_S = 0.25
"""The kernel counts in steps of 10 ms on each CPU: 4 % of it."""
_QUIET_CPUS = 0.2
"""A machine is quiet if others use less: an idle desktop or node does."""
_QUIET_STEAL = 0.02
"""Of the time of all CPUs."""
_LEAST_NAMED = 0.05
_MOST_NAMED = 3
_AGAIN_S = 1.0
_LOOKS_IN_A_ROW = 2
"""A process that computes in turns with sleeping is idle in some looks."""
_REPORT_AGAIN_S = 60.0

_log = logging.getLogger(__name__)


class BusyProcess(Frozen):
    """A process that is not ours, and the CPUs that it used on average."""

    name: str
    user: str
    pid: int
    cpus: float

    def __str__(self) -> str:
        return f"{self.name} (user {self.user}, pid {self.pid}): {self.cpus:.2g}"


class Quiet(Frozen):
    """What was seen in a look at this machine: of its `cpus`, others used `others` and the hypervisor took `steal`, on
    average (None: not known). `busiest` are the processes with most of it."""

    cpus: int
    load_1m: float | None = None
    others: float | None = None
    steal: float | None = None
    busiest: tuple[BusyProcess, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Whether it is quiet enough; also if nothing is known."""
        return (self.others or 0.0) < _QUIET_CPUS and (self.steal or 0.0) < _QUIET_STEAL * self.cpus

    def __str__(self) -> str:
        """Such as "other processes use 1.9 of 2 CPUs (sh (user a, pid 9): 1), steal 0.02, load average 3.1"."""
        parts = []
        if self.others is not None:
            named = ", ".join(map(str, self.busiest)) or "none that is visible here used much"
            who = f" ({named})" if self.others >= _QUIET_CPUS else ""
            parts.append(f"other processes use {self.others:.2g} of {self.cpus} CPUs{who}")
        if self.steal is not None and self.steal >= _QUIET_STEAL * self.cpus:
            parts.append(f"the hypervisor gives {self.steal:.2g} CPUs to other guests (steal)")
        if self.load_1m is not None:
            parts.append(f"load average {self.load_1m:.1f}")
        return ", ".join(parts) or "its load is unknown"


def look(seconds: float = _LOOK_S) -> Quiet:
    """Watch this machine for a moment. Never fails: what cannot be read is None."""
    cpus = list(range(os.cpu_count() or 1))
    before, first = snapshot(cpus), _processes()
    time.sleep(seconds)
    after, last = snapshot(cpus), _processes()
    return seen_in(before, after, first, last, len(cpus))


class ProcessTimes(Frozen):
    """CPU time in ticks; `began` distinguishes processes that had the same number."""

    name: str
    parent: int
    ticks: int
    began: int


def seen_in(
    before: Snapshot, after: Snapshot, first: Mapping[int, ProcessTimes], last: Mapping[int, ProcessTimes], cpus: int
) -> Quiet:
    """What two snapshots and the processes at both moments say."""
    span_s, per_s = after.at_s - before.at_s, os.sysconf("SC_CLK_TCK")
    if before.busy_ticks is None or after.busy_ticks is None or span_s <= 0:
        return Quiet(cpus, after.load_1m)
    grown = {
        pid: (now.ticks - (was.ticks if (was := first.get(pid)) and was.began == now.began else 0)) / per_s / span_s
        for pid, now in last.items()
    }
    own = _with_descendants(os.getpid(), last)
    # A child that was waited for meanwhile counts there with all that it ever used.
    ended = sum(first[pid].ticks for pid in _with_descendants(os.getpid(), first) - own if pid in first)
    ours_s = after.own_s - before.own_s - ended / per_s
    ours = max(0.0, ours_s) / span_s + sum(grown[pid] for pid in own - {os.getpid()} if pid in grown)
    others = (after.busy_ticks - before.busy_ticks) / per_s / span_s - ours
    steal = None
    if before.steal_ticks is not None and after.steal_ticks is not None:
        steal = (after.steal_ticks - before.steal_ticks) / per_s / span_s
    busiest = sorted(((used, pid) for pid, used in grown.items() if pid not in own), reverse=True)[:_MOST_NAMED]
    named = (BusyProcess(last[pid].name, _user(pid), pid, used) for used, pid in busiest if used >= _LEAST_NAMED)
    return Quiet(cpus, after.load_1m, min(float(cpus), max(0.0, others)), steal, tuple(named))


def _processes() -> dict[int, ProcessTimes]:
    found = {}
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return {}
    for pid in numbers:
        head, _, rest = kernel_text(f"/proc/{pid}/stat").rpartition(")")
        fields = rest.split()
        with suppress(ValueError, IndexError):  # it has ended
            ticks, began = int(fields[11]) + int(fields[12]), int(fields[19])
            found[pid] = ProcessTimes(head.partition("(")[2], int(fields[1]), ticks, began)
    return found


def _with_descendants(pid: int, processes: Mapping[int, ProcessTimes]) -> set[int]:
    found = {pid}
    children: dict[int, list[int]] = {}
    for number, one in processes.items():
        children.setdefault(one.parent, []).append(number)
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def _user(pid: int) -> str:
    try:
        uid = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return "unknown"
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def wait_until_quiet(limit_s: float, looks: Callable[[], Quiet] = look, pause_s: float = _AGAIN_S) -> bool:
    """Wait until this machine is quiet, at most so long; what it waits for is logged, once a minute and at the end.
    False if it still is not quiet: to be measured anyway."""
    began_s = time.monotonic()
    report_at_s, quiet = 0.0, 0
    while True:
        seen = looks()
        waited_s = time.monotonic() - began_s
        quiet = quiet + 1 if seen.is_quiet else 0
        if quiet >= _LOOKS_IN_A_ROW:
            if report_at_s:
                _log.warning("quiet after %s: %s", duration(waited_s), seen)
            return True
        if waited_s >= limit_s:
            if quiet:
                return True
            _log.warning("not quiet after %s (--wait-quiet), measured anyway: %s", duration(limit_s), seen)
            return False
        if not quiet and waited_s >= report_at_s:
            _log.warning("waiting up to %s for a quiet machine: %s", duration(limit_s), seen)
            report_at_s = waited_s + _REPORT_AGAIN_S
        time.sleep(min(pause_s, max(0.0, limit_s - waited_s)))
