"""The cluster and the guest on this machine, and an image that was made, as JSON objects: `seatrial.cluster/1`,
`seatrial.vm/1` and `seatrial.image/1`."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.environment.image import ImageFormat, ImageProgram, Package
from seatrial.model.json_object import filled
from seatrial.model.json_shape import GIVEN, Count, From, Json, Keywords, NonNegative, Positive, shape, view
from seatrial.model.machine.guest import GuestDevice, GuestNode, GuestPart
from seatrial.places.cluster.shape import HEAD, HEAD_ADDRESS, ClusterState, LinkShape, NodeShape, Obtained, Switch
from seatrial.places.cluster.status import Condition, Status
from seatrial.places.guest.home import GuestState
from seatrial.places.guest.up import Condition as GuestCondition
from seatrial.places.guest.up import GuestStatus
from seatrial.places.images.make import MadeImage


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


@view(NodeShape)
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
        head={"name": HEAD, "address": HEAD_ADDRESS, "processes": _cluster_processes(found, state, HEAD)},
        nodes=[
            filled(
                ClusterNodeJson,
                node,
                slurm=found.slurm.get(node.name),
                processes=_cluster_processes(found, state, node.name),
                link=_cluster_link(node.link, state, node.name),
            )
            for node in state.shape.nodes
        ],
        switches=[
            filled(ClusterSwitchJson, one, uplink=one.uplink and _cluster_link(one.uplink, state, one.name))
            for one in state.shape.switches
        ],
    )


def _cluster_link(asked: LinkShape, state: ClusterState, end: str) -> Json:
    obtained = state.obtained.get(end, Obtained())
    return filled(ClusterLinkJson, obtained, asked_Bps=asked.rate_Bps, asked_delay_s=asked.delay_s)


def _cluster_processes(found: Status, state: ClusterState, node: str) -> list[Json]:
    return [
        {"role": role, "pid": pid, "running": (node, role) in found.running}
        for role, pid in state.processes[node].items()
    ]


@shape(GuestDevice)
class GuestDeviceJson(TypedDict):
    """A PCIe device. `behind_switch`: the position of its switch among the devices; null: it is on a root port."""

    kind: Annotated[str, Keywords(enum=[kind.value for kind in GuestPart]), From(lambda device: device.kind.value)]
    node: Count
    size_B: Annotated[int | None, "of the drive or memory; null: it has none"]
    functions: Annotated[int, "SR-IOV virtual functions"]
    behind_switch: Annotated[int | None, GIVEN]


@shape(GuestStatus)
class GuestJson(TypedDict):
    """The guest on this machine. `incomplete`: it did not come up, or it has ended."""

    schema: Literal["seatrial.vm/1"]
    folder: Annotated[str, From(lambda found: str(found.folder))]
    state: Annotated[GuestCondition, From("condition")]
    accelerator: Annotated[
        Literal["kvm", "tcg"] | None,
        From("state.accelerator"),
        "tcg: its processors are emulated, and no time means anything",
    ]
    why_emulated: Annotated[str | None, From(lambda found: (found.state and found.state.why_emulated) or None)]
    kernel: Annotated[str | None, From("state.kernel")]
    boot_s: Annotated[NonNegative | None, From("state.boot_s"), "until it ran a command"]
    threads: Annotated[int | None, From("state.topology.threads"), "hardware threads of a core"]
    nodes: Annotated[list[GuestNode], From(lambda found: found.state.topology.nodes if found.state else ())]
    distances: Annotated[list[list[int]] | None, From("state.topology.distances")]
    devices: Annotated[list[GuestDeviceJson], From(lambda found: _guest_devices(found.state))]
    console: Annotated[str, "the last lines that an incomplete guest printed"]


def guest_document(found: GuestStatus) -> Json:
    """The document."""
    return filled(GuestJson, found)


def _guest_devices(state: GuestState | None) -> list[Json]:
    made: list[Json] = []
    for device in state.topology.devices if state else ():
        position = len(made)
        made.append(filled(GuestDeviceJson, device, behind_switch=None))
        made += [filled(GuestDeviceJson, below, node=device.node, behind_switch=position) for below in device.below]
    return made


@shape(None)
class ImageJson(TypedDict):
    """A container image that was made."""

    schema: Literal["seatrial.image/1"]
    path: str
    format: ImageFormat
    digest: Annotated[str, "SHA-256 of the file; of an OCI archive, of its manifest; of a folder, its `content`"]
    content: Annotated[str, "SHA-256 of files, permissions, owners and times: the same in every format"]
    definition: Annotated[str, "SHA-256 of the definition file"]
    base: str
    architecture: Annotated[str, "as Debian and OCI name it: amd64, arm64"]
    epoch_s: Annotated[Count, "the latest time of a file in it, in seconds since 1970"]
    size_B: Annotated[Count, "of the file; of a folder, of the files in it"]
    files: Count
    packages: Annotated[list[Package] | None, "null: it has a package manager other than dpkg"]
    variables: dict[str, str]
    programs: Annotated[list[ImageProgram], "measuring programs that were compiled inside"]
    dropped_setuid: Annotated[Count, "files of the base whose setuid and setgid bits were dropped"]


def image_document(made: MadeImage) -> Json:
    """The document."""
    own = {"path": str(made.path), "format": made.format, "digest": made.digest, "size_B": made.size_B}
    return filled(ImageJson, made.facts, **own)
