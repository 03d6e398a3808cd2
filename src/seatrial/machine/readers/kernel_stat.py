"""/proc/stat -> CPU time since the system started (proc_stat(5))."""

from __future__ import annotations

_STEAL = 7
"""The eighth number of a line `cpu`; guest time, which follows, is contained in the first two."""


def read_steal_share(text: str) -> float | None:
    """The share of all CPU time since the start that the hypervisor gave to others; None if the kernel does not say.

    Idle time counts too, so it is a lower bound of what a busy program lost.
    """
    line = next((line for line in text.splitlines() if line.startswith("cpu ")), "")
    fields = line.split()[1:]
    if len(fields) <= _STEAL or not all(field.isdecimal() and len(field) <= 20 for field in fields):
        return None
    times = [int(field) for field in fields[: _STEAL + 1]]
    total = sum(times)
    return times[_STEAL] / total if total else None
