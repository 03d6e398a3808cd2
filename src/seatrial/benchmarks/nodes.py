"""The nodes of a program with MPI ranks: how many there are, and the CPUs of its ranks on each."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import NODES as NODES_NAME
from seatrial.model.benchmark.program import RANKS
from seatrial.model.machine.machine import Machine

NODES = Parameter.integer(
    NODES_NAME,
    "all",
    "nodes that the ranks run on, with equally many on each; all: those of the allocation (without one, this node), or "
    "as many as divide the number of ranks",
    minimum=1,
)


RANKS_PER_NODE = Parameter.integer(
    "ranks_per_node",
    "auto",
    "ranks on each node; auto: as `ranks` and `nodes` say. Only the given one is recorded",
    minimum=1,
)


def with_ranks_per_node(machine: Machine, params: Params) -> Params:
    """The parameters with the `ranks` and `nodes` that follow from `ranks_per_node`, where it is given; without it
    otherwise. Raises Skip if there are fewer nodes, UsageError if the three contradict each other."""
    each = params.get(RANKS_PER_NODE.name, "auto")
    if each == "auto":
        return {name: value for name, value in params.items() if name != RANKS_PER_NODE.name}
    per_node, ranks, nodes = whole(each), params[RANKS], params[NODES_NAME]
    if ranks == "all":
        count = node_count(machine, nodes)
        return {**params, RANKS: count * per_node, NODES_NAME: count}
    if whole(ranks) % per_node or nodes not in ("all", whole(ranks) // per_node):
        given = "" if nodes == "all" else f", nodes={nodes}"
        raise UsageError(
            f"ranks={ranks}{given} and ranks_per_node={each} contradict each other", "set only two of them"
        )
    return {**params, NODES_NAME: whole(ranks) // per_node}


def node_count(machine: Machine, nodes: Value, ranks: int | None = None) -> int:
    """The number of nodes; `ranks` is that of all ranks together, None if it follows from the nodes.

    Raises Skip if there are fewer nodes, or if the ranks do not fill them evenly.
    """
    allocation = machine.allocation
    there = 1 if allocation is None else len(allocation.nodes)
    if nodes == "all":
        return there if ranks is None else max(n for n in range(1, min(there, ranks) + 1) if ranks % n == 0)
    count = whole(nodes)
    if allocation is None and count > 1:
        raise Skip("ranks on several nodes need a batch system's allocation; this is one node")
    if allocation is not None and count > there:
        raise Skip(f"nodes={count}: {allocation.shortage}")
    if ranks is not None and ranks % count:
        raise Skip(f"nodes={count}: {ranks} ranks do not fill {count} nodes evenly")
    return count


def machines_of(machine: Machine, nodes: int) -> tuple[Machine, ...]:
    """The machines of the first nodes, so many."""
    allocation = machine.allocation
    if allocation is None:
        return (machine,) * nodes
    return tuple(node.machine for node in allocation.nodes[:nodes])


def cpus_of_nodes(machine: Machine, nodes: int) -> int:
    """The number of CPUs of that many nodes, each with as many as the one with the fewest."""
    return nodes * min(len(one.allowed_cpus) for one in machines_of(machine, nodes))


def on_each_node(
    machine: Machine, nodes: Value, count: int, cpus: Callable[[Machine, int], tuple[int, ...]]
) -> tuple[int, ...]:
    """The CPUs of `count` threads or ranks in all: the ones that `cpus` finds for its share of them on each node."""
    machines = machines_of(machine, whole(nodes))
    return tuple(cpu for one in machines for cpu in cpus(one, count // len(machines)))


def hosts_of(machine: Machine, params: Params) -> tuple[str, ...]:
    """The names of the nodes of resolved parameters; empty if all ranks are on this node."""
    nodes = params.get(NODES_NAME, 1)
    if machine.allocation is None or not isinstance(nodes, int):
        return ()
    used = machine.allocation.nodes[:nodes]
    is_here = nodes == 1 and used[0].machine.name == machine.name
    return () if is_here else tuple(node.name for node in used)
