"""Pressure stall information: how long tasks of this machine waited for CPUs, memory or I/O (Linux 4.20,
Documentation/accounting/psi.rst)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from seatrial.probes.kernel_text import kernel_text

_FOLDER = Path("/proc/pressure")
_KINDS = ("cpu", "io", "memory")
_TOTAL = "total="


def read_pressure(folder: Path = _FOLDER) -> dict[str, int]:
    """Microseconds since the machine started: `io_some` of at least one task waiting, `io_full` of all tasks that could
    run; likewise cpu and memory. Empty if the kernel does not count; never fails."""
    totals: dict[str, int] = {}
    for kind in _KINDS:
        for line in kernel_text(f"{folder}/{kind}").splitlines():
            words = line.split()
            if words and words[-1].startswith(_TOTAL) and words[-1][len(_TOTAL) :].isdecimal():
                totals[f"{kind}_{words[0]}"] = int(words[-1][len(_TOTAL) :])
    return totals


def pressure_between(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, float]:
    """Seconds of each in between."""
    return {f"{kind}_s": max(0, total - before[kind]) / 1e6 for kind, total in after.items() if kind in before}
