"""`node_placement` under `--system`: said to the batch system before its job has any nodes.

Nodes below one switch are a request to Slurm (`--switches=1`), which then chooses any that are free. All other
placements become a list of nodes, chosen here from those of the partition and their switches, free ones first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.benchmarks.nodes import (
    ACROSS_SWITCHES,
    NODE_PLACEMENT,
    PACKED,
    SAME_SWITCH,
    SCATTERED,
    below_few,
    below_many,
    equally_below,
    listed_nodes,
)
from seatrial.errors import UsageError
from seatrial.jobs.batch.slurm import nodes_command, read_idle, read_nodes, read_topology, topology_command
from seatrial.jobs.queue import Queue, Where
from seatrial.jobs.request import Portion, nodes_of
from seatrial.model.frozen import Frozen
from seatrial.model.machine.host_list import fold_hosts
from seatrial.plan.points import Point

_ORDER = (ACROSS_SWITCHES, SCATTERED, SAME_SWITCH, PACKED)
"""Lists come first. Nodes below one switch are then found among those that are spread."""


def with_placed_nodes(portion: Portion, where: Where, queue: Queue) -> Portion:
    """The portion with the nodes that its job must have for every `node_placement` in it.

    Raises UsageError for what the batch system does not take, or what the partition does not have; QueueError.
    """
    placed = [point for point in portion.points if _placement(point) != "auto"]
    if not placed or where.node is not None:
        return portion
    names = sorted({_placement(point) for point in placed})
    if not where.batch.chooses_nodes:
        raise UsageError(
            f"node_placement={', '.join(names)}: seatrial does not choose nodes of {where.batch.name} ({where.text})",
            "run it inside an allocation, where node_placement chooses among its nodes, or leave it out",
        )
    for point in placed:
        if _placement(point) in NODE_PLACEMENT.words and nodes_of(point) < 2:
            raise UsageError(
                f"{point.benchmark.name}: node_placement={_placement(point)} in a job needs the number of nodes",
                "set nodes to 2 or more",
            )
    if set(names) == {SAME_SWITCH}:
        return replace(portion, switches=1)
    chosen = _Partition.of(where, queue).chosen_for(placed, portion.nodes)
    return replace(portion, nodes=len(chosen), node_list=chosen)


def _placement(point: Point) -> str:
    return str(point.parameters.get(NODE_PLACEMENT.name, "auto"))


class _Partition(Frozen):
    """The nodes of a partition that are up, free ones first, and the leaf switch of each."""

    text: str
    nodes: tuple[str, ...]
    idle: frozenset[str]
    switch_of: Mapping[str, str]

    @classmethod
    def of(cls, where: Where, queue: Queue) -> _Partition:
        """As the batch system has them now."""
        said = queue.ask(nodes_command(where.options.queue or ""))
        idle = read_idle(said)
        nodes = sorted(read_nodes(said)[0], key=lambda node: node not in idle)
        return cls(where.text, tuple(nodes), idle, read_topology(queue.ask(topology_command())))

    def chosen_for(self, points: Sequence[Point], at_least: int) -> tuple[str, ...]:
        """The nodes of a job that has those for each of these points."""
        chosen: dict[str, None] = {}
        wanted = sorted({(_placement(point), nodes_of(point)) for point in points}, key=lambda one: (_rank(one), one))
        for placement, number in wanted:
            chosen |= dict.fromkeys(self._chosen(placement, number, chosen))
        if at_least > len(self.nodes):
            raise UsageError(f"{self.text} has {len(self.nodes)} nodes that are up, not {at_least}", "use fewer nodes")
        others = iter(node for node in self.nodes if node not in chosen)
        while len(chosen) < at_least:
            chosen[next(others)] = None
        return tuple(chosen)

    def _chosen(self, placement: str, number: int, before: Iterable[str]) -> Sequence[str]:
        """The nodes of one placement, those that were chosen `before` first."""
        if placement not in NODE_PLACEMENT.words:
            names = listed_nodes(placement)
            if missing := [name for name in names if name not in self.nodes]:
                raise UsageError(
                    f"node_placement={placement}: {', '.join(missing)} cannot be used: {self.text} has "
                    f"{fold_hosts(self.nodes)} that are up",
                    "name nodes of the partition: sinfo shows them",
                )
            return names
        first = set(before)
        by_switch: dict[str | None, list[str]] = {}
        for node in sorted(self.nodes, key=lambda node: node not in first):
            by_switch.setdefault(self.switch_of.get(node), []).append(node)
        switches = list(by_switch.values())
        if placement in (SAME_SWITCH, ACROSS_SWITCHES) and None in by_switch:
            raise UsageError(
                f"node_placement={placement}: the switches of {fold_hosts(by_switch[None])} are unknown",
                "Slurm states them if its topology.conf does: scontrol show topology",
            )
        found: Sequence[str] | None
        if placement == SAME_SWITCH:
            enough = [nodes[:number] for nodes in switches if len(nodes) >= number]
            found = min(enough, key=lambda own: (len({*own} - first - self.idle), len({*own} - first)), default=None)
        elif placement == ACROSS_SWITCHES:
            found = equally_below(switches, number)
        elif number > len(self.nodes):
            found = None
        else:
            found = below_many(switches, number) if placement == SCATTERED else below_few(switches, number)
        if found is None:
            there = ", ".join(f"{name}: {len(nodes)}" for name, nodes in by_switch.items())
            raise UsageError(
                f"nodes={number} node_placement={placement}: {self.text} has no such nodes (nodes below its switches: "
                f"{there})",
                "use fewer nodes, or another placement",
            )
        return found


def _rank(wanted: tuple[str, int]) -> tuple[int, int]:
    placement, number = wanted
    return _ORDER.index(placement) + 1 if placement in _ORDER else 0, -number
