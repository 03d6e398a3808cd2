"""`seatrial.fabric/1`: switches, links and nodes of a fabric as one JSON object."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from seatrial.model.fabric import (
    AdapterKind,
    CapableBasis,
    Fabric,
    FabricAdapter,
    FabricLink,
    FabricSwitch,
    Oversubscription,
    PortDown,
)
from seatrial.model.json_shape import GIVEN, Count, From, Keywords, NonNegative, Positive, Text, filled, shape
from seatrial.report.documents.check import FindingJson

Port = Annotated[int | None, Keywords(minimum=0, maximum=255)]


@shape(FabricSwitch)
class SwitchJson(TypedDict):
    """A switch."""

    id: Text
    name: str
    level: Annotated[int | None, Keywords(minimum=1), "1: a leaf; null: not connected to any leaf."]
    model: Annotated[str | None, "vendor:device, as the dump states them."]


@shape(FabricAdapter)
class AdapterJson(TypedDict):
    """An adapter, or another end of the fabric."""

    id: Text
    name: str
    kind: AdapterKind
    node: Annotated[str | None, "Name of the node; null unless the kind is host."]
    model: str | None


@shape(FabricLink)
class FabricLinkJson(TypedDict):
    """A link that is up; `a` is the end at the higher level. Rates are per direction, after encoding."""

    a: Annotated[Text, From("a.device"), "Id of a switch, a name in `nodes`, or id of an adapter of an unknown node."]
    b: Annotated[Text, From("b.device")]
    a_port: Annotated[Port, From("a.port")]
    b_port: Annotated[Port, From("b.port")]
    adapter: Annotated[
        str | None, GIVEN, "Id of the adapter at `b`; null: `b` is a switch, or the dump names no adapters."
    ]
    width: Annotated[int | None, Keywords(minimum=1), "Lanes."]
    speed: Annotated[str | None, "InfiniBand name of the speed of a lane: SDR to XDR."]
    capable_Bps: Positive | None
    trained_Bps: Positive | None
    capable_basis: Annotated[
        CapableBasis | None, "stated: by the tool; inferred: from other links of the same switches or adapter model."
    ]


@shape(PortDown)
class PortDownJson(TypedDict):
    """A port of a switch or adapter without a link."""

    device: Text
    port: Count
    state: str
    physical: str


@shape(Oversubscription)
class OversubscriptionJson(TypedDict):
    """Bandwidth of the links below a level over that of the links above; null if a rate is unknown."""

    level: Annotated[int, Keywords(minimum=1)]
    ratio: NonNegative | None
    down_Bps: NonNegative | None
    up_Bps: Positive | None
    worst: Annotated[str | None, "Id of the switch with the highest ratio."]
    worst_ratio: NonNegative | None
    why: Annotated[str, "Why the ratio is unknown."]


@shape(None)
class LeafJson(TypedDict):
    """The nodes that are connected to a switch directly."""

    switch: Text
    nodes: list[str]


@shape(None, {"$id": "https://seatrial.dev/schemas/fabric-1.json"})
class FabricJson(TypedDict):
    """A fabric: the output of `seatrial discover --from ibnetdiscover=FILE --format json` (also iblinkinfo and
    slurm-topology). Unknown is null, never 0."""

    schema: Literal["seatrial.fabric/1"]
    sources: list[str]
    switches: list[SwitchJson]
    links: list[FabricLinkJson]
    nodes: Annotated[list[str], "Host names, sorted."]
    oversubscription: Annotated[list[OversubscriptionJson], "One entry for each level but the highest."]
    adapters: list[AdapterJson]
    leaves: list[LeafJson]
    ports_down: list[PortDownJson]
    findings: list[FindingJson]
    facts: Annotated[dict[str, str], "What else the dump states: when it was made, sizes of blocks."]
    unread: Annotated[list[str], "What could not be read and why, one sentence each."]


def fabric_document(fabric: Fabric) -> FabricJson:
    """The fabric as plain JSON values."""
    return FabricJson(
        schema="seatrial.fabric/1",
        sources=list(fabric.sources),
        switches=[filled(SwitchJson, switch) for switch in fabric.switches],
        links=[_link(fabric, link) for link in fabric.links],
        nodes=list(fabric.nodes),
        oversubscription=[filled(OversubscriptionJson, level) for level in fabric.oversubscription],
        adapters=[filled(AdapterJson, adapter) for adapter in fabric.adapters],
        leaves=[{"switch": switch, "nodes": list(nodes)} for switch, nodes in fabric.nodes_of_switch.items()],
        ports_down=[filled(PortDownJson, port) for port in fabric.ports_down],
        findings=[filled(FindingJson, finding) for finding in fabric.findings],
        facts=dict(fabric.facts),
        unread=list(fabric.unread),
    )


def _link(fabric: Fabric, link: FabricLink) -> FabricLinkJson:
    adapter = link.b.device if link.b.device in fabric.adapter_by_id else None
    a, b = fabric.place(link.a.device), fabric.place(link.b.device)
    return filled(FabricLinkJson, link, a=a, b=b, adapter=adapter)
