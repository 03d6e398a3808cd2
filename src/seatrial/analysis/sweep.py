"""Sweeps: groups of experiments that differ only along the swept axes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.study.study import is_number, is_of_environment
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval, half_steps, independent_ratio, widened

_UNSET = "unset"


Given = Mapping[str, Mapping[str, Value | None]]
"""Experiment -> the axis values that a study gave it, for axes that are not parameters (`environment.compiler`)."""


class SweepPoint(Frozen):
    """One figure of one experiment at one sweep coordinate of its program; `figure` is None if it has none.

    `settings` are the parameters and the sweep coordinates.
    """

    result: ExperimentResult
    figure: FigureResult | None
    settings: Mapping[str, Value]


class Sweep(Frozen):
    """Points that differ along the axes of a sweep, and in settings that follow from these; `shared` are the others."""

    benchmark: str
    figure: str
    shared: Mapping[str, Value]
    points: tuple[SweepPoint, ...]


def sweeps(
    results: Sequence[ExperimentResult],
    over: Collection[str],
    figure: str | None = None,
    given: Given | None = None,
) -> list[Sweep]:
    """One for each figure (or the one named) and each combination of the settings not swept, in order of appearance.

    A parameter determined by the swept ones does not separate sweeps: arrays that grow with the threads, or a size that
    a weak scaling sets with them. Experiments without figures are in every sweep that they would belong to. Benchmarks
    without all of `over` are ignored.
    """
    found: list[Sweep] = []
    for benchmark, names in _figures_by_benchmark(results, figure).items():
        for name in names:
            points = _points(results, benchmark, name, given or {})
            points = [point for point in points if all(swept in point.settings for swept in over)]
            if points:
                found += _grouped(benchmark, name, points, over)
    return found


def _figures_by_benchmark(results: Iterable[ExperimentResult], figure: str | None) -> dict[str, list[str]]:
    """Benchmark -> the names of its figures, in order of appearance."""
    names: dict[str, dict[str, None]] = {}
    for result in results:
        own = names.setdefault(result.experiment.benchmark, {})
        own.update(dict.fromkeys(f.name for f in result.figures if figure is None or f.name == figure))
    return {benchmark: list(own) for benchmark, own in names.items()}


def _points(results: Iterable[ExperimentResult], benchmark: str, name: str, given: Given) -> list[SweepPoint]:
    points: list[SweepPoint] = []
    for result in results:
        if result.experiment.benchmark != benchmark or result.emulated is not None:
            continue
        axes = given.get(result.id, {}).items()
        settings = {
            **result.experiment.parameters,
            **{axis: _UNSET if value is None else value for axis, value in axes if is_of_environment(axis)},
        }
        own = [figure for figure in result.figures if figure.name == name]
        points += [SweepPoint(result, figure, {**settings, **figure.point}) for figure in own]
        if not result.figures:
            points.append(SweepPoint(result, None, settings))
    return points


def _grouped(benchmark: str, name: str, points: Sequence[SweepPoint], over: Collection[str]) -> list[Sweep]:
    """The points in one sweep for each combination of settings that are neither swept nor determined by swept ones."""
    kept = _separating([_all_settings(point) for point in points], over)
    inner = {coordinate for point in points if point.figure is not None for coordinate in point.figure.point}
    groups: dict[tuple[tuple[str, Value | None], ...], list[SweepPoint]] = {}
    for point in points:
        if point.figure is not None:
            groups.setdefault(_place(point, kept), []).append(point)
    for point in points:  # a failed one has no sweep coordinates: it belongs to all groups with its parameters
        if point.figure is None:
            outer = [setting for setting in kept if setting not in inner]
            for own in groups.values():
                if _place(own[0], outer) == _place(point, outer):
                    own.append(point)
    several = {setting for setting in ("environment", "machine") if setting in kept}
    return [
        Sweep(benchmark, name, _shared(own, several), tuple(own))
        for own in groups.values()
        if any(point.figure is not None for point in own)
    ]


def _place(point: SweepPoint, kept: Iterable[str]) -> tuple[tuple[str, Value | None], ...]:
    settings = _all_settings(point)
    return tuple((name, settings.get(name)) for name in kept)


def _all_settings(point: SweepPoint) -> dict[str, Value]:
    """The settings with machine and environment: two machines are two sweeps."""
    experiment = point.result.experiment
    return {"machine": experiment.machine, "environment": experiment.environment, **point.settings}


def _separating(settings: Sequence[Mapping[str, Value]], over: Collection[str]) -> list[str]:
    """The settings that separate sweeps: those that vary and are not determined by the swept ones.

    Settings determined by the swept ones alone are removed first. Then, one at a time, numbers determined by the
    others, those with the most values first: a value derived from several settings (a size, a count) is a number, and
    has more values than any of them. Machines always separate; environments do unless the sweep is over a part of them.
    """
    fixed = {"machine"} | (set() if any(is_of_environment(name) for name in over) else {"environment"})
    names = list(dict.fromkeys(name for own in settings for name in own if name not in over))
    values = {name: {_hashable(own.get(name)) for own in settings} for name in names}
    swept = list(over)
    kept = [n for n in names if len(values[n]) > 1 and (n in fixed or not _is_determined(n, swept, settings))]
    numbers = [name for name in kept if all(is_number(value) for _, value in values[name])]
    for name in sorted(numbers, key=lambda name: -len(values[name])):
        rest = [other for other in kept if other != name]
        if _is_determined(name, [*swept, *rest], settings):
            kept = rest
    return kept


def _is_determined(name: str, by: Sequence[str], settings: Sequence[Mapping[str, Value]]) -> bool:
    """Whether each combination of values of `by` has only one value of `name`."""
    known: dict[tuple[object, ...], object] = {}
    return all(
        known.setdefault(tuple(_hashable(own.get(other)) for other in by), value) == value
        for own in settings
        for value in (_hashable(own.get(name)),)
    )


def _hashable(value: Value | None) -> tuple[bool, Value | None]:
    """The value, with true distinguished from 1."""
    return isinstance(value, bool), value


def _shared(points: Sequence[SweepPoint], also: Collection[str]) -> dict[str, Value]:
    """The settings that all points with figures share; environment and machine only if sweeps differ in them."""
    own = [point for point in points if point.figure is not None]
    first = {name: value for name, value in _all_settings(own[0]).items() if name in also}
    first |= own[0].settings
    return {
        name: value
        for name, value in first.items()
        if all(_hashable(_all_settings(point).get(name)) == _hashable(value) for point in own)
    }


Blocks = Mapping[tuple[str, int], str]
"""(experiment, repeat) -> the block in which the repeat was made. Missing: not interleaved."""

Pairs = tuple[tuple[float, float], ...]


class PointRatio(Frozen):
    """Candidate over baseline of the raw figure. `pairs` are the pairs used; empty: unpaired."""

    interval: RatioInterval
    pairs: Pairs


class MeasuredPoint(Frozen):
    """A figure of the experiment with this id."""

    experiment: str
    figure: FigureResult


def pairs_of(baseline: MeasuredPoint, candidate: MeasuredPoint, blocks: Blocks) -> Pairs:
    """(baseline, candidate) of the repeats that were made in one block or, at two points inside one program, in one
    process. Several repeats in a block are paired in order."""
    waiting: dict[tuple[str, object], list[float]] = {}
    for repeat in baseline.figure.repeats:
        place = _paired_at(baseline, candidate, repeat.repeat, baseline.experiment, blocks)
        if place is not None:
            waiting.setdefault(place, []).append(repeat.value)
    pairs: list[tuple[float, float]] = []
    for repeat in candidate.figure.repeats:
        place = _paired_at(baseline, candidate, repeat.repeat, candidate.experiment, blocks)
        if place is not None and waiting.get(place):
            pairs.append((waiting[place].pop(0), repeat.value))
    return tuple(pairs)


def point_ratio(
    baseline: MeasuredPoint, candidate: MeasuredPoint, blocks: Blocks, alpha: float = 0.05
) -> PointRatio | None:
    """The ratio with its interval of error `alpha`; None if a value is not positive, so no ratio exists.

    Pairs are used if there are at least six, with at least half of the repeats of the shorter side; otherwise all
    repeats, unpaired.
    """
    sides = [point.figure.values for point in (baseline, candidate)]
    if not all(side and all(0.0 < value < float("inf") for value in side) for side in sides):
        return None
    steps = half_steps(baseline.figure.resolution, candidate.figure.resolution)
    pairs = pairs_of(baseline, candidate, blocks)
    if len(pairs) >= MINIMUM_REPEATS and 2 * len(pairs) >= min(map(len, sides)):
        return PointRatio(BlockTest(pairs, steps).ratio(alpha), pairs)
    return PointRatio(widened(independent_ratio(sides[0], sides[1], alpha), steps), ())


def _paired_at(
    baseline: MeasuredPoint, candidate: MeasuredPoint, repeat: int, experiment: str, blocks: Blocks
) -> tuple[str, object] | None:
    if baseline.experiment == candidate.experiment:
        return "process", repeat
    block = blocks.get((experiment, repeat))
    return None if block is None else ("block", block)
