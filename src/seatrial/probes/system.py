"""Load and CPU steal around one repeat, from /proc: read before and after, nothing runs during the repeat.

The clock is not read: between repeats cpufreq reports idle CPUs, and reading it takes milliseconds per CPU on older
kernels. Programs measure their own clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_STEAL_FIELD = 8  # /proc/stat, "cpuN user nice system idle iowait irq softirq steal ..." (proc(5))


@dataclass(frozen=True, slots=True)
class Look:
    """The state at one moment. `steal_ticks` is the sum over the requested CPUs; None if unknown."""

    at_s: float
    load_1m: float | None
    steal_ticks: int | None


def look(cpus: Sequence[int]) -> Look:
    """Read the state now. Never fails: values that cannot be read are None."""
    return Look(time.monotonic(), _load(), _steal(cpus))


def seen_between(before: Look, after: Look, cpus: Sequence[int]) -> dict[str, Any]:
    """The load before, and the CPU time that the hypervisor took in between (seconds, and share of the time)."""
    seen: dict[str, Any] = {"load_1m": before.load_1m}
    if before.steal_ticks is not None and after.steal_ticks is not None and cpus:
        steal_s = (after.steal_ticks - before.steal_ticks) / os.sysconf("SC_CLK_TCK")
        elapsed = after.at_s - before.at_s
        seen["steal_s"] = steal_s
        seen["steal_share"] = min(1.0, steal_s / (elapsed * len(cpus))) if elapsed > 0 else 0.0
    return seen


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _steal(cpus: Sequence[int]) -> int | None:
    wanted = {f"cpu{cpu}" for cpu in cpus}
    total = 0
    try:
        with Path("/proc/stat").open(encoding="ascii") as stream:
            for line in stream:
                if not line.startswith("cpu"):
                    break
                fields = line.split()
                if fields[0] in wanted:
                    total += int(fields[_STEAL_FIELD])
    except (OSError, IndexError, ValueError):
        return None
    return total
