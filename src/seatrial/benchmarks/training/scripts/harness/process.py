"""The processes of a run: which one this is, its CPUs, and its memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence


class Process:
    """One of `count` processes; `number_here` counts those of this node. `cpus` are its own, of which it has
    `threads`; the next ones are those of its workers."""

    def __init__(self, cpus: Sequence[int], threads: int, of_workers: int = 0) -> None:
        self.number = int(os.environ.get("RANK", "0"))
        self.count = int(os.environ.get("WORLD_SIZE", "1"))
        self.number_here = int(os.environ.get("LOCAL_RANK", "0"))
        own = list(cpus[self.number_here * (threads + of_workers) :])
        self.cpus, self.cpus_of_workers = own[:threads], own[threads : threads + of_workers]

    def bind(self) -> bool:
        """Bind this process to its CPUs, before a library starts threads; whether that is what it may use now."""
        if self.cpus:
            os.sched_setaffinity(0, self.cpus)
        return not self.cpus or os.sched_getaffinity(0) == set(self.cpus)


def peak_memory_B() -> int:
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
