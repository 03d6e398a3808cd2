"""Placement of threads and their memory, shared by benchmarks of the processor and its memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from seatrial.benchmarks.figures import between, exactly
from seatrial.benchmarks.nodes import (
    NODE_PLACEMENT,
    NODES,
    RANKS_PER_NODE,
    cpus_of_nodes,
    node_count,
    on_each_node,
    with_ranks_per_node,
)
from seatrial.model.benchmark.benchmark import Check, Skip
from seatrial.model.benchmark.parameter import UNKNOWN, Parameter, Params, Value, whole
from seatrial.model.benchmark.program import NODES as NODES_NAME
from seatrial.model.benchmark.program import RANKS as RANKS_NAME
from seatrial.model.benchmark.program import THREADS as THREADS_NAME
from seatrial.model.machine.fact import SURELY_USABLE, sizing_memory_B
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.sample import Sample

THREADS = Parameter.integer("threads", "all", "threads, each bound to its own CPU; all: one per core", minimum=1)

NODE = Parameter.integer("node", "auto", "NUMA node whose CPUs are used; auto: those of all nodes")

MEMORY = Parameter.integer(
    "memory",
    "local",
    "NUMA node to allocate memory on; local: that of the CPU that first touches it",
    option="--memory-node",
    spelled={"local": None, UNKNOWN: None},
)

HUGE_PAGES = Parameter.switch(
    "huge_pages", True, "ask the kernel for huge pages; without them, TLB misses add to the time", option="--huge-pages"
)


_ASTRAY = 0.01
"""Allowed share of misplaced pages: a kernel short of memory takes the last ones from any node."""


def thread_count(machine: Machine, threads: Value, node: Value = "auto") -> int:
    """The number of threads on this machine, or on one NUMA node of it.

    Raises Skip if there are fewer CPUs: threads that share a CPU measure the scheduler.
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
    """The CPUs for `count` threads: first one per core, then the cores' other hardware threads.

    If `node` is a number, only CPUs of that NUMA node. Raises Skip if this process may use none there.
    """
    first = _cores(machine, node)
    taken = frozenset(first)
    others = tuple(cpu for cpu in _allowed(machine, node) if cpu not in taken)
    return (*first, *others)[:count]


def numa_node(machine: Machine, cpu: int) -> int | None:
    """The NUMA node of a CPU, as numbered by the operating system, or None if unknown."""
    pu = machine.pus.get(cpu)
    return None if pu is None else pu.numa


def require_memory(machine: Machine, memory: Value) -> None:
    """Raises Skip if `memory` names a NUMA node that does not exist or has no memory."""
    if memory != "local" and not _has_memory(_node(machine, whole(memory))):
        raise Skip(f"NUMA node {memory} has no memory")


def is_local(machine: Machine, cpus: Iterable[int], memory: Value) -> bool:
    """Whether memory allocated on `memory` is local to each of these CPUs."""
    return memory == "local" or all(numa_node(machine, cpu) == whole(memory) for cpu in cpus)


def pages_check(placement: Callable[[Machine, Params], tuple[int, ...]]) -> Check:
    """The check that memory is on the node that the parameter `memory` requests, for the CPUs of `placement`.

    Programs report with each sample how many pages they inspected and how many of those were on a wrong node. Nothing
    is checked if the kernel reports no page's node (a container's filter), or if memory should be local to CPUs whose
    node has none.
    """

    def astray(machine: Machine, params: Params, samples: Sequence[Sample]) -> float | None:
        if node_of_memory(params) == "local" and _lacks_memory(machine, placement(machine, params)):
            return None
        looked_at = max((sample.extra["pages_looked_at"] for sample in samples), default=0)
        return max(sample.extra["pages_astray"] for sample in samples) / looked_at if looked_at else None

    return Check("pages_astray", "share of pages on the wrong NUMA node", between(0.0, _ASTRAY), astray)


def node_of_cpus(params: Params) -> Value:
    """The value of `node`; experiments of earlier versions have none, and imported files do not state it."""
    return _stated(params, NODE)


def node_of_memory(params: Params) -> Value:
    """The value of `memory`; experiments of earlier versions have none, and imported files do not state it."""
    return _stated(params, MEMORY)


def _stated(params: Params, parameter: Parameter) -> Value:
    value = params.get(parameter.name, UNKNOWN)
    return parameter.default if value == UNKNOWN else value


def memory_size(machine: Machine, *, is_settled: bool = False) -> float | None:
    """The smallest memory size, in bytes, that any source reports, including limits of control groups; None if unknown.

    `is_settled`: without what varies from boot to boot, which is a little less.
    """
    totals, limits = (
        [float(f.value) for f in machine.facts.get(name, ()) if isinstance(f.value, int | float) and f.value > 0]
        for name in ("memory_total", "cgroup_memory_limit")
    )
    if totals and is_settled:
        size = sizing_memory_B(machine.facts, min(totals))
        totals = [] if size is None else [SURELY_USABLE * size]
    return min([*totals, *limits], default=None)


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
    return node.facts.number("memory_total") != 0  # unknown does not mean none


def _allowed(machine: Machine, node: Value) -> tuple[int, ...]:
    return _on_node(machine, machine.allowed_cpus, node)


def _cores(machine: Machine, node: Value) -> tuple[int, ...]:
    return _on_node(machine, machine.cpus_one_per_core, node)


def _on_node(machine: Machine, cpus: tuple[int, ...], node: Value) -> tuple[int, ...]:
    if node == "auto":
        return cpus
    number = whole(node)
    _node(machine, number)
    there = tuple(cpu for cpu in cpus if numa_node(machine, cpu) == number)
    if not there:
        raise Skip(f"NUMA node {number} has no CPU that this process may use")
    return there


RANKS = Parameter.integer(
    RANKS_NAME,
    "all",
    "MPI ranks, each bound to as many CPUs as it has threads; all: as many as fit on the cores",
    minimum=1,
)

THREADS_OF_RANK = Parameter.integer(THREADS_NAME, 1, "OpenMP threads per rank", minimum=1)

RANK_LAYOUT = (RANKS, NODES, RANKS_PER_NODE, NODE_PLACEMENT)
LAYOUT = (*RANK_LAYOUT, THREADS_OF_RANK)
"""The parameters of ranks on nodes, and of ranks with threads."""

_OVERRIDING = ("OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY", "OMP_DYNAMIC", "OMP_THREAD_LIMIT")
"""Variables that would change the number or binding of the threads. OMP_PLACES binds the threads of every rank to the
same CPUs if the ranks themselves are not bound: two ranks of GROMACS on two cores then took 30 times as long."""


def resolved(machine: Machine, params: Params) -> Params:
    """The parameters with the numbers that `ranks` and `nodes` stand for. Raises Skip where there are fewer CPUs or
    nodes."""
    params = with_ranks_per_node(machine, params)
    threads = whole(params.get(THREADS_NAME, 1))
    given = None if params[RANKS_NAME] == "all" else whole(params[RANKS_NAME])
    nodes = node_count(machine, params[NODES_NAME], given)
    ranks = nodes * max(1, thread_count(machine, "all") // threads) if given is None else given
    refuse_too_many(machine, nodes, ranks, threads)
    return {**params, RANKS_NAME: ranks, NODES_NAME: nodes}


def refuse_too_many(machine: Machine, nodes: int, ranks: int, threads: int) -> None:
    """Raise Skip where the ranks and their threads need more CPUs than there are."""
    there = cpus_of_nodes(machine, nodes)
    if ranks * threads > there:
        where = "this process may use" if nodes == 1 else f"{nodes} nodes have"
        raise Skip(f"{ranks} ranks of {threads} threads need {ranks * threads} CPUs; {where} {there}")


def placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """The CPU of each thread, rank by rank: a core each as long as the node has cores."""
    return on_each_node(machine, params[NODES_NAME], cpus_of(params), spread)


def cpus_of(params: Params) -> int:
    """How many CPUs the ranks and their threads take; ranks without this parameter have one thread."""
    return whole(params[RANKS_NAME]) * whole(params.get(THREADS_NAME, 1))


def openmp_variables(params: Params) -> Mapping[str, str | None]:
    """The environment in which each rank starts its threads and leaves them on the CPUs that the rank is bound to."""
    return {"OMP_NUM_THREADS": str(whole(params[THREADS_NAME])), **dict.fromkeys(_OVERRIDING)}


def counted_by(application: str) -> tuple[Check, ...]:
    """The checks that the application runs on the requested number of ranks and threads."""
    return (
        Check(RANKS_NAME, f"ranks, as {application} reports", exactly(RANKS_NAME)),
        Check(THREADS_NAME, f"threads per rank, as {application} reports", exactly(THREADS_NAME)),
    )


def edge_for(machine: Machine, smallest: int, atoms_of_a_cube: float, atoms_per_core: float) -> int:
    """The smallest cube, by its edge, that gives each core its share of atoms. It does not depend on the ranks: a
    strong scaling measures one problem."""
    edge, cores = smallest, thread_count(machine, "all")
    while atoms_of_a_cube * edge**3 < atoms_per_core * cores:
        edge += 1
    return edge
