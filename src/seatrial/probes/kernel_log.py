"""What the kernel reports while a repeat runs: machine checks, PCIe errors (AER), GPU errors (Xid), killed processes.

/dev/kmsg gives one record per read, with text that the kernel escaped (Documentation/ABI/testing/dev-kmsg of Linux).
Reading it needs root, or kernel.dmesg_restrict=0; in most containers it does not exist. Then nothing is known.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

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
            r"NVRM: Xid|amdgpu.*(?:\*ERROR\*|GPU reset|ring \S+ timeout)",
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
