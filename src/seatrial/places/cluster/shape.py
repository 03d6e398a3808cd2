"""The shape of a cluster: its nodes, switches and links, with addresses and CPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from seatrial.errors import UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, key

MOST_NODES = 512
"""A Linux bridge has at most 1024 ports, and each node has its own slurmd."""
HEAD = "head"
"""The name of the node with the controller of Slurm; it is connected to the top switch, without a limit of its rate."""
HEAD_ADDRESS = "10.101.255.254"
PREFIX_BITS = 16
SPINE, SWITCH = "spine", "switch"


class Link(Frozen):
    """What is asked of a link: B/s in each direction, and the delay in seconds that it adds in each direction."""

    rate_Bps: float
    delay_s: float = 0.0


class Tree(Frozen):
    """Leaf switches of equally many nodes, below one spine. `ratio`: the rates of a leaf's nodes together, over the
    rate of its uplink."""

    leaves: int
    nodes_per_leaf: int
    ratio: float


class NodeSettings(Frozen):
    """What is asked of one node besides its link, None: the same as of the others. `quota`: the share of its CPUs that
    it may use."""

    link: Link | None = None
    quota: float | None = None
    memory_B: int | None = None
    cpus: int | None = None


class Node(Frozen):
    """A node.

    `switch` is the one that its link leads to.
    """

    number: Count
    switch: str
    link: Link
    cpus: tuple[int, ...]
    quota: Annotated[float | None, "the share of the time of its CPUs that it may use; null: all"] = None
    memory_B: Annotated[int | None, "null: not limited"] = None

    @property
    @key
    def name(self) -> str:
        """Its host name."""
        return f"n{self.number}"

    @property
    @key
    def address(self) -> str:
        """Its IPv4 address."""
        return f"10.101.{self.number >> 8}.{self.number & 255}"


class Switch(Frozen):
    """A switch; `uplink` is its link to the switch above, None for the top one."""

    name: str
    above: str | None = None
    uplink: Link | None = None


class Shape(Frozen):
    """A whole cluster, the top switch first."""

    nodes: tuple[Node, ...]
    switches: tuple[Switch, ...]
    ratio: float | None = None

    def below(self, switch: str) -> tuple[Node, ...]:
        """The nodes whose links lead to this switch."""
        return tuple(node for node in self.nodes if node.switch == switch)


class Wanted(Frozen):
    """What `seatrial cluster up` was asked for. `nodes` None: as the tree says. `cpus`: of each node; None: an equal
    part of this machine's. `changed` and `uplinks` are by the number of the node or leaf switch, from 1."""

    nodes: int | None
    link: Link
    tree: Tree | None = None
    cpus: int | None = None
    changed: Mapping[int, NodeSettings] = {}
    uplinks: Mapping[int, Link] = {}


def shape_of(wanted: Wanted, host_cpus: Sequence[int]) -> Shape:
    """The cluster that is asked for, on a machine with these CPUs. Raises UsageError if its parts do not agree."""
    count = _count(wanted)
    leaves = [SWITCH] if wanted.tree is None else [f"leaf{k + 1}" for k in range(wanted.tree.leaves)]
    _check_numbers("--node", "nodes", wanted.changed, count)
    _check_numbers("--switch", "leaf switches", wanted.uplinks, 0 if wanted.tree is None else len(leaves))
    each = count // len(leaves)
    usual = wanted.cpus or max(1, len(host_cpus) // count)
    nodes, taken = [], 0
    for k in range(count):
        own = wanted.changed.get(k + 1, NodeSettings())
        cpus = own.cpus or usual
        if cpus > len(host_cpus):
            raise UsageError(f"n{k + 1} cannot have {cpus} CPUs", f"this machine has {len(host_cpus)}")
        used = tuple(sorted(host_cpus[(taken + i) % len(host_cpus)] for i in range(cpus)))
        taken += cpus
        nodes.append(Node(k + 1, leaves[k // each], own.link or wanted.link, used, own.quota, own.memory_B))
    return Shape(tuple(nodes), _switches(wanted, leaves), None if wanted.tree is None else wanted.tree.ratio)


def _count(wanted: Wanted) -> int:
    tree = wanted.tree
    of_tree = None if tree is None else tree.leaves * tree.nodes_per_leaf
    count = of_tree if wanted.nodes is None else wanted.nodes
    if count is None:
        raise UsageError("the number of nodes is missing", "give --nodes N, or --tree SHAPE,RATIO such as 2x2,4:1")
    if of_tree is not None and count != of_tree and tree is not None:
        raise UsageError(
            f"--nodes {count} and --tree {tree.leaves}x{tree.nodes_per_leaf} contradict each other: "
            f"the tree has {of_tree} nodes",
            "leave out --nodes",
        )
    if not 1 <= count <= MOST_NODES:
        raise UsageError(f"a cluster cannot have {count} nodes", f"1 to {MOST_NODES} are possible")
    return count


def _switches(wanted: Wanted, leaves: Sequence[str]) -> tuple[Switch, ...]:
    tree = wanted.tree
    if tree is None:
        return (Switch(SWITCH),)
    usual = Link(wanted.link.rate_Bps * tree.nodes_per_leaf / tree.ratio)
    return (
        Switch(SPINE),
        *(Switch(name, SPINE, wanted.uplinks.get(k + 1, usual)) for k, name in enumerate(leaves)),
    )


def _check_numbers(option: str, what: str, given: Mapping[int, object], count: int) -> None:
    for number in given:
        if not 1 <= number <= count:
            there = f"the cluster has {what} 1 to {count}" if count else f"the cluster has no {what} without --tree"
            raise UsageError(f"{option} {number} does not exist", there)
