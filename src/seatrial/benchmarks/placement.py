"""Where threads go: the rules that benchmarks of the processor and its memory share."""

from __future__ import annotations

from seatrial.model.benchmark import Skip
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Value

THREADS = Parameter(
    "threads",
    ParameterKind.INTEGER,
    "all",
    "threads, each bound to a CPU of its own; all: one per core",
    words=("all",),
    minimum=1,
)


def thread_count(machine: Machine, threads: Value) -> int:
    """The number that `threads` stands for on this machine. Raises Skip where there are not that many CPUs: threads
    that share a CPU measure the scheduler."""
    if threads == "all":
        return len(machine.cpus_one_per_core())
    count = int(threads)
    if count > len(machine.allowed_cpus):
        raise Skip(f"{count} threads want as many CPUs; this process may use {len(machine.allowed_cpus)}")
    return count


def spread(machine: Machine, count: int) -> tuple[int, ...]:
    """The CPUs for `count` threads: a core each as long as there are cores, then the cores' other hardware threads."""
    first = machine.cpus_one_per_core()
    taken = frozenset(first)
    others = tuple(cpu for cpu in machine.allowed_cpus if cpu not in taken)
    return (*first, *others)[:count]
