"""What the container of a side changes: the part `containers` of `seatrial.compare/1`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from seatrial.model.comparison import Comparison
from seatrial.model.container_contrast import ContainerContrast, ContainerCost, ContainerFact, Cost
from seatrial.model.json_shape import GIVEN, From, Keywords, Settings, Text, filled, shape
from seatrial.model.study_result import Compared
from seatrial.report.studies.container_words import cost_sentence


def _point(one: Comparison) -> dict[str, Any]:
    return {"benchmark": one.benchmark, "figure": one.figure, **one.parameters}


@shape(ContainerFact)
class ContainerFactJson(TypedDict):
    """One fact of the containers of both sides, as text; null: not recorded."""

    name: Text
    baseline: str | None
    candidate: str | None


@shape(ContainerCost)
class ContainerCostJson(TypedDict):
    """A cause of figures that are clearly slower on one side, by facts that differ."""

    cause: Annotated[Cost, From("cost")]
    on: Literal["baseline", "candidate"]
    said: Annotated[Text, GIVEN]
    baseline: str
    candidate: str
    figures: Annotated[list[Settings], From(lambda one: [_point(each) for each in one.figures]), "that it fits"]
    share: Annotated[
        float | None,
        Keywords(minimum=0),
        "of the difference that its kind of change explains by an MPI profile; null: no profile",
    ]


@shape(ContainerContrast)
class ContainersJson(TypedDict):
    """What the container of a side changes, and what costs."""

    baseline_name: Annotated[str, GIVEN]
    candidate_name: Annotated[str, GIVEN]
    facts: list[ContainerFactJson]
    costs: Annotated[list[ContainerCostJson], GIVEN, "empty: no figure is clearly slower"]


def containers_document(compared: Compared, contrast: ContainerContrast) -> ContainersJson:
    """The document of one comparison whose sides differ in their container."""
    return filled(
        ContainersJson,
        contrast,
        baseline_name=compared.baseline,
        candidate_name=compared.candidate,
        costs=[filled(ContainerCostJson, one, said=cost_sentence(one, compared)) for one in contrast.costs],
    )
