"""The nodes of a program with MPI ranks: how many there are, which ones of an allocation, and the CPUs of its ranks on
each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value, whole
from seatrial.model.benchmark.program import NODES as NODES_NAME
from seatrial.model.benchmark.program import RANKS, THREADS
from seatrial.model.machine.host_list import expand_hosts, fold_hosts
from seatrial.model.machine.machine import Allocation, Machine, Node

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
    return tuple(node.machine for node in allocation.first(nodes))


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
    used = machine.allocation.first(nodes)
    is_here = nodes == 1 and used[0].machine.name == machine.name
    return () if is_here else tuple(node.name for node in used)


T = TypeVar("T")
"""A node, or its name."""

PACKED, SCATTERED, SAME_SWITCH, ACROSS_SWITCHES = "packed", "scattered", "same-switch", "across-switches"

NODE_PLACEMENT = Parameter.text(
    "node_placement",
    "auto",
    "which nodes of the allocation; packed: as few as have a CPU for each rank (with `nodes`: below as few switches as "
    "possible); scattered: as many as possible (with `nodes`: below as many switches); same-switch: below one leaf "
    "switch; across-switches: below several, equally many below each; or a list of nodes such as n[1-2]+n4; auto: in "
    "the order of the batch system. Only the given one is recorded",
    ("auto", PACKED, SCATTERED, SAME_SWITCH, ACROSS_SWITCHES),
)


def on_placed_nodes(machine: Machine, params: Params) -> tuple[Machine, Params]:
    """The machine with the nodes that `node_placement` chooses, in their order, as its allocation, and the parameters
    with the number of nodes that follows; without `node_placement` where it is not given.

    Raises Skip if the allocation has no such nodes, UsageError for a list that is not valid or contradicts `nodes`.
    """
    placement = params.get(NODE_PLACEMENT.name, "auto")
    if placement == "auto":
        return machine, {name: value for name, value in params.items() if name != NODE_PLACEMENT.name}
    allocation = machine.allocation
    if allocation is None:
        raise Skip(f"node_placement={placement} chooses among the nodes of an allocation; this is one node")
    if placement in NODE_PLACEMENT.words:
        chosen = _placed(str(placement), allocation, machine, params)
    else:
        chosen = _listed(str(placement), allocation)
        if params[NODES_NAME] not in ("all", len(chosen)):
            raise UsageError(
                f"nodes={params[NODES_NAME]} and node_placement={placement} contradict each other",
                "set only one of them",
            )
    return replace(machine, allocation=replace(allocation, nodes=chosen, order=())), {**params, NODES_NAME: len(chosen)}


def listed_nodes(text: str) -> tuple[str, ...]:
    """The names in a list such as n[1-2]+n4. Raises UsageError."""
    try:
        names = expand_hosts(text.replace("+", ","))
    except ValueError as error:
        raise UsageError(f"node_placement: {error}", "list nodes as Slurm does, joined by +: n[1-4]+login1") from None
    if len(set(names)) < len(names):
        raise UsageError(f"node_placement={text} names a node twice", "name each once")
    return tuple(names)


def _listed(text: str, allocation: Allocation) -> tuple[Node, ...]:
    names = listed_nodes(text)
    nodes = {node.name: node for node in allocation.nodes}
    missing = [name for name in names if name not in nodes]
    if missing:
        left_out = [f"{one.name} is left out ({one.why})" for one in allocation.left_out if one.name in missing]
        why = "; ".join(left_out) or f"{allocation.source} has {fold_hosts(nodes)}"
        raise Skip(f"node_placement: {', '.join(missing)} cannot be used: {why}")
    return tuple(nodes[name] for name in names)


def _placed(placement: str, allocation: Allocation, machine: Machine, params: Params) -> tuple[Node, ...]:
    by_switch = _by_switch(allocation.in_order)
    if placement in (SAME_SWITCH, ACROSS_SWITCHES) and None in by_switch:
        unknown = ", ".join(node.name for node in by_switch[None][:4])
        raise Skip(
            f"node_placement={placement}: the switches of {unknown} are unknown; Slurm states them if its "
            "topology.conf does"
        )
    switches = list(by_switch.values())
    largest = max(map(len, switches))
    if placement == SAME_SWITCH:
        return below_few(switches, _wanted(params, largest, "as many nodes below one switch", most=True))
    if placement == ACROSS_SWITCHES:
        if len(switches) < 2:
            raise Skip(f"node_placement={placement}: all nodes of {allocation.source} are below one switch")
        least = min(map(len, switches))
        wanted = _wanted(params, least * len(switches), "as many nodes, equally below each switch", most=True)
        if wanted < 2:
            raise Skip(f"node_placement={placement} needs two nodes")
        return below_many(switches, wanted)
    wanted = _wanted(params, len(allocation.nodes), allocation.shortage, most=placement == SCATTERED, on=machine)
    return below_many(switches, wanted) if placement == SCATTERED else below_few(switches, wanted)


def _by_switch(nodes: Sequence[Node]) -> dict[str | None, list[Node]]:
    """Leaf switch -> its nodes, in the order of the allocation."""
    found: dict[str | None, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.switch, []).append(node)
    return found


def _wanted(params: Params, there: int, what: str, *, most: bool, on: Machine | None = None) -> int:
    """The number of nodes: as given, or the most (else fewest) that the ranks fill evenly. Raises Skip."""
    each, ranks = params.get(RANKS_PER_NODE.name, "auto"), params[RANKS]
    nodes = params[NODES_NAME]
    if nodes == "all" and each != "auto" and isinstance(ranks, int):
        nodes = whole(ranks) // whole(each)
    if nodes != "all":
        if whole(nodes) > there:
            raise Skip(f"nodes={nodes}: there are not {what} ({there})")
        return whole(nodes)
    if not isinstance(ranks, int):
        if not most:
            raise Skip("node_placement=packed needs a number of ranks: set `ranks` or `nodes`")
        return there
    counts = [n for n in range(1, min(there, ranks) + 1) if ranks % n == 0]
    if most or on is None or on.allocation is None:
        return counts[-1]
    threads = params.get(THREADS, 1)
    cpus = ranks * (threads if isinstance(threads, int) else 1)
    fewest = min(len(node.machine.allowed_cpus) for node in on.allocation.nodes)
    return next((n for n in counts if cpus <= n * fewest), counts[-1])


def below_few(switches: Sequence[Sequence[T]], wanted: int) -> tuple[T, ...]:
    """Nodes below as few switches as possible: the first that has enough, else the largest first."""
    enough = [nodes for nodes in switches if len(nodes) >= wanted]
    order = enough[:1] or sorted(switches, key=len, reverse=True)
    return tuple([node for nodes in order for node in nodes][:wanted])


def equally_below(switches: Sequence[Sequence[T]], wanted: int) -> tuple[T, ...] | None:
    """Equally many nodes below each of as many switches as possible, at least two; None if there are no such nodes."""
    largest = sorted(switches, key=len, reverse=True)
    for count in range(min(len(switches), wanted), 1, -1):
        if wanted % count == 0 and len(largest[count - 1]) >= wanted // count:
            return tuple(node for nodes in largest[:count] for node in nodes[: wanted // count])
    return None


def below_many(switches: Sequence[Sequence[T]], wanted: int) -> tuple[T, ...]:
    """Nodes below as many switches as possible, switch by switch: with an even number, the first half of the ranks and
    the second are below different ones."""
    taken = [0] * len(switches)
    while sum(taken) < wanted:
        for at, nodes in enumerate(switches):
            if sum(taken) < wanted and taken[at] < len(nodes):
                taken[at] += 1
    return tuple(node for count, nodes in zip(taken, switches, strict=True) for node in nodes[:count])
