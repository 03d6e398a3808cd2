"""The points of a study on a machine, and which of them are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.benchmarks import benchmark_named
from seatrial.errors import UsageError
from seatrial.model.benchmark.parameter import JsonValue, Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import published
from seatrial.model.machine.machine import Machine
from seatrial.model.study.result import workers_of
from seatrial.model.study.study import OF_SIDES, SYSTEM, Study, is_of_environment
from seatrial.plan.axis_values import alike
from seatrial.plan.combinations import Given, combinations
from seatrial.plan.environment_axes import choice_of, guest_of
from seatrial.plan.points import Point, resolve, unusable
from seatrial.plan.study_file import NEEDS_NUMBERS, not_a_number

PROBES = frozenset({"mpi", "io"})
"""Probes that can run alongside a repeat."""


class StudyPoints(Frozen):
    """The points in the order of the study. `merged` counts those that are the same as an earlier one."""

    points: tuple[Point, ...]
    merged: int


def study_points(study: Study, machine: Machine) -> tuple[Point, ...]:
    """The points of a study on a machine: every combination of its axes with all parameters resolved, no duplicates."""
    return plan_study(study, machine).points


def plan_study(study: Study, machine: Machine) -> StudyPoints:
    """The same, with the number of duplicates (such as `threads: all` and the number that it resolves to)."""
    resolved: dict[tuple[object, ...], Point] = {}
    points: dict[tuple[object, ...], Point] = {}
    number = 0
    for entry, given in combinations(study):
        number += 1
        benchmark = benchmark_named(entry.name)
        chosen = {name: value for name, value in given.items() if value is not None and _is_parameter(name)}
        probed = benchmark.probed if study.probes else {}
        settings: dict[str, Value] = {**probed, **entry.parameters, **chosen}
        vm = guest_of(given)
        key = (entry.name, vm, *sorted(settings.items()))
        if key not in resolved:
            resolved[key] = unusable(resolve(benchmark, settings, machine.at(vm), named=True), machine, vm)
        point = replace(
            _labelled(resolved[key], given), probes=tuple(probe for probe in study.probes if probe in PROBES)
        )
        points.setdefault(_identity(point), point)
    return StudyPoints(tuple(points.values()), number - len(points))


def refuse_unfit(study: Study, points: Sequence[Point]) -> None:
    """Raise UsageError if the points cannot give what the study asks for: two sides to compare, numbers to scale
    with."""
    refuse_nothing_to_compare(study, points)
    refuse_no_scaling(study, points)


def refuse_no_scaling(study: Study, points: Sequence[Point]) -> None:
    """Raise UsageError if a study has a scaling along an axis whose values are not numbers on this machine, or all the
    same number, or that a benchmark does not have."""
    if study.scaling is None:
        return
    along = study.scaling.along
    values = [point.parameters.get(along, point.given.get(along)) for point in points if along in point.given]
    for point, value in zip((point for point in points if along in point.given), values, strict=True):
        if point.refusal is None and workers_of(value) is None:
            raise UsageError(f"study {study.name}: {not_a_number(along, str(value))}", NEEDS_NUMBERS)
    without = sorted(
        {point.benchmark.name for point in points} - {p.benchmark.name for p in points if along in p.given}
    )
    if without:
        raise UsageError(
            f"study {study.name}: {along} is not a setting of {', '.join(without)}, so nothing scales there",
            "move it to a study of its own, or name an axis that all benchmarks of the study have",
        )
    if len({workers_of(value) or value for value in values}) == 1:
        raise UsageError(
            f"study {study.name}: every value of {along} is {values[0]} on this machine, so nothing scales",
            NEEDS_NUMBERS,
        )


def refuse_nothing_to_compare(study: Study, points: Sequence[Point]) -> None:
    """Raise UsageError if a study has a comparison but no two points to compare. The part of a study on one system has
    the other side elsewhere."""
    if study.compare is not None and study.compare.along == SYSTEM and len(study.systems) == 1:
        return
    if study.compare is not None and not compared_points(study, points):
        raise UsageError(
            f"study {study.name}: no two experiments differ only in {study.compare.along}, so nothing can be compared",
            "check exclude, include, and values that resolve to the same on this machine: see seatrial plan",
        )


@published("Same")
class SameSides(Frozen):
    """Values of the compared axis that are one experiment on this machine, and so not compared."""

    benchmark: str
    values: tuple[JsonValue | None, ...]


def same_sides(study: Study, points: Sequence[Point], ids: Mapping[int, str]) -> tuple[SameSides, ...]:
    """The sides of comparisons that are one experiment. `ids` has the id of each point's experiment by the `id()` of
    the point.

    Raises UsageError if there are no others: a study does not compare an experiment with itself.
    """
    if study.compare is None:
        return ()
    along = study.compare.along
    found: dict[SameSides, None] = {}
    is_compared = False
    for group in compared_points(study, points):
        by_id: dict[str, list[Value | None]] = {}
        for point in group:
            by_id.setdefault(ids[id(point)], []).append(point.given[along])
        is_compared |= len(by_id) > 1
        name = group[0].benchmark.name
        found |= dict.fromkeys(SameSides(name, tuple(own)) for own in by_id.values() if len(own) > 1)
    if found and not is_compared:
        first = next(iter(found))
        shown = " and ".join("null" if value is None else str(value) for value in first.values)
        raise UsageError(
            f"study {study.name}: {along} {shown} are one experiment of {first.benchmark} on this machine, so nothing "
            "can be compared",
            "name values that differ here: see seatrial list",
        )
    return tuple(found)


def compared_points(study: Study, points: Sequence[Point]) -> tuple[tuple[Point, ...], ...]:
    """The groups of points that differ only along the axis of `compare`, the baseline first; groups without a
    baseline or without a candidate are left out."""
    compare = study.compare
    if compare is None:
        return ()
    groups: dict[tuple[object, ...], list[Point]] = {}
    for point in points:
        if compare.along in point.given:
            place = study.place(point.given, compare.along)
            groups.setdefault((point.benchmark.name, *place), []).append(point)
    sorted_groups = (
        sorted(group, key=lambda point: not alike(point.given[compare.along], compare.baseline))
        for group in groups.values()
        if any(alike(point.given[compare.along], compare.baseline) for point in group)
    )
    return tuple(tuple(group) for group in sorted_groups if len(group) > 1)


def _is_parameter(name: str) -> bool:
    return name not in OF_SIDES and not is_of_environment(name)


def _labelled(point: Point, given: Given) -> Point:
    """A resolved point with its label and system, and the environment that it selects."""
    sides = {name: value for name in OF_SIDES if (value := given.get(name)) is not None}
    parameters = {**point.parameters, **sides} if sides else point.parameters
    return replace(
        point, parameters=parameters, environment=choice_of(given, point.benchmark, point.parameters), given=given
    )


def _identity(point: Point) -> tuple[object, ...]:
    """Two points are the same if their resolved parameters and environments are equal."""
    return (point.benchmark.name, point.environment, *sorted(point.parameters.items()))
