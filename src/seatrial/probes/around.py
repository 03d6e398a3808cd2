"""Everything that is read once before and once after a repeat, and what the kernel reports while it runs: machine
checks, PCIe errors (AER), errors of GPUs (Xid) and NVSwitches (SXid), killed processes.

/dev/kmsg gives one record per read, with text that the kernel escaped (Documentation/ABI/testing/dev-kmsg of Linux).
Reading it needs root, or kernel.dmesg_restrict=0; in most containers it does not exist. Then nothing is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.devices import read_link_counters
from seatrial.model.frozen import Frozen
from seatrial.model.machine.links import LINK_COUNTERS, CounterKind, LinkCounter, Readings, counters_between
from seatrial.probes.system import (
    GroupLimits,
    Snapshot,
    limits_between,
    pressure_between,
    read_limits,
    read_pressure,
    scheduling,
    seen_between,
    snapshot,
)

_ROOT = Path("/")


def read_links(root: Path = _ROOT) -> Readings:
    """The counters now. Empty without network hardware; never fails."""
    return read_link_counters(FileTree(root))


def links_between(before: Readings, after: Readings) -> list[dict[str, Any]]:
    """The counters that grew, errors first: port, counter, kind and number (None: unknown)."""
    return [_grown(change.port, change.counter, change.grew_by) for change in counters_between(before, after)]


def _grown(port: str, counter: LinkCounter, grew_by: int | None) -> dict[str, Any]:
    return {"port": port, "counter": counter.name, "kind": counter.kind.value, "grew_by": grew_by}


def links_of_nodes(noted: object) -> list[dict[str, Any]] | None:
    """The same as `links_between`, with `host`, from the note `links` of a program with ranks on several nodes; None
    without it. Counters of no known meaning, and what cannot be read, are left out."""
    if not isinstance(noted, Sequence):
        return None
    order = list(CounterKind)
    found = []
    for entry in noted:
        counter = LINK_COUNTERS.get(entry.get("counter", "")) if isinstance(entry, dict) else None
        grew_by = entry.get("grew_by") if counter is not None else None
        if counter is None or not isinstance(grew_by, int | None):
            continue
        host, port = (str(entry.get(key, "")) for key in ("host", "port"))
        found.append({"host": host, **_grown(port, counter, grew_by)})
    return sorted(found, key=lambda one: order.index(CounterKind(one["kind"])))


class Around(Frozen):
    """The state at one moment."""

    system: Snapshot
    pressure: Mapping[str, int]
    limits: GroupLimits
    links: Readings


def look_around(cpus: Sequence[int]) -> Around:
    """The current state. Never fails: what cannot be read is missing."""
    return Around(snapshot(cpus), read_pressure(), read_limits(), read_links())


def seen_around(before: Around, after: Around, cpus: Sequence[int], programs_s: float | None) -> dict[str, Any]:
    """What a repeat's record has of the time in between (system.py, pressure.py, link_counters.py and
    group_limits.py in probes/). `programs_s`: the CPU time of its programs, None if it is unknown."""
    seen = {"scheduling": scheduling(), **seen_between(before.system, after.system, cpus, programs_s)}
    if pressure := pressure_between(before.pressure, after.pressure):
        seen["pressure"] = pressure
    if links := links_between(before.links, after.links):
        seen["links"] = links
    return seen | limits_between(before.limits, after.limits)


_DEVICE = "/dev/kmsg"
_LONGEST_RECORD_B = 8192
_MOST_RECORDS = 20_000  # A kernel that writes more during a repeat is flooded; what follows is not read.
_MOST_EVENTS = 20
_LONGEST_EVENT = 300

_EVENTS = re.compile(
    "|".join(
        (
            r"\bmce: |machine check|\[Hardware Error\]|\bEDAC\b.*\b(?:CE|UE|error)|Memory failure:",
            r"\bAER: |PCIe Bus Error|DPC: |pciehp: .*Link Down",
            r"NVRM: Xid|nvidia-nvswitch\d+: SXid|amdgpu.*(?:\*ERROR\*|GPU reset|ring \S+ timeout)",
            r"temperature (?:is )?above threshold|clock (?:is )?throttled|thermal_sys: .*critical",
            r"Out of memory: Killed|oom-kill:|Memory cgroup out of memory",
            r"I/O error, dev|nvme\S* .*(?:timeout|resetting|controller is down)|nfs: server .* not responding",
            r"soft lockup|hard LOCKUP|rcu\S* .*stall|blocked for more than \d+ seconds|NETDEV WATCHDOG",
            r"mlx5_core .*(?:error|Link down)|segfault at ",
        )
    ),
    re.IGNORECASE,
)
"""Records that explain a slow, wrong or missing result."""


class KernelLog:
    """The kernel's log from the moment of opening."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def events(self) -> list[str]:
        """The events since the log was opened or last read, in order, each text once; [] if it cannot be read."""
        found: dict[str, None] = {}
        for record in self._records():
            text = record.partition(b";")[2].partition(b"\n")[0].decode("ascii", "backslashreplace")
            if _EVENTS.search(text) and len(found) < _MOST_EVENTS:
                found.setdefault(text[:_LONGEST_EVENT])
        return list(found)

    def _records(self) -> Iterator[bytes]:
        for _ in range(_MOST_RECORDS if self._descriptor is not None else 0):
            try:
                yield os.read(self._descriptor or 0, _LONGEST_RECORD_B)
            except BrokenPipeError:
                continue  # older records were overwritten; the next read gives the oldest that is left
            except OSError:  # EAGAIN: no more records
                return


@contextmanager
def kernel_log() -> Iterator[KernelLog]:
    """The log of what the kernel reports from now on. Never fails."""
    with ExitStack() as opened:
        descriptor = None
        with suppress(OSError):
            log = os.open(_DEVICE, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            opened.callback(os.close, log)
            os.lseek(log, 0, os.SEEK_END)
            descriptor = log
        yield KernelLog(descriptor)
