"""The nodes that ranks can be started on: those of a batch system's allocation, or hosts that the site file names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.model.frozen import Frozen

if TYPE_CHECKING:
    from seatrial.model.machine import Machine


class Node(Frozen):
    """A node: `name` as launchers take it, which may not be its host name; `machine` what it is; `switch` the leaf
    switch that it is below, None if that is unknown."""

    name: str
    machine: Machine
    switch: str | None = None


class LeftOut(Frozen):
    """A node that is not used, and why."""

    name: str
    why: str


class Allocation(Frozen):
    """`source` is what gave the nodes, for messages ("Slurm job 12"). `nodes` are alike, and this one is the first."""

    source: str
    nodes: tuple[Node, ...]
    left_out: tuple[LeftOut, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the nodes, in their order."""
        return tuple(node.name for node in self.nodes)

    @property
    def shortage(self) -> str:
        """Why there are not more nodes, for messages."""
        words = f"{self.source} has {len(self.nodes)} like this one"
        if self.left_out:
            words += "; left out: " + "; ".join(f"{one.name} ({one.why})" for one in self.left_out)
        return words
