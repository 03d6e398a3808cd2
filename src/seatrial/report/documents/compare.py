"""`seatrial.compare/1`: comparisons, other differences between the sides, scaling and sweeps, as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.analysis.answer.answer import answer_of_comparisons, answer_of_study
from seatrial.model.answer import Answer
from seatrial.model.benchmark import Better
from seatrial.model.best_of import BestOfResult, Contender
from seatrial.model.breakdown import (
    Breakdown,
    Change,
    ChangeDiagnosis,
    ChangeEvidence,
    ChangeSignal,
    Moved,
    Part,
)
from seatrial.model.comparison import Comparison, Statistic, Stopped, Verdict
from seatrial.model.difference import Difference
from seatrial.model.json_shape import (
    ABSENT,
    GIVEN,
    NULL_UNLESS_FINITE,
    Count,
    Finite,
    From,
    Interval,
    Keywords,
    NonNegative,
    Probability,
    Settings,
    Text,
    filled,
    shape,
    when,
)
from seatrial.model.needed_budget import NeededBudget
from seatrial.model.outlier import FleetSpread, MeasureAgain, Outlier, ScreenResult
from seatrial.model.scaling import Fit, ScalingPoint, ScalingResult
from seatrial.model.study_result import Compared, StudyResult
from seatrial.model.units import Unit
from seatrial.report.documents.containers import ContainersJson, containers_document
from seatrial.report.studies.answer_words import answer_line
from seatrial.report.studies.breakdown_words import breakdown_sentence, breakdowns_of
from seatrial.report.studies.change_words import change_sentence
from seatrial.report.studies.design import scopes, unintended_first


def _reference_side(one: Comparison) -> str | None:
    return "baseline" if one.baseline.is_reference else "candidate" if one.candidate.is_reference else None


def _equivalence(one: Comparison) -> float | None:
    return one.margin if one.asks_equivalence else None


@shape(Comparison)
class DesignJson(TypedDict):
    """How the repeats of a comparison were measured."""

    interleaved: Annotated[bool, From("design.is_interleaved")]
    blocks: Annotated[Count, From("design.blocks")]
    looks: Annotated[list[Annotated[int, Keywords(minimum=1)]], From("design.looks")]
    stopped: Annotated[Stopped, From("design.stopped")]
    alpha: Annotated[float | None, NULL_UNLESS_FINITE, Keywords(exclusiveMinimum=0, maximum=1), From("design.alpha")]
    statistic: NotRequired[Annotated[Statistic | None, From("design.statistic"), "null: measured apart"]]
    sessions: NotRequired[
        Annotated[int | None, From("design.sessions"), "of each side, in alternation; null: in blocks"]
    ]
    baseline_hosts: NotRequired[Annotated[list[str], From("baseline.hosts")]]
    candidate_hosts: NotRequired[Annotated[list[str], From("candidate.hosts")]]


@shape(Comparison, when("ci95_family", None, {"verdict": {"const": "ambiguous"}}))
class ComparisonJson(TypedDict):
    """One figure with one set of parameters, candidate over baseline."""

    benchmark: str
    figure: str
    parameters: Settings
    unit: Unit
    better: Better
    baseline: Annotated[Finite, From("baseline.median"), "median of the raw figure, in `unit`"]
    candidate: Annotated[Finite, From("candidate.median"), "median of the raw figure, in `unit`"]
    baseline_name: Annotated[str, From("baseline.name")]
    candidate_name: Annotated[str, From("candidate.name")]
    reference: NotRequired[
        Annotated[Literal["baseline", "candidate"] | None, From(_reference_side), "the side that is a published value"]
    ]
    ratio: Annotated[Finite, "candidate over baseline of the raw figure"]
    ci95: Annotated[Interval, "95 % interval of this comparison alone"]
    ci95_family: Annotated[Interval, "95 % interval that holds for all comparisons of the family and all looks"]
    verdict: Verdict
    margin: Annotated[float, Keywords(exclusiveMinimum=0)]
    equivalence: NotRequired[
        Annotated[
            float | None,
            Keywords(exclusiveMinimum=0),
            From(_equivalence),
            "the margin, where the study asks for equivalence; null: it does not",
        ]
    ]
    ci90: NotRequired[Annotated[Interval, "as `ci95` with twice the error; null: no equivalence is asked for"]]
    ci90_family: NotRequired[
        Annotated[
            Interval, "as `ci95_family` with twice the error: two one-sided tests; gives the verdict `equivalent`"
        ]
    ]
    n_repeats: Count
    p_family: Probability
    family: Annotated[int, Keywords(minimum=1)]
    design: Annotated[DesignJson, From(lambda one: one)]
    baseline_experiments: NotRequired[Annotated[list[str], From("baseline.experiments")]]
    candidate_experiments: NotRequired[Annotated[list[str], From("candidate.experiments")]]
    secondary: NotRequired[
        Annotated[bool, From("is_secondary"), "whether the figure only accompanies another one; `--fail-on` ignores it"]
    ]
    resolution: NotRequired[
        Annotated[NonNegative, "share by which rounding alone may have changed the ratio; widened the intervals"]
    ]
    note: str


@shape(Part)
class PartJson(TypedDict):
    """One contribution to the time: seconds and calls of one rank."""

    what: str
    size_B: Annotated[int | None, "smallest size of the bin; null: any size"]
    baseline_s: NonNegative
    candidate_s: NonNegative
    difference_s: float
    baseline_count: NonNegative
    candidate_count: NonNegative
    p: Annotated[float | None, Keywords(minimum=0, maximum=1), From("p_value")]
    is_beyond_noise: bool


@shape(Moved)
class MovedJson(TypedDict):
    """Bytes of the whole program, from one counter of the I/O probe."""

    what: str
    baseline_B: NonNegative
    candidate_B: NonNegative


@shape(ChangeEvidence)
class ChangeEvidenceJson(TypedDict):
    """One signal on both sides; null where it is not known. Times in seconds, shares between 0 and 1."""

    signal: ChangeSignal
    baseline: Finite
    candidate: Finite


@shape(ChangeDiagnosis)
class ChangeJson(TypedDict):
    """A cause of the difference, and the share of the difference that it explains."""

    cause: Annotated[Change, From("change")]
    share: Probability
    said: Annotated[Text, From(change_sentence)]
    call: str
    size_B: int | None
    rank: int | None
    p: Annotated[float | None, Keywords(minimum=0, maximum=1), From("p_value")]
    evidence: list[ChangeEvidenceJson]


@shape(Breakdown)
class WhereJson(TypedDict):
    """Where a difference comes from: seconds of one rank, the mean over ranks and repeats, by call and size; and bytes
    of input and output."""

    benchmark: str
    parameters: Settings
    baseline_name: Annotated[str, From("baseline")]
    candidate_name: Annotated[str, From("candidate")]
    said: Annotated[Text, From(breakdown_sentence)]
    whole: PartJson | None
    parts: list[PartJson]
    io: Annotated[list[MovedJson], From("moved")]
    n_repeats: Annotated[tuple[Count, Count], From("repeats")]
    incomplete: Count
    diagnoses: NotRequired[
        Annotated[list[ChangeJson], "why the times differ; empty: they do not differ beyond noise, or were not tested"]
    ]


@shape(Difference)
class DifferenceJson(TypedDict):
    """A difference between the two sides other than in the figures."""

    what: Text
    baseline: str | None
    candidate: str | None
    intended: bool
    follows_from: NotRequired[str]
    baseline_name: NotRequired[Annotated[str, GIVEN]]
    candidate_name: NotRequired[Annotated[str, GIVEN]]


@shape(Contender)
class ContenderJson(TypedDict):
    """One experiment of a sweep, and its figure."""

    parameters: Settings
    experiment: str
    median: Finite
    ci95: Interval
    n_repeats: Count
    reason: str


@shape(BestOfResult)
class BestOfJson(TypedDict):
    """The contenders of a sweep, best first, and whether the lead of the winner is beyond noise."""

    benchmark: str
    figure: str
    over: list[str]
    parameters: Settings
    unit: Unit
    better: Better
    contenders: list[ContenderJson]
    gap: ComparisonJson | None
    is_beyond_noise: bool
    tied: list[Count]
    cost_s: Annotated[float | None, NULL_UNLESS_FINITE, Keywords(minimum=0)]
    repeats: Count
    untested: NotRequired[Annotated[list[Count], "contenders with too few repeats to be told from the winner"]]
    needed: NotRequired[Annotated[Count, "the repeats that a test needs"]]


@shape(ScalingPoint)
class ScalingPointJson(TypedDict):
    """The figure at one number of workers."""

    workers: Annotated[float, NULL_UNLESS_FINITE]
    experiment: str
    value: Finite
    ci95: Interval
    n_repeats: Count
    speedup: Finite
    speedup_ci95: Interval
    efficiency: Finite
    efficiency_ci95: Interval
    reason: str
    parameters: Settings | None


@shape(tuple)
class ResidualJson(TypedDict):
    """Measured minus fitted speedup."""

    workers: Annotated[Finite, From(itemgetter(0))]
    residual: Annotated[Finite, From(itemgetter(1))]


@shape(Fit)
class FitJson(TypedDict):
    """A scaling law fitted to the speedups."""

    law: Literal["amdahl", "gustafson"]
    parameter: Finite
    ci95: Annotated[Interval, "of the parameter; null: too few repeats, or the law does not describe the points"]
    misfit: Annotated[Finite, "workers where the law fails most clearly; null: it describes the points, or no test"]
    residuals: list[ResidualJson]
    ceiling: Finite


@shape(ScalingResult)
class ScalingJson(TypedDict):
    """How a figure changes with the number of workers."""

    benchmark: str
    figure: str
    kind: Literal["strong", "weak"]
    along: str
    parameters: Settings
    unit: Unit
    better: Better
    baseline_workers: Finite
    points: list[ScalingPointJson]
    fits: list[FitJson]
    efficient_to: Finite
    crossing: Finite
    crossing_bounds: NotRequired[
        Annotated[
            tuple[Finite, Finite], "workers: all intervals up to the first are above the threshold, the second is below"
        ]
    ]
    note: str


@shape(Outlier)
class OutlierJson(TypedDict):
    """An outlier among values that should be equal."""

    what: Text
    benchmark: str
    figure: str
    parameters: Settings
    value: Finite
    ratio: Finite
    sureness: Probability
    false_alarm_rate: Probability
    n: Annotated[int, Keywords(minimum=1)]


@shape(FleetSpread)
class FleetJson(TypedDict):
    """Nodes that truly differ in a figure, beyond the noise of their repeats."""

    benchmark: str
    figure: str
    parameters: Settings
    n: Annotated[int, Keywords(minimum=1)]
    spread: Annotated[tuple[Finite, Finite], "the middle 90 % of the nodes, over the median of all"]
    of_noise: Annotated[Probability, "the probability that equal nodes look so different"]
    minority: Annotated[list[Text], "the nodes of the smaller of two kinds; empty: one kind"]
    kinds: Annotated[Interval, "the ratios of both kinds, the smaller one first; null: one kind"]


@shape(MeasureAgain)
class AgainJson(TypedDict):
    """The nodes to measure again to be sure which truly differ."""

    suspects: Annotated[list[Text], "the nodes that are farthest from the others"]
    controls: Annotated[list[Text], "nodes drawn at random, to measure beside them"]
    repeats: Annotated[Count, "on each"]


@shape(Answer)
class AnswerJson(TypedDict):
    """The answer to the question: the sentence that the terminal and the page show too, and how much is undecided."""

    said: Annotated[Text, From(answer_line)]
    asked: Annotated[Count, "comparisons, efficiencies beyond the baseline, and contenders other than the best one"]
    undecided: Count
    decidable: Annotated[Count, "how many of the undecided ones more repeats may decide"]
    more_s: Annotated[float | None, Keywords(minimum=0), "estimated time of these repeats; null: none, or not known"]
    budget_s: Annotated[float | None, Keywords(minimum=0), "of the whole study with these repeats; null: not known"]


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
    scaling: NotRequired[list[ScalingJson]]
    outliers: NotRequired[Annotated[list[OutlierJson], "present if outliers were screened for; empty: none found"]]
    fleets: NotRequired[Annotated[list[FleetJson], "present with `outliers`: figures in which the nodes truly differ"]]
    again: NotRequired[Annotated[AgainJson, "present after a screen of at least six nodes"]]
    unconfirmed: NotRequired[
        Annotated[list[Text], "present with `outliers`: suspects of a screen that do not differ from the controls"]
    ]


@shape(NeededBudget)
class NeededJson(TypedDict):
    """An estimate of what would decide the comparisons that the budget left ambiguous."""

    undecided: Annotated[int, Keywords(minimum=1)]
    budget_s: Annotated[NonNegative | None, "of the whole study; null: a ratio is too close to the edge of its margin"]
    repeats: Annotated[Count, "the most that one of the comparisons needs"]
    is_least: Annotated[bool, "some comparisons have no interval yet: this is what they need for one"]


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
    scaling: list[ScalingJson]
    needed: NotRequired[NeededJson | None]


def compare_document(
    compared: Sequence[Compared],
    screen: ScreenResult | None = None,
    *,
    best_of: Sequence[BestOfResult] = (),
    scaling: Sequence[ScalingResult] = (),
    answer: Answer | None = None,
) -> CompareJson:
    """The document of CONTRACT. Unintended differences come first. `answer` is that of the study that was run, which
    knows its budget; None: of the comparisons alone.

    In addition to the contract: `answer`, `where`, `scope`, `not_compared`, `best_of`, `scaling`.
    """
    parts = _parts(compared, best_of, scaling)
    parts["answer"] = filled(AnswerJson, answer or answer_of_comparisons(compared)) if compared else ABSENT
    if screen is None:
        return filled(CompareJson, None, **parts, outliers=ABSENT, fleets=ABSENT, again=ABSENT, unconfirmed=ABSENT)
    return filled(
        CompareJson,
        None,
        **parts,
        outliers=[filled(OutlierJson, one) for one in screen.outliers],
        fleets=[filled(FleetJson, one) for one in screen.fleets],
        again=ABSENT if screen.again is None else filled(AgainJson, screen.again),
        unconfirmed=list(screen.unconfirmed),
    )


def study_document(result: StudyResult) -> StudyJson:
    """The result of a study: the value of `study` in the output of `run`."""
    study = {"study": result.study.name, "question": result.study.question, "spent_s": result.spent_s}
    study["needed"] = None if result.needed is None else filled(NeededJson, result.needed)
    parts = _parts(result.compared, result.best_of, result.scaling)
    return filled(StudyJson, None, **study, answer=filled(AnswerJson, answer_of_study(result)), **parts)


def _parts(
    compared: Sequence[Compared], best_of: Sequence[BestOfResult], scaling: Sequence[ScalingResult]
) -> dict[str, Any]:
    return {
        "comparisons": [filled(ComparisonJson, one) for each in compared for one in each.comparisons],
        "differences": [
            filled(DifferenceJson, one, baseline_name=each.baseline, candidate_name=each.candidate)
            for each, one in unintended_first(compared)
        ],
        "where": [filled(WhereJson, one) for one in breakdowns_of(compared)],
        "containers": [containers_document(one, one.containers) for one in compared if one.containers is not None],
        "scope": scopes(compared),
        "not_compared": list(dict.fromkeys(text for one in compared for text in one.lost)),
        "best_of": [filled(BestOfJson, one) for one in best_of],
        "scaling": [filled(ScalingJson, one) for one in scaling],
    }
