"""`seatrial.results/1`: results as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec.structs import replace

from seatrial.analysis.experiment_figures import why_no_interval
from seatrial.analysis.reference_check import ReferenceCheck
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.json_object import filled
from seatrial.model.json_shape import (
    ABSENT,
    GIVEN,
    OPEN,
    Count,
    From,
    Interval,
    Json,
    Keywords,
    NonNegative,
    Positive,
    Settings,
    Text,
    shape,
    view,
    when,
)
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, MissingFigure, Outlier, PairSampling
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.sample import State
from seatrial.model.study.result import Trial
from seatrial.model.units import Unit
from seatrial.report.documents.compare import StudyJson
from seatrial.report.trial_verdict import TrialVerdict, verdict


def _complete(result: ExperimentResult) -> list[FigureResult | MissingFigure]:
    """Each figure with all its parameters: those of its experiment and the coordinates in its sweep."""
    of_all = result.experiment.parameters
    found = [replace(one, point={**of_all, **one.point}) for one in result.shown]
    return [*found, *(replace(one, point={**of_all, **one.point}) for one in result.missing)]


def _why_missing(figure: FigureResult | MissingFigure) -> Any:
    return figure.reason if isinstance(figure, MissingFigure) else ABSENT


def _why_emulated(result: ExperimentResult) -> Any:
    return ABSENT if result.emulated is None else result.emulated.why


def _known_limit(figure: FigureResult) -> Limit | None:
    return None if figure.limit is None or figure.limit.basis is Basis.UNKNOWN else figure.limit


def _why_no_limit(figure: FigureResult) -> str | None:
    return None if figure.limit is None or _known_limit(figure) is not None else figure.limit.derivation


@shape(Limit, OPEN)
class ReachedLimitJson(TypedDict):
    """The most that the hardware, or another measurement on it, allows."""

    value: Positive
    derivation: Text
    basis: Literal[Basis.PHYSICAL, Basis.MEASURED]


@shape(FigureResult, OPEN)
class FigureJson(TypedDict):
    """One figure of an experiment, at one point of its sweep."""

    name: str
    parameters: Annotated[Settings, From("point")]
    unit: Unit
    better: Better
    median: Annotated[float | None, "null: it could not be measured"]
    reason: NotRequired[Annotated[str, From(_why_missing), "why `median` is null"]]
    ci95: Interval
    no_interval_because: NotRequired[Annotated[str, From(why_no_interval), 'why `ci95` is null; "": it is not']]
    min: Annotated[float | None, From("minimum")]
    max: Annotated[float | None, From("maximum")]
    n_repeats: Count
    n_samples: Count
    limit: Annotated[ReachedLimitJson | None, From(_known_limit)]
    limit_unknown_because: NotRequired[Annotated[str | None, From(_why_no_limit)]]
    fraction_of_limit: float | None
    dependence: NotRequired[
        Annotated[float, "correlation of successive repeats, which widened `ci95`; 0: not significant"]
    ]
    resolution: NotRequired[
        Annotated[NonNegative, "step of the timer or the printed digits, as a share of the value; widened `ci95`"]
    ]
    error: NotRequired[
        Annotated[float | None, "half-width of what sensors of power cannot show, part of `ci95`; null: none known"]
    ]


@shape(
    ExperimentResult,
    OPEN
    | when("outcome", "ok", {"figures": {"minItems": 1}}, {"figures": {"maxItems": 0}, "reason": {"minLength": 1}}),
)
class ExperimentJson(TypedDict):
    """One experiment: what was run, its outcome, and its figures if it is ok."""

    id: Annotated[str, Keywords(pattern="^[0-9a-f]{16}$")]
    benchmark: Annotated[str, From("experiment.benchmark")]
    parameters: Annotated[Settings, From("experiment.parameters")]
    environment: Annotated[str | None, From(lambda result: result.experiment.environment or None)]
    machine: NotRequired[Annotated[str, From("experiment.machine")]]
    hosts: NotRequired[Annotated[list[str], "the nodes that its repeats ran on"]]
    outcome: Annotated[State, From("outcome.state")]
    reason: Annotated[str, From("outcome.reason")]
    evidence: NotRequired[Annotated[str, From("outcome.evidence")]]
    notes: NotRequired[list[str]]
    reused: bool
    emulated: NotRequired[
        Annotated[Text, From(_why_emulated), "why its figures are compared with nothing; absent: they can be"]
    ]
    no_cpu: NotRequired[
        Annotated[NoCpu | None, "set if its programs were ready to run without a CPU: its figures are not judged"]
    ]
    beside: NotRequired[Annotated[str, 'what else used CPUs meanwhile, if it was much; "": nothing']]
    why: NotRequired[Annotated[str, 'what the program does that takes most of its time; "": nothing is known']]
    figures: Annotated[list[FigureJson], From(_complete)]


@view(Outlier)
class ScreenedOutlierJson(TypedDict):
    """A slow pair of ranks, rank or node."""

    experiment: Annotated[str, GIVEN]


@view(PairSampling)
class PairSamplingJson(TypedDict):
    """Which of all pairs of ranks were measured: `share` of them, by rounds of a tournament; `tells_ranks`: each rank
    met enough others to distinguish a slow rank from a slow pair."""

    experiment: Annotated[str, GIVEN]


@shape(TrialVerdict)
class TrialAnswerJson(TypedDict):
    """What is right, what is wrong and what to do next; counts of experiments."""

    said: Annotated[Text, From("sentence")]
    measured: Annotated[int, Keywords(minimum=0)]
    expected: Annotated[int, Keywords(minimum=0)]
    defects: Annotated[int, Keywords(minimum=0)]
    wrong: Annotated[str, 'the most important finding; "": none']
    todo: Annotated[str, 'its remedy; "": none']
    no_cpu: NotRequired[Annotated[list[NoCpu], "experiments whose programs were ready to run without a CPU"]]


@shape(None, OPEN)
class ResultsJson(TypedDict):
    """The results of experiments; every number is finite, unknown values are null."""

    schema: Literal["seatrial.results/1"]
    environments: dict[str, dict[str, object]]
    experiments: list[ExperimentJson]
    outliers: NotRequired[Annotated[list[ScreenedOutlierJson], "present if pairs were screened; empty: none is slow"]]
    sampling: NotRequired[Annotated[list[PairSamplingJson], "present if pairs of ranks were measured"]]
    study: NotRequired[StudyJson]
    answer: NotRequired[Annotated[TrialAnswerJson, "of the standard trial"]]
    references: NotRequired[Annotated[list[ReferenceCheck], "present with --fail-on reference"]]


def results_document(
    results: Sequence[ExperimentResult],
    environments: Mapping[str, Mapping[str, Any]],
    trial: Trial | None = None,
    references: Sequence[ReferenceCheck] | None = None,
) -> Json:
    """The document of CONTRACT. In addition to the contract: `outliers`, in the form of `compare`, with the id of their
    experiment; `sampling` of pairs of ranks; `answer` if this is the standard trial; `references` if they were
    checked."""
    parts: Json = {"environments": environments, "experiments": results}
    if references is not None:
        parts["references"] = references
    if trial is not None:
        parts["answer"] = verdict(trial)
    screened = [(result.id, result.screening) for result in results if result.screening is not None]
    if screened:
        parts["outliers"] = [
            filled(ScreenedOutlierJson, one, experiment=key) for key, found in screened for one in found.outliers
        ]
    return filled(ResultsJson, None, **parts)
