"""`seatrial.check/1`, findings and bindings; and `seatrial.fabric/1`, the switches, links and nodes of a fabric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.analysis.rank_layout import Binding, RankLayout
from seatrial.model.json_object import filled
from seatrial.model.json_shape import GIVEN, OPEN, From, Json, Keywords, Text, shape, view
from seatrial.model.machine.fabric import (
    Fabric,
    FabricAdapter,
    FabricLink,
    FabricSwitch,
    Oversubscription,
    PortCounters,
    PortDown,
)
from seatrial.model.machine.fact import Finding


@shape(None, OPEN)
class CheckJson(TypedDict):
    """The problems of a machine, and how to bind programs next to its devices. Unknown values are null."""

    schema: Literal["seatrial.check/1"]
    findings: list[Finding]
    bindings: list[Binding]
    layouts: NotRequired[Annotated[list[RankLayout], "present if a layout was requested"]]


def check_document(findings: Sequence[Finding], bindings: Sequence[Binding], layout: RankLayout | None = None) -> Json:
    """The document of CONTRACT, with the findings in their order.

    In addition to the contract: `loss` and `causes` of a finding, `srun` and `mpich` of a binding, and `layouts`.
    """
    layouts = {} if layout is None else {"layouts": [layout]}
    return filled(CheckJson, None, findings=findings, bindings=bindings, **layouts)


Port = Annotated[int | None, Keywords(minimum=0, maximum=255)]


@view(FabricLink)
class FabricLinkJson(TypedDict):
    """A link that is up; `a` is the end at the higher level. Rates are per direction, after encoding."""

    a: Annotated[Text, From("a.device"), "Id of a switch, a name in `nodes`, or id of an adapter of an unknown node."]
    b: Annotated[Text, From("b.device")]
    a_port: Annotated[Port, From("a.port")]
    b_port: Annotated[Port, From("b.port")]
    adapter: Annotated[
        str | None, GIVEN, "Id of the adapter at `b`; null: `b` is a switch, or the dump names no adapters."
    ]


@shape(None)
class LeafJson(TypedDict):
    """The nodes that are connected to a switch directly."""

    switch: Text
    nodes: list[str]


def _links(fabric: Fabric) -> list[Json]:
    return [
        filled(
            FabricLinkJson,
            link,
            a=fabric.place(link.a.device),
            b=fabric.place(link.b.device),
            adapter=link.b.device if link.b.device in fabric.adapter_by_id else None,
        )
        for link in fabric.links
    ]


@shape(Fabric, {"$id": "https://seatrial.dev/schemas/fabric-1.json"})
class FabricJson(TypedDict):
    """A fabric: the output of `seatrial discover --from ibnetdiscover=FILE --format json` (also iblinkinfo,
    slurm-topology, perfquery, ibqueryerrors, ibswinfo, opafabricinfo). Unknown is null, never 0."""

    schema: Literal["seatrial.fabric/1"]
    sources: list[str]
    switches: list[FabricSwitch]
    links: Annotated[list[FabricLinkJson], From(_links)]
    nodes: Annotated[list[str], "Host names, sorted."]
    oversubscription: Annotated[list[Oversubscription], "One entry for each level but the highest."]
    adapters: list[FabricAdapter]
    leaves: Annotated[
        list[LeafJson],
        From(lambda fabric: [{"switch": one, "nodes": [*nodes]} for one, nodes in fabric.nodes_of_switch.items()]),
    ]
    ports_down: list[PortDown]
    findings: list[Finding]
    facts: Annotated[dict[str, str], "What else the dump states: when it was made, sizes of blocks."]
    unread: Annotated[list[str], "What could not be read and why, one sentence each."]
    port_counters: Annotated[list[PortCounters], "Of perfquery and ibqueryerrors: what the ports counted."]


def fabric_document(fabric: Fabric) -> Json:
    """The fabric as plain JSON values."""
    return filled(FabricJson, fabric)
