"""A study as stored in a results folder, with the experiments of its points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from seatrial.model.parameter import Value, value_from_json
from seatrial.model.secrets import masked_document
from seatrial.model.study import Axis, BestOf, Compare, RepeatPolicy, Scaling, Study, StudyBenchmark


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One point: the id of its experiment, and the values of the axes as written in the study."""

    experiment: str
    benchmark: str
    given: Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class KeptStudy:
    """A study that was run on one machine (its identity, as in experiments), with its points in planned order."""

    study: Study
    machine: str
    points: tuple[StudyPoint, ...]


def study_document(kept: KeptStudy) -> dict[str, Any]:
    """As stored in `studies/<key>.json`."""
    return {
        "study": asdict(kept.study),
        "machine": kept.machine,
        "points": [
            {"experiment": point.experiment, "benchmark": point.benchmark, "given": dict(point.given)}
            for point in kept.points
        ],
    }


def study_without_secrets(study: Study) -> Study:
    """The study with secrets among its arguments masked, as it may be shown and stored."""
    return _study(masked_document(asdict(study)))


def study_from_document(document: Mapping[str, Any]) -> KeptStudy:
    """The study that `study_document` described. Raises KeyError or TypeError if it is invalid."""
    points = tuple(
        StudyPoint(point["experiment"], point["benchmark"], _given(point["given"])) for point in document["points"]
    )
    return KeptStudy(_study(document["study"]), document["machine"], points)


def _study(document: Mapping[str, Any]) -> Study:
    compare, scaling, best_of = document["compare"], document["scaling"], document["best_of"]
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
        and Compare(compare["along"], _value(compare["baseline"]), compare["margin"], tuple(compare["figures"])),
        scaling=scaling and Scaling(scaling["kind"], scaling["along"]),
        best_of=best_of and BestOf(tuple(best_of["over"]), best_of["figure"]),
        repeat=RepeatPolicy(**document["repeat"]),
        probes=tuple(document["probes"]),
    )


def _value(value: object) -> Value | None:
    return None if value is None else value_from_json(value)


def _given(values: Mapping[str, object]) -> dict[str, Value | None]:
    return {name: _value(value) for name, value in values.items()}


def _parameters(values: Mapping[str, object]) -> dict[str, Value]:
    return {name: value_from_json(value) for name, value in values.items()}
