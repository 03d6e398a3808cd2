"""`seatrial.cluster/1`: the cluster on this machine as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.json_object import filled
from seatrial.model.json_shape import GIVEN, Count, From, Json, NonNegative, Positive, shape, view
from seatrial.places.cluster.home import Obtained, State
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, Link, Node, Switch
from seatrial.places.cluster.status import Condition, Status


@view(Obtained)
class ClusterLinkJson(TypedDict):
    """A link: what was asked, and what was measured when the cluster came up (null: not measured). Rates are those of
    TCP's payload, which headers leave up to 95 % of the link's rate."""

    asked_Bps: Annotated[Positive, GIVEN, "in each direction"]
    asked_delay_s: Annotated[NonNegative, GIVEN, "in each direction"]


@shape(None)
class ClusterProcessJson(TypedDict):
    """A process that keeps the node."""

    role: Annotated[str, "namespaces (which keeps them alive), munged, slurmctld or slurmd"]
    pid: Count
    running: bool


@view(Node)
class ClusterNodeJson(TypedDict):
    """A node."""

    slurm: Annotated[str | None, GIVEN, "its state in Slurm; null: unknown"]
    processes: Annotated[list[ClusterProcessJson], GIVEN]
    link: Annotated[ClusterLinkJson, GIVEN]


@view(Switch)
class ClusterSwitchJson(TypedDict):
    """A switch, and its link to the switch above it; null: it is the top one."""

    uplink: Annotated[ClusterLinkJson | None, GIVEN]


@shape(None)
class ClusterHeadJson(TypedDict):
    """The node with the controller of Slurm, on the top switch."""

    name: str
    address: str
    processes: list[ClusterProcessJson]


@shape(Status)
class ClusterJson(TypedDict):
    """The cluster on this machine. `incomplete`: it did not come up, or a process of it has ended."""

    schema: Literal["seatrial.cluster/1"]
    folder: Annotated[str, From(lambda found: str(found.folder))]
    state: Annotated[Condition, From("condition")]
    oversubscription: Annotated[
        float | None, From("state.shape.ratio"), "the nodes of a leaf switch together, over its uplink, as asked"
    ]
    head: Annotated[ClusterHeadJson | None, GIVEN]
    nodes: Annotated[list[ClusterNodeJson], GIVEN]
    switches: Annotated[list[ClusterSwitchJson], GIVEN]


def cluster_document(found: Status) -> Json:
    """The document."""
    if (state := found.state) is None:
        return filled(ClusterJson, found, head=None, nodes=[], switches=[])
    return filled(
        ClusterJson,
        found,
        head={"name": HEAD, "address": HEAD_ADDRESS, "processes": _processes(found, state, HEAD)},
        nodes=[
            filled(
                ClusterNodeJson,
                node,
                slurm=found.slurm.get(node.name),
                processes=_processes(found, state, node.name),
                link=_link(node.link, state, node.name),
            )
            for node in state.shape.nodes
        ],
        switches=[
            filled(ClusterSwitchJson, one, uplink=one.uplink and _link(one.uplink, state, one.name))
            for one in state.shape.switches
        ],
    )


def _link(asked: Link, state: State, end: str) -> Json:
    obtained = state.obtained.get(end, Obtained())
    return filled(ClusterLinkJson, obtained, asked_Bps=asked.rate_Bps, asked_delay_s=asked.delay_s)


def _processes(found: Status, state: State, node: str) -> list[Json]:
    return [
        {"role": role, "pid": pid, "running": (node, role) in found.running}
        for role, pid in state.processes[node].items()
    ]
