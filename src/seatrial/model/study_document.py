"""A study as it is kept in a results folder, with the experiments behind its points."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from seatrial.model.parameter import Value, value_from_json
from seatrial.model.study import Axis, BestOf, Compare, RepeatPolicy, Scaling, Study, StudyBenchmark


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """One point: the id of its experiment, and the values of the axes there as the study names them."""

    experiment: str
    benchmark: str
    given: Mapping[str, Value | None]


@dataclass(frozen=True, slots=True)
class KeptStudy:
    """A study that was run on one machine (its identity, as experiments have it), with its points in planned order."""

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


def study_from_document(document: Mapping[str, Any]) -> KeptStudy:
    """The study that `study_document` described. Raises KeyError or TypeError where it is none."""
    points = tuple(
        StudyPoint(point["experiment"], point["benchmark"], _given(point["given"])) for point in document["points"]
    )
    return KeptStudy(_study(document["study"]), document["machine"], points)


def _study(told: Mapping[str, Any]) -> Study:
    compare, scaling, best_of = told["compare"], told["scaling"], told["best_of"]
    return Study(
        name=told["name"],
        question=told["question"],
        benchmarks=tuple(StudyBenchmark(entry["name"], _set(entry["parameters"])) for entry in told["benchmarks"]),
        axes=tuple(Axis(axis["name"], tuple(map(_value, axis["values"]))) for axis in told["axes"]),
        zips=tuple(map(tuple, told["zips"])),
        exclude=tuple(map(_given, told["exclude"])),
        include=tuple(map(_given, told["include"])),
        compare=compare
        and Compare(compare["along"], _value(compare["baseline"]), compare["margin"], tuple(compare["figures"])),
        scaling=scaling and Scaling(scaling["kind"], scaling["along"]),
        best_of=best_of and BestOf(tuple(best_of["over"]), best_of["figure"]),
        repeat=RepeatPolicy(**told["repeat"]),
        probes=tuple(told["probes"]),
    )


def _value(told: object) -> Value | None:
    return None if told is None else value_from_json(told)


def _given(told: Mapping[str, object]) -> dict[str, Value | None]:
    return {name: _value(value) for name, value in told.items()}


def _set(told: Mapping[str, object]) -> dict[str, Value]:
    return {name: value_from_json(value) for name, value in told.items()}
