"""The processes of a run: which one this is, its CPUs, and its memory."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from typing import Any

from harness.nodes import launched_number

_OF_TORCHRUN = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}


class Process:
    """One of `count` processes; `number_here` counts those of this node, whose CPUs it gets. `cpus` are its own, of
    which it has `threads`; the next ones are those of its workers."""

    def __init__(self, cpus: Sequence[int], threads: int, of_workers: int = 0, started: tuple | None = None) -> None:
        self.number, self.count, self.number_here = started or _started_by_torchrun()
        own = list(cpus[self.number_here * (threads + of_workers) :])
        self.cpus, self.cpus_of_workers = own[:threads], own[threads : threads + of_workers]

    def bind(self) -> bool:
        """Bind this process to its CPUs, before a library starts threads; whether that is what it may use now."""
        if self.cpus:
            os.sched_setaffinity(0, self.cpus)
        return not self.cpus or os.sched_getaffinity(0) == set(self.cpus)


def launched(cpus: Sequence[int], settings: Mapping[str, Any]) -> Process:
    """One of those that a launcher of ranks started, as many on each node. `cpus` are those of all nodes."""
    count, nodes = settings["processes"], settings["nodes"]
    number = launched_number() if count > 1 else 0
    here, each = count // nodes, len(cpus) // nodes
    own = cpus[number // here * each :]
    return Process(own, settings["threads"], started=(number, count, number % here))


def _started_by_torchrun() -> tuple:
    """Number, count and number on this node; one process if it did not start this."""
    return tuple(int(os.environ.get(name, usual)) for name, usual in _OF_TORCHRUN.items())


def peak_memory_B() -> int:
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
