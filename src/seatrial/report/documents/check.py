"""`seatrial.check/1`: findings and bindings as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.analysis.rank_layout import Binding, Layout
from seatrial.model.json_object import filled
from seatrial.model.json_shape import OPEN, Count, Json, Keywords, shape
from seatrial.model.machine.finding import Finding

Cpus = Annotated[list[Count], Keywords(minItems=1, uniqueItems=True)]


@shape(None, OPEN)
class CheckJson(TypedDict):
    """The problems of a machine, and how to bind programs next to its devices. Unknown values are null."""

    schema: Literal["seatrial.check/1"]
    findings: list[Finding]
    bindings: list[Binding]
    layouts: NotRequired[Annotated[list[Layout], "present if a layout was requested"]]


def check_document(findings: Sequence[Finding], bindings: Sequence[Binding], layout: Layout | None = None) -> Json:
    """The document of CONTRACT, with the findings in their order.

    In addition to the contract: `loss` and `causes` of a finding, `srun` and `mpich` of a binding, and `layouts`.
    """
    layouts = {} if layout is None else {"layouts": [layout]}
    return filled(CheckJson, None, findings=findings, bindings=bindings, **layouts)
