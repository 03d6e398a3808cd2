"""A study as stored in a results folder, with the experiments of its points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import to_builtins

from seatrial.model.frozen import Frozen
from seatrial.model.json_check import check_shape
from seatrial.model.json_shape import Keywords, NonNegative, Positive, Text
from seatrial.model.parameter import Value, ValueJson, value_from_json
from seatrial.model.secrets import masked_document
from seatrial.model.study import Axis, BestOf, Compare, RepeatPolicy, Scaling, Study, StudyBenchmark

GivenJson = dict[str, ValueJson | None]


class _AxisJson(TypedDict):
    name: Text
    values: list[ValueJson | None]


class _BenchmarkJson(TypedDict):
    name: Text
    parameters: dict[str, ValueJson]


class _CompareJson(TypedDict):
    along: Text
    baseline: ValueJson | None
    margin: Annotated[float, Keywords(exclusiveMinimum=0, maximum=1)]
    figures: list[str]
    asks_equivalence: NotRequired[Annotated[bool, "whether the margin is one of equivalence (absent: no)"]]


class _ScalingJson(TypedDict):
    kind: Literal["strong", "weak"]
    along: Text


class _BestOfJson(TypedDict):
    over: list[str]
    figure: Text


class _RepeatJson(TypedDict):
    precision: Positive
    budget_s: NonNegative
    maximum: Annotated[int, Keywords(minimum=1)]


class _StudyJson(TypedDict):
    name: Text
    question: str
    benchmarks: list[_BenchmarkJson]
    axes: list[_AxisJson]
    zips: list[list[str]]
    exclude: list[GivenJson]
    include: list[GivenJson]
    compare: _CompareJson | None
    scaling: _ScalingJson | None
    best_of: _BestOfJson | None
    repeat: _RepeatJson
    probes: list[str]
    references: NotRequired[list[str]]


class _PointJson(TypedDict):
    experiment: str
    benchmark: str
    given: GivenJson


class KeptStudyJson(TypedDict):
    """A study as stored in `studies/<key>.json`."""

    study: _StudyJson
    machine: str
    points: list[_PointJson]


class StudyPoint(Frozen):
    """One point: the id of its experiment, and the values of the axes as written in the study."""

    experiment: str
    benchmark: str
    given: Mapping[str, Value | None]


class KeptStudy(Frozen):
    """A study that was run on one machine (its identity, as in experiments), with its points in planned order."""

    study: Study
    machine: str
    points: tuple[StudyPoint, ...]


def study_document(kept: KeptStudy) -> dict[str, Any]:
    """As stored in `studies/<key>.json`."""
    return {
        "study": _document(kept.study),
        "machine": kept.machine,
        "points": [
            {"experiment": point.experiment, "benchmark": point.benchmark, "given": dict(point.given)}
            for point in kept.points
        ],
    }


def _document(study: Study) -> dict[str, Any]:
    """The study as stored: a key that was added later is absent where it changes nothing, so that a study keeps its
    key."""
    document: dict[str, Any] = to_builtins(study)
    if document["compare"] is not None and not document["compare"]["asks_equivalence"]:
        del document["compare"]["asks_equivalence"]
    return document


def study_without_secrets(study: Study) -> Study:
    """The study with secrets among its arguments masked, as it may be shown and stored."""
    return _study(masked_document(to_builtins(study)))


def study_from_document(document: Mapping[str, Any]) -> KeptStudy:
    """The study that `study_document` described. Raises ValueError if it is invalid."""
    check_shape(KeptStudyJson, document)
    points = tuple(
        StudyPoint(point["experiment"], point["benchmark"], _given(point["given"])) for point in document["points"]
    )
    return KeptStudy(_study(document["study"]), document["machine"], points)


def _study(document: Mapping[str, Any]) -> Study:
    compare, scaling, best_of = document["compare"], document["scaling"], document["best_of"]
    repeat = document["repeat"]
    return Study(
        name=document["name"],
        question=document["question"],
        benchmarks=tuple(
            StudyBenchmark(entry["name"], _parameters(entry["parameters"])) for entry in document["benchmarks"]
        ),
        axes=tuple(Axis(axis["name"], tuple(map(_value, axis["values"]))) for axis in document["axes"]),
        zips=tuple(map(tuple, document["zips"])),
        exclude=tuple(map(_given, document["exclude"])),
        include=tuple(map(_given, document["include"])),
        compare=compare
        and Compare(
            compare["along"],
            _value(compare["baseline"]),
            compare["margin"],
            tuple(compare["figures"]),
            compare.get("asks_equivalence", False),
        ),
        scaling=scaling and Scaling(scaling["kind"], scaling["along"]),
        best_of=best_of and BestOf(tuple(best_of["over"]), best_of["figure"]),
        repeat=RepeatPolicy(repeat["precision"], repeat["budget_s"], repeat["maximum"]),
        probes=tuple(document["probes"]),
        references=tuple(document.get("references", ())),
    )


def _value(value: object) -> Value | None:
    return None if value is None else value_from_json(value)


def _given(values: Mapping[str, object]) -> dict[str, Value | None]:
    return {name: _value(value) for name, value in values.items()}


def _parameters(values: Mapping[str, object]) -> dict[str, Value]:
    return {name: value_from_json(value) for name, value in values.items()}
