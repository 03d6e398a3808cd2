"""`seatrial.cluster/1`: the cluster on this machine as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.json_shape import Count, Finite, NonNegative, Positive, shape
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, Link, Node, Switch
from seatrial.places.cluster.state import Obtained, State
from seatrial.places.cluster.status import Condition, Status


@shape(None)
class ClusterLinkJson(TypedDict):
    """A link: what was asked, and what was measured when the cluster came up (null: not measured). Rates are those of
    TCP's payload, which headers leave up to 95 % of the link's rate."""

    asked_Bps: Annotated[Positive, "in each direction"]
    asked_delay_s: Annotated[NonNegative, "in each direction"]
    out_Bps: Annotated[Finite, "away from the node or leaf switch"]
    in_Bps: Annotated[Finite, "towards it"]
    round_trip_s: Annotated[Finite, "of one byte, to the node at the other end and back"]
    against: Annotated[list[str], "the nodes at the other end"]


@shape(None)
class ClusterProcessJson(TypedDict):
    """A process that keeps the node."""

    role: Annotated[str, "namespaces (which keeps them alive), munged, slurmctld or slurmd"]
    pid: Count
    running: bool


@shape(None)
class ClusterNodeJson(TypedDict):
    """A node."""

    name: str
    number: Count
    address: str
    switch: str
    cpus: list[int]
    quota: Annotated[float | None, "the share of the time of its CPUs that it may use; null: all"]
    memory_B: Annotated[int | None, "null: not limited"]
    slurm: Annotated[str | None, "its state in Slurm; null: unknown"]
    processes: list[ClusterProcessJson]
    link: ClusterLinkJson


@shape(None)
class ClusterSwitchJson(TypedDict):
    """A switch, and its link to the switch above it; null: it is the top one."""

    name: str
    above: str | None
    uplink: ClusterLinkJson | None


@shape(None)
class ClusterHeadJson(TypedDict):
    """The node with the controller of Slurm, on the top switch."""

    name: str
    address: str
    processes: list[ClusterProcessJson]


@shape(None)
class ClusterJson(TypedDict):
    """The cluster on this machine. `incomplete`: it did not come up, or a process of it has ended."""

    schema: Literal["seatrial.cluster/1"]
    folder: str
    state: Condition
    oversubscription: Annotated[float | None, "the nodes of a leaf switch together, over its uplink, as asked"]
    head: ClusterHeadJson | None
    nodes: list[ClusterNodeJson]
    switches: list[ClusterSwitchJson]


def cluster_document(found: Status) -> ClusterJson:
    """The document."""
    state = found.state
    return ClusterJson(
        schema="seatrial.cluster/1",
        folder=str(found.folder),
        state=found.condition,
        oversubscription=None if state is None else state.shape.ratio,
        head=None
        if state is None
        else ClusterHeadJson(name=HEAD, address=HEAD_ADDRESS, processes=_processes(found, state, HEAD)),
        nodes=[] if state is None else [_node(found, state, node) for node in state.shape.nodes],
        switches=[] if state is None else [_switch(state, switch) for switch in state.shape.switches],
    )


def _node(found: Status, state: State, node: Node) -> ClusterNodeJson:
    return ClusterNodeJson(
        name=node.name,
        number=node.number,
        address=node.address,
        switch=node.switch,
        cpus=list(node.cpus),
        quota=node.quota,
        memory_B=node.memory_B,
        slurm=found.slurm.get(node.name),
        processes=_processes(found, state, node.name),
        link=_link(node.link, state.obtained.get(node.name, Obtained())),
    )


def _switch(state: State, switch: Switch) -> ClusterSwitchJson:
    obtained = state.obtained.get(switch.name, Obtained())
    uplink = None if switch.uplink is None else _link(switch.uplink, obtained)
    return ClusterSwitchJson(name=switch.name, above=switch.above, uplink=uplink)


def _link(asked: Link, obtained: Obtained) -> ClusterLinkJson:
    return ClusterLinkJson(
        asked_Bps=asked.rate_Bps,
        asked_delay_s=asked.delay_s,
        out_Bps=obtained.out_Bps,
        in_Bps=obtained.in_Bps,
        round_trip_s=obtained.round_trip_s,
        against=list(obtained.against),
    )


def _processes(found: Status, state: State, node: str) -> list[ClusterProcessJson]:
    return [
        ClusterProcessJson(role=role, pid=pid, running=(node, role) in found.running)
        for role, pid in state.processes[node].items()
    ]
