"""How far figures scale, by their intervals: the conclusions that the sentence of a study may state."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from msgspec.structs import replace

from seatrial.analysis.needed_repeats import repeats_to_exclude
from seatrial.model.frozen import Frozen
from seatrial.model.study.answer import Efficiency, Interval, Reach
from seatrial.model.study.result import EFFICIENT, ScalingPoint, ScalingResult
from seatrial.stats.interval import MINIMUM_REPEATS


class OpenPoint(Frozen):
    """An efficiency that is neither above nor below the threshold for certain. `more` repeats of it and of the
    baseline may decide it; None: not known, or more will not help."""

    experiment: str
    baseline: str
    more: int | None


def reaches_of(results: Iterable[ScalingResult]) -> tuple[Reach, ...]:
    """One for each scaling result; figures with the same conclusion are joined."""
    joined: dict[Hashable, Reach] = {}
    for result in results:
        one = _reach(result)
        key = _common(one)
        joined[key] = _join(joined[key], one) if key in joined else one
    return tuple(joined.values())


def rated_points(result: ScalingResult) -> list[ScalingPoint]:
    """The points beyond the baseline that have an efficiency, by number of workers."""
    rated = [p for p in result.points if p.efficiency is not None and p.workers > result.baseline_workers]
    return sorted(rated, key=lambda point: point.workers)


def open_points(result: ScalingResult) -> list[OpenPoint]:
    """The efficiencies that are not decided."""
    base = next((p.experiment for p in result.points if p.workers == result.baseline_workers), "")
    return [
        OpenPoint(point.experiment, base, None if needed is None else max(0, needed - point.n_repeats))
        for point in rated_points(result)
        if _is_open(point)
        for needed in (_needed(point),)
    ]


def _reach(result: ScalingResult) -> Reach:
    rated = rated_points(result)
    efficient: ScalingPoint | None = None
    below: ScalingPoint | None = None
    undecided: list[ScalingPoint] = []
    for point in rated:
        if _is_open(point):
            undecided.append(point)
        elif point.efficiency_ci95 is not None and point.efficiency_ci95[0] >= EFFICIENT:
            efficient = point if not undecided else efficient
        elif below is None:
            below = point
            break
    if below is not None:
        undecided = [point for point in undecided if point.workers < below.workers]
    needed = [number for point in undecided if (number := _needed(point)) is not None]
    return Reach(
        benchmark=result.benchmark,
        figures=(result.figure,),
        kind=result.kind,
        along=result.along,
        parameters=result.parameters,
        baseline_workers=result.baseline_workers,
        efficient=None if efficient is None else _efficiency(efficient),
        below=None if below is None else _efficiency(below),
        undecided=tuple(map(_efficiency, undecided)),
        last=_efficiency(rated[-1]) if rated else None,
        lost=tuple(sorted(point.workers for point in result.points if point.value is None)),
        points=sum(point.value is not None for point in result.points),
        made=min((point.n_repeats for point in undecided), default=0),
        needed=max(needed, default=None),
    )


def _is_open(point: ScalingPoint) -> bool:
    ends = point.efficiency_ci95
    return ends is None or ends[0] < EFFICIENT <= ends[1]


def _needed(point: ScalingPoint) -> int | None:
    """The repeats with which an undecided efficiency may be decided."""
    if point.efficiency_ci95 is None:
        return MINIMUM_REPEATS if point.n_repeats < MINIMUM_REPEATS else None
    return repeats_to_exclude(point.efficiency or 0.0, point.efficiency_ci95, EFFICIENT, point.n_repeats)


def _efficiency(point: ScalingPoint) -> Efficiency:
    value = point.efficiency or 0.0
    return Efficiency(point.workers, (value, value), point.efficiency_ci95)


def _common(one: Reach) -> Hashable:
    """What figures share in one conclusion: all but their names and the efficiencies themselves."""
    at = [None if e is None else e.workers for e in (one.efficient, one.below, one.last)]
    where = tuple((name, repr(value)) for name, value in one.parameters.items())
    undecided = tuple(e.workers for e in one.undecided)
    return (one.benchmark, one.kind, one.along, one.baseline_workers, where, *at, undecided, one.lost)


def _join(first: Reach, second: Reach) -> Reach:
    needed = [number for number in (first.needed, second.needed) if number is not None]
    return replace(
        first,
        figures=(*first.figures, *second.figures),
        efficient=_both(first.efficient, second.efficient),
        below=_both(first.below, second.below),
        last=_both(first.last, second.last),
        undecided=tuple(_hull(a, b) for a, b in zip(first.undecided, second.undecided, strict=True)),
        made=min(first.made, second.made),
        needed=max(needed, default=None),
    )


def _both(first: Efficiency | None, second: Efficiency | None) -> Efficiency | None:
    return first if first is None or second is None else _hull(first, second)


def _hull(first: Efficiency, second: Efficiency) -> Efficiency:
    ends = None if first.ci95 is None or second.ci95 is None else _range((*first.ci95, *second.ci95))
    return Efficiency(first.workers, _range((*first.values, *second.values)), ends)


def _range(values: Sequence[float]) -> Interval:
    return min(values), max(values)
