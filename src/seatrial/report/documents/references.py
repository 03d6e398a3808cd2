"""The key `references` of `seatrial.list/1`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypedDict

from seatrial.model.benchmark import Better
from seatrial.model.json_shape import From, Keywords, Positive, filled, shape
from seatrial.model.reference import Qualifier, Reference
from seatrial.model.units import Unit


@shape(Reference)
class ReferenceJson(TypedDict):
    """A published value from another machine, without an interval."""

    id: str
    benchmark: str
    figure: str
    value: Positive
    unit: Unit
    better: Better
    qualifier: Annotated[
        str | None,
        Keywords(enum=[*(one.value for one in Qualifier if one.value), None]),
        From(lambda reference: reference.qualifier.value or None),
        "How the source qualifies the value; null: not qualified",
    ]
    parameters: dict[str, str | float | bool]
    configuration: dict[str, str]
    source: str
    year: int | None
    remark: str
    contradicts: Annotated[list[str], Keywords(uniqueItems=True)]


def references_document(references: Iterable[Reference]) -> list[ReferenceJson]:
    """One object for each reference, its value in the SI unit of `unit`."""
    return [filled(ReferenceJson, reference) for reference in references]
