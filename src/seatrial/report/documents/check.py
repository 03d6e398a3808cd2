"""`seatrial.check/1`: findings and bindings as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.analysis.bindings import Binding
from seatrial.analysis.rank_layout import Layout, RankPlace
from seatrial.model.finding import Finding, NamedCause, Severity
from seatrial.model.json_shape import OPEN, Count, From, Keywords, Text, filled, shape, when

Cpus = Annotated[list[Count], Keywords(minItems=1, uniqueItems=True)]

_NULL = {"type": "null"}


@shape(NamedCause)
class CauseJson(TypedDict):
    """A cause, and the share of the time that it explains (null: not measured)."""

    cause: Annotated[str, Keywords(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    share: Annotated[float | None, Keywords(minimum=0, maximum=1)]


@shape(Finding)
class FindingJson(TypedDict):
    """A problem, what it means, and what to do about it."""

    rule: Annotated[str, Keywords(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")]
    severity: Severity
    devices: Annotated[list[str], Keywords(uniqueItems=True)]
    observation: Text
    diagnosis: Text
    remedy: Text
    evidence: Text
    loss: NotRequired[Annotated[float | None, Keywords(exclusiveMinimum=0, maximum=1)]]
    causes: NotRequired[list[CauseJson]]


@shape(Binding, when("cpus", None, dict.fromkeys(("numactl", "mpirun", "srun", "mpich"), _NULL)))
class BindingJson(TypedDict):
    """The CPUs next to a device, and the command prefixes that bind a program to them."""

    device: str
    cpus: Cpus | None
    numa: Count | None
    numactl: Text | None
    mpirun: Text | None
    srun: NotRequired[Text | None]
    mpich: NotRequired[Text | None]


@shape(RankPlace)
class PlaceJson(TypedDict):
    """Where one rank runs."""

    rank: Count
    device: Annotated[str | None, From("gpu")]
    adapter: str | None
    numa: Count | None
    cpus: Cpus


@shape(Layout)
class LayoutJson(TypedDict):
    """Where all ranks run, and the commands that place them there."""

    ranks: Annotated[int, Keywords(minimum=1), From(lambda layout: len(layout.places))]
    how: str
    places: Annotated[list[PlaceJson], Keywords(minItems=1)]
    mpirun: str
    srun: Text | None
    mpich: str
    rankfile: str | None


@shape(None, OPEN)
class CheckJson(TypedDict):
    """The problems of a machine, and how to bind programs next to its devices. Unknown values are null."""

    schema: Literal["seatrial.check/1"]
    findings: list[FindingJson]
    bindings: list[BindingJson]
    layouts: NotRequired[Annotated[list[LayoutJson], "present if a layout was requested"]]


def check_document(findings: Sequence[Finding], bindings: Sequence[Binding], layout: Layout | None = None) -> CheckJson:
    """The document of CONTRACT, with the findings in their order.

    In addition to the contract: `loss` and `causes` of a finding, `srun` and `mpich` of a binding, and `layouts`.
    """
    document = CheckJson(
        schema="seatrial.check/1",
        findings=[filled(FindingJson, finding) for finding in findings],
        bindings=[filled(BindingJson, binding) for binding in bindings],
    )
    if layout is not None:
        document["layouts"] = [filled(LayoutJson, layout)]
    return document
