"""Where threads and their memory go: the rules that benchmarks of the processor and its memory share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from seatrial.benchmarks.bounds import between
from seatrial.model.benchmark import Check, Skip
from seatrial.model.machine import Device, DeviceKind, Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params, Value, whole
from seatrial.model.sample import Sample

THREADS = Parameter(
    "threads",
    ParameterKind.INTEGER,
    "all",
    "threads, each bound to its own CPU; all: one per core",
    words=("all",),
    minimum=1,
)

NODE = Parameter(
    "node",
    ParameterKind.INTEGER,
    "auto",
    "NUMA node whose CPUs are used; auto: those of all nodes",
    words=("auto",),
)

MEMORY = Parameter(
    "memory",
    ParameterKind.INTEGER,
    "local",
    "NUMA node to allocate memory on; local: that of the CPU that first touches it",
    words=("local",),
)

HUGE_PAGES = Parameter(
    "huge_pages", ParameterKind.FLAG, True, "ask the kernel for huge pages; without them, TLB misses add to the time"
)


_ASTRAY = 0.01
"""Pages that may lie elsewhere: a kernel short of memory takes the last of them where it can."""


def thread_count(machine: Machine, threads: Value, node: Value = "auto") -> int:
    """The number that `threads` stands for on this machine, or on one NUMA node of it.

    Raises Skip where there are not that many CPUs: threads that share a CPU measure the scheduler.
    """
    if threads == "all":
        return len(_cores(machine, node))
    count = whole(threads)
    there = len(_allowed(machine, node))
    if count > there:
        where = "" if node == "auto" else f" of NUMA node {node}"
        raise Skip(f"{count} threads need {count} CPUs; this process may use {there}{where}")
    return count


def spread(machine: Machine, count: int, node: Value = "auto") -> tuple[int, ...]:
    """The CPUs for `count` threads: a core each as long as there are cores, then the cores' other hardware threads.

    With a number as `node`, only CPUs of that NUMA node. Raises Skip where it has none for us.
    """
    first = _cores(machine, node)
    taken = frozenset(first)
    others = tuple(cpu for cpu in _allowed(machine, node) if cpu not in taken)
    return (*first, *others)[:count]


def numa_node(machine: Machine, cpu: int) -> int | None:
    """The NUMA node that a CPU belongs to, as the operating system numbers them, or None where no source tells."""
    pu = machine.pus().get(cpu)
    return None if pu is None else pu.numa


def require_memory(machine: Machine, memory: Value) -> None:
    """Raises Skip where `memory` names a NUMA node that is not there or has no memory."""
    if memory != "local" and not _has_memory(_node(machine, whole(memory))):
        raise Skip(f"NUMA node {memory} has no memory")


def is_local(machine: Machine, cpus: Iterable[int], memory: Value) -> bool:
    """Whether memory taken from `memory` lies on the NUMA node of each of these CPUs."""
    return memory == "local" or all(numa_node(machine, cpu) == whole(memory) for cpu in cpus)


def pages_check(placement: Callable[[Machine, Params], tuple[int, ...]]) -> Check:
    """The check that memory lies where the parameter `memory` says, for the CPUs that `placement` gives.

    Programs report with each sample at how many pages they looked and how many of those were on a wrong node. Where the
    kernel tells no page's node (a container's filter), or memory is to be local to CPUs whose node has none, there is
    nothing to check.
    """

    def astray(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
        if node_of_memory(params) == "local" and _lacks_memory(machine, placement(machine, params)):
            return None
        looked_at = max((sample.extra["pages_looked_at"] for sample in samples), default=0)
        return max(sample.extra["pages_astray"] for sample in samples) / looked_at if looked_at else None

    return Check(
        "pages_astray",
        "share of pages on the wrong NUMA node",
        bound=between(0.0, _ASTRAY),
        derive=astray,
    )


def node_of_cpus(params: Params) -> Value:
    """The value of `node`; experiments of earlier versions have none."""
    return params.get(NODE.name, NODE.default)


def node_of_memory(params: Params) -> Value:
    """The value of `memory`; experiments of earlier versions have none."""
    return params.get(MEMORY.name, MEMORY.default)


def memory_arguments(params: Params) -> list[str]:
    """What tells a program the node of its memory."""
    memory = node_of_memory(params)
    return [] if memory == "local" else ["--memory-node", str(memory)]


def _lacks_memory(machine: Machine, cpus: Iterable[int]) -> bool:
    nodes = {numa_node(machine, cpu) for cpu in cpus}
    return any(not _has_memory(device) for device in machine.of_kind(DeviceKind.NUMA) if device.numa in nodes)


def _node(machine: Machine, number: int) -> Device:
    nodes = {device.numa: device for device in machine.of_kind(DeviceKind.NUMA)}
    if number not in nodes:
        known = ", ".join(str(node) for node in sorted(node for node in nodes if node is not None))
        raise Skip(f"this machine has no NUMA node {number}; known nodes: {known or 'none'}")
    return nodes[number]


def _has_memory(node: Device) -> bool:
    return node.facts.number("memory_total") != 0  # not told is not none


def _allowed(machine: Machine, node: Value) -> tuple[int, ...]:
    return _on_node(machine, machine.allowed_cpus, node)


def _cores(machine: Machine, node: Value) -> tuple[int, ...]:
    return _on_node(machine, machine.cpus_one_per_core(), node)


def _on_node(machine: Machine, cpus: tuple[int, ...], node: Value) -> tuple[int, ...]:
    if node == "auto":
        return cpus
    number = whole(node)
    _node(machine, number)
    there = tuple(cpu for cpu in cpus if numa_node(machine, cpu) == number)
    if not there:
        raise Skip(f"NUMA node {number} has no CPU that this process may use")
    return there
