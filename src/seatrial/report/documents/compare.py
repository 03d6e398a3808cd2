"""`seatrial.compare/1`: comparisons, other differences between the sides, scaling and sweeps, as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.analysis.answer import answer_of_comparisons, answer_of_study
from seatrial.analysis.missing_cpus import missing_of_sides
from seatrial.analysis.reference_check import ReferenceCheck
from seatrial.analysis.stretches import needed_repeats, why_undecided
from seatrial.model.json_object import filled
from seatrial.model.json_shape import (
    ABSENT,
    GIVEN,
    NULL_UNLESS_FINITE,
    Count,
    Finite,
    From,
    Json,
    Keywords,
    OneOrMore,
    Settings,
    Text,
    shape,
    view,
    when,
)
from seatrial.model.results.figure_result import FleetSpread, MeasureAgain, Outlier, ScreenResult
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.answer import Answer, Undecided
from seatrial.model.study.comparison import (
    Breakdown,
    ChangeDiagnosis,
    Comparison,
    ContainerContrast,
    ContainerCost,
    ContainerFact,
    Cost,
    Difference,
    Statistic,
    Stopped,
)
from seatrial.model.study.result import BestOfResult, Compared, ScalingResult, StudyResult
from seatrial.model.study.study import NeededBudget
from seatrial.report.studies.answer_words import answer_line
from seatrial.report.studies.change_words import breakdown_sentence, breakdowns_of, change_sentence
from seatrial.report.studies.container_section import cost_sentence
from seatrial.report.studies.design import scopes, unintended_first
from seatrial.report.studies.verdicts import no_verdict_interval


def _reference_side(one: Comparison) -> str | None:
    return "baseline" if one.baseline.is_reference else "candidate" if one.candidate.is_reference else None


@shape(Comparison)
class DesignJson(TypedDict):
    """How the repeats of a comparison were measured."""

    interleaved: Annotated[bool, From("design.is_interleaved")]
    blocks: Annotated[Count, From("design.blocks")]
    looks: Annotated[list[OneOrMore], From("design.looks")]
    stopped: Annotated[Stopped, From("design.stopped")]
    alpha: Annotated[float | None, NULL_UNLESS_FINITE, Keywords(exclusiveMinimum=0, maximum=1), From("design.alpha")]
    statistic: NotRequired[Annotated[Statistic | None, From("design.statistic"), "null: measured apart"]]
    sessions: NotRequired[
        Annotated[int | None, From("design.sessions"), "of each side, in alternation; null: in blocks"]
    ]
    made_in: NotRequired[
        Annotated[
            tuple[Count, Count] | None,
            From("design.made_in"),
            "all sessions of baseline and candidate, whether they alternate or not; null: in blocks",
        ]
    ]
    baseline_hosts: NotRequired[Annotated[list[str], From("baseline.hosts")]]
    candidate_hosts: NotRequired[Annotated[list[str], From("candidate.hosts")]]


@view(Comparison, when("ci95_family", None, {"verdict": {"const": "ambiguous"}}))
class ComparisonJson(TypedDict):
    """One figure with one set of parameters, candidate over baseline."""

    baseline: Annotated[Finite, From("baseline.median"), "median of the raw figure, in `unit`"]
    candidate: Annotated[Finite, From("candidate.median"), "median of the raw figure, in `unit`"]
    baseline_name: Annotated[str, From("baseline.name")]
    candidate_name: Annotated[str, From("candidate.name")]
    reference: NotRequired[
        Annotated[Literal["baseline", "candidate"] | None, From(_reference_side), "the side that is a published value"]
    ]
    equivalence: NotRequired[
        Annotated[
            float | None,
            Keywords(exclusiveMinimum=0),
            From(lambda one: one.margin if one.asks_equivalence else None),
            "the margin, where the study asks for equivalence; null: it does not",
        ]
    ]
    undecided_because: NotRequired[Annotated[Undecided | None, From(why_undecided), "null: there is a verdict"]]
    needed_repeats: NotRequired[
        Annotated[int | None, From(needed_repeats), "of each side, that may decide at this noise; null: not known"]
    ]
    no_interval_because: NotRequired[
        Annotated[str, From(no_verdict_interval), 'why `ci95_family` is null; "": it is not']
    ]
    no_cpu: NotRequired[
        Annotated[list[NoCpu], From(lambda one: missing_of_sides([one])), "the sides that had no CPU for part of it"]
    ]
    design: Annotated[DesignJson, From(lambda one: one)]
    baseline_experiments: NotRequired[Annotated[list[str], From("baseline.experiments")]]
    candidate_experiments: NotRequired[Annotated[list[str], From("candidate.experiments")]]


@view(ChangeDiagnosis)
class ChangeJson(TypedDict):
    """A cause of the difference, and the share of the difference that it explains."""

    said: Annotated[Text, From(change_sentence)]


@view(Breakdown)
class WhereJson(TypedDict):
    """Where a difference comes from: seconds of one rank, the mean over ranks and repeats, by call and size; and bytes
    of input and output."""

    said: Annotated[Text, From(breakdown_sentence)]
    diagnoses: NotRequired[
        Annotated[list[ChangeJson], "why the times differ; empty: they do not differ beyond noise, or were not tested"]
    ]


@view(Difference)
class DifferenceJson(TypedDict):
    """A difference between the two sides other than in the figures."""

    baseline_name: NotRequired[Annotated[str, GIVEN]]
    candidate_name: NotRequired[Annotated[str, GIVEN]]


@view(BestOfResult)
class BestOfJson(TypedDict):
    """The contenders of a sweep, best first, and whether the lead of the winner is beyond noise."""

    gap: ComparisonJson | None


def _point(one: Comparison) -> dict[str, Any]:
    return {"benchmark": one.benchmark, "figure": one.figure, **one.parameters}


@shape(ContainerCost)
class ContainerCostJson(TypedDict):
    """A cause of figures that are clearly slower on one side, by facts that differ."""

    cause: Annotated[Cost, From("cost")]
    on: Literal["baseline", "candidate"]
    said: Annotated[Text, GIVEN]
    baseline: str
    candidate: str
    figures: Annotated[list[Settings], From(lambda one: list(map(_point, one.figures))), "that it fits"]
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
    facts: list[ContainerFact]
    costs: Annotated[list[ContainerCostJson], GIVEN, "empty: no figure is clearly slower"]


@shape(Answer)
class AnswerJson(TypedDict):
    """The answer to the question: the sentence that the terminal and the page show too, and how much is undecided."""

    said: Annotated[Text, From(answer_line)]
    asked: Annotated[Count, "comparisons, efficiencies beyond the baseline, and contenders other than the best one"]
    undecided: Count
    decidable: Annotated[Count, "how many of the undecided ones more repeats may decide"]
    more_s: Annotated[float | None, Keywords(minimum=0), "estimated time of these repeats; null: none, or not known"]
    budget_s: Annotated[float | None, Keywords(minimum=0), "of the whole study with these repeats; null: not known"]
    no_cpu: NotRequired[Annotated[list[NoCpu], "what had no CPU for part of its time: qualifies the answer first"]]


@shape()
class CompareJson(TypedDict):
    """The result of comparisons; every number is finite, unknown values are null."""

    schema: Literal["seatrial.compare/1"]
    answer: NotRequired[Annotated[AnswerJson, "absent if outliers alone were screened for"]]
    comparisons: list[ComparisonJson]
    differences: list[DifferenceJson]
    where: NotRequired[list[WhereJson]]
    containers: NotRequired[list[ContainersJson]]
    scope: NotRequired[list[Text]]
    not_compared: NotRequired[Annotated[list[Text], "what was left out of the comparison, and why"]]
    best_of: NotRequired[list[BestOfJson]]
    scaling: NotRequired[list[ScalingResult]]
    outliers: NotRequired[Annotated[list[Outlier], "present if outliers were screened for; empty: none found"]]
    fleets: NotRequired[
        Annotated[list[FleetSpread], "present with `outliers`: figures in which the nodes truly differ"]
    ]
    again: NotRequired[Annotated[MeasureAgain, "present after a screen of at least six nodes"]]
    references: NotRequired[Annotated[list[ReferenceCheck], "present with --fail-on reference"]]
    unconfirmed: NotRequired[
        Annotated[list[Text], "present with `outliers`: suspects of a screen that do not differ from the controls"]
    ]


@shape()
class StudyJson(TypedDict):
    """The result of a study, with the same parts as a comparison."""

    study: str
    question: str
    spent_s: float
    answer: NotRequired[AnswerJson]
    comparisons: list[ComparisonJson]
    differences: list[DifferenceJson]
    where: NotRequired[list[WhereJson]]
    containers: NotRequired[list[ContainersJson]]
    scope: NotRequired[list[Text]]
    not_compared: NotRequired[Annotated[list[Text], "what was left out of the comparison, and why"]]
    best_of: list[BestOfJson]
    scaling: list[ScalingResult]
    needed: NotRequired[NeededBudget | None]


def compare_document(
    compared: Sequence[Compared],
    screen: ScreenResult | None = None,
    *,
    best_of: Sequence[BestOfResult] = (),
    scaling: Sequence[ScalingResult] = (),
    answer: Answer | None = None,
    references: Sequence[ReferenceCheck] | None = None,
) -> Json:
    """The document of CONTRACT. Unintended differences come first. `answer` is that of the study that was run, which
    knows its budget; None: of the comparisons alone.

    In addition to the contract: `answer`, `where`, `scope`, `not_compared`, `best_of`, `scaling`.
    """
    parts = _parts(compared, best_of, scaling)
    parts["answer"] = (answer or answer_of_comparisons(compared)) if compared else ABSENT
    screened: Json = {} if references is None else {"references": references}
    if screen is not None:
        screened |= {"outliers": screen.outliers, "fleets": screen.fleets, "unconfirmed": screen.unconfirmed}
        screened |= {} if screen.again is None else {"again": screen.again}
        parts["not_compared"] += screen.not_screened
    return filled(CompareJson, None, **parts, **screened)


def study_document(result: StudyResult) -> Json:
    """The result of a study: the value of `study` in the output of `run`."""
    study = {"study": result.study.name, "question": result.study.question, "spent_s": result.spent_s}
    parts = _parts(result.compared, result.best_of, result.scaling)
    return filled(StudyJson, None, **study, **parts, answer=answer_of_study(result), needed=result.needed)


def _parts(compared: Sequence[Compared], best_of: Sequence[BestOfResult], scaling: Sequence[ScalingResult]) -> Json:
    return {
        "comparisons": [one for each in compared for one in each.comparisons],
        "differences": [
            filled(DifferenceJson, one, baseline_name=each.baseline, candidate_name=each.candidate)
            for each, one in unintended_first(compared)
        ],
        "where": breakdowns_of(compared),
        "containers": [
            filled(
                ContainersJson,
                contrast,
                baseline_name=one.baseline,
                candidate_name=one.candidate,
                costs=[filled(ContainerCostJson, cost, said=cost_sentence(cost, one)) for cost in contrast.costs],
            )
            for one in compared
            if (contrast := one.containers) is not None
        ],
        "scope": scopes(compared),
        "not_compared": list(dict.fromkeys(text for one in compared for text in one.lost)),
        "best_of": best_of,
        "scaling": scaling,
    }
