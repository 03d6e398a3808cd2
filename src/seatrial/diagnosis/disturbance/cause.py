"""A cause of slow or disturbed repeats, as a value. Its sentences are in words.py."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import field

from seatrial.model.frozen import Frozen
from seatrial.profiler import cause as profile


class Cause(StrEnum):
    """What takes the time of repeats. A cause that profiles name, too, has the same name here."""

    CPU_QUOTA = profile.Cause.CPU_QUOTA.value
    STEAL = profile.Cause.STEAL.value
    OTHER_PROCESSES = profile.Cause.OTHER_PROCESSES.value
    NO_CPU = profile.Cause.NO_CPU.value
    """It waited for a CPU; why is not known."""
    MORE_THREADS_THAN_CPUS = "more-threads-than-cpus"
    IO_LIMIT = "io-limit"
    FILE_SYSTEM = "file-system"
    SYNCHRONISED_IO = "synchronised-io"
    MEMORY = "memory-shortage"
    LOCKS = "lock-contention"
    PAGE_FAULTS = profile.Cause.PAGE_FAULTS.value
    SLEEP = "sleep"
    CHILD = "child-process"


CPU_CAUSES = frozenset(
    {Cause.CPU_QUOTA, Cause.STEAL, Cause.OTHER_PROCESSES, Cause.NO_CPU, Cause.MORE_THREADS_THAN_CPUS}
)

HABITS = frozenset({Cause.LOCKS, Cause.PAGE_FAULTS, Cause.SLEEP, Cause.CHILD})
"""How the program works: it does so in all repeats, so this does not explain why they differ."""


class Disturbance(Frozen):
    """A cause and the share of the repeats' time that it explains (0..1; None: not measured).

    `seen` are the values that speak for it, by name, as words.py uses them.
    """

    cause: Cause
    share: float | None
    sureness: profile.Sureness
    seen: dict[str, Any] = field(default_factory=dict)
