"""Sweeps: groups of experiments that differ only along the swept axes; and the ratio of two of their points, by pairs
of repeats if they were interleaved.

The winner of a sweep, and whether it is significantly the best.

Every other contender is compared with the winner, each interval at an error of 5 % over the number of these
comparisons. That is the idea of multiple comparisons with the best (Hsu, "Multiple Comparisons: Theory and Methods",
1996, chapter 4): a contender that is not the best is called so only if it beats the true best in a comparison of the
two, and there are k - 1 such. So the true best is the winner or tied with it in at least 95 % of all sweeps,
although the winner was chosen from the same data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum, auto

from msgspec.structs import replace

from seatrial.analysis.experiment_figures import why_no_interval
from seatrial.analysis.grouped import grouped
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.power import SCOPE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.sample import Outcome
from seatrial.model.spelling import label, show
from seatrial.model.study.comparison import Comparison, Design, Side, Stopped
from seatrial.model.study.result import BestOfResult, Contender
from seatrial.model.study.study import DEFAULT_MARGIN, is_number, is_of_environment
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS, least_repeats
from seatrial.stats.ratio import RatioInterval, half_steps, independent_ratio, verdict, widened

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
    results: Sequence[ExperimentResult], over: Collection[str], figure: str | None = None, given: Given | None = None
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
    outer = [setting for setting in kept if setting not in inner]
    groups = grouped((_place(point, kept), point) for point in points if point.figure is not None)
    for point in points:  # a failed one has no sweep coordinates: it belongs to all groups with its parameters
        if point.figure is None:
            for own in groups.values():
                if _place(own[0], outer) == _place(point, outer):
                    own.append(point)
    several = {setting for setting in ("environment", "machine") if setting in kept}
    return [Sweep(benchmark, name, _shared(own, several), tuple(own)) for own in groups.values()]


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
    own = (
        (_paired_at(baseline, candidate, repeat.repeat, baseline.experiment, blocks), repeat.value)
        for repeat in baseline.figure.repeats
    )
    waiting = grouped((place, value) for place, value in own if place is not None)
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


_ALPHA = 0.05

Costs = Mapping[str, tuple[int, float]]
"""Experiment -> (its repeats, the seconds that all of them took), with any outcome."""


def best_of(
    results: Sequence[ExperimentResult],
    over: Sequence[str],
    figure: str,
    blocks: Blocks,
    costs: Costs,
    given: Given | None = None,
    at_most: Mapping[str, float | None] = {},
) -> tuple[BestOfResult, ...]:
    """One for each combination of settings that are not swept; contenders by median, best first, failed ones last.

    The median of the winner is biased: of many equal contenders, the luckiest wins. Only a new measurement gives an
    unbiased value. A tie is a contender that the simultaneous interval does not distinguish from the winner; one with
    too few repeats for an interval is untested. `given` has axes that are not parameters. Those with a figure above its
    value in `at_most` are out; if the interval of that figure does not decide it, they stay.
    """
    results = [_within(result, at_most) for result in results] if at_most else results
    return tuple(_result(sweep, tuple(over), blocks, costs) for sweep in sweeps(results, over, figure, given))


def _within(result: ExperimentResult, at_most: Mapping[str, float | None]) -> ExperimentResult:
    """The result; without figures if one of them is above its limit, or is not known. Of a figure of power, that of the
    node decides, if it is known."""
    for name, limit in at_most.items():
        own = [figure for figure in result.figures if figure.name == name]
        own = [one for one in own if one.point.get(SCOPE) == Scope.NODE.value] or own
        if limit is None or not result.outcome.is_ok:
            continue
        above = [one for one in own if (one.ci95 or (one.median, one.median))[0] > limit]
        why = f"{name} is not known" if not own else ""
        for one in above:
            why = f"{name} is {show(one.median, one.unit)}, and at most {show(limit, one.unit)} is allowed"
        if why:
            return replace(result, figures=(), outcome=Outcome.skipped(why))
    return result


def winners_of(results: Sequence[ExperimentResult], best: Collection[BestOfResult]) -> tuple[ExperimentResult, ...]:
    """The results of the winning experiments: for a scaling of the best settings."""
    won = {r.contenders[0].experiment for r in best if r.contenders and r.contenders[0].median is not None}
    return tuple(result for result in results if result.id in won)


class _Ranked(Frozen):
    """A contender with its figure."""

    point: SweepPoint
    figure: FigureResult

    @property
    def measured(self) -> MeasuredPoint:
        return MeasuredPoint(self.point.result.id, self.figure)


def _result(sweep: Sweep, over: tuple[str, ...], blocks: Blocks, costs: Costs) -> BestOfResult:
    ranked = [_Ranked(point, point.figure) for point in sweep.points if point.figure is not None]
    better = ranked[0].figure.better
    ranked.sort(key=lambda one: one.figure.median, reverse=better is Better.HIGHER)
    ranked, ratios = _led_by_the_best(ranked, blocks, better)
    failed = [point for point in sweep.points if point.figure is None]
    ids = dict.fromkeys(point.result.id for point in sweep.points)
    places = {place: _standing(ratio, better) for place, ratio in enumerate(ratios, 1)}
    is_paired = any(ratio is not None and ratio.pairs for ratio in ratios)
    return BestOfResult(
        benchmark=sweep.benchmark,
        figure=sweep.figure,
        over=over,
        parameters={name: value for name, value in sweep.shared.items() if name not in over},
        unit=ranked[0].figure.unit,
        better=better,
        contenders=tuple(_contender(point, sweep, over) for point in (*(one.point for one in ranked), *failed)),
        gap=_gap(ranked, ratios[0], sweep, over, blocks) if ratios else None,
        is_beyond_noise=bool(places) and all(place is _Place.BEHIND for place in places.values()),
        tied=tuple(n for n, place in places.items() if place in (_Place.TIED, _Place.AHEAD)),
        untested=tuple(n for n, place in places.items() if place is _Place.UNTESTED),
        needed=least_repeats(_ALPHA / len(ratios), is_paired) if ratios else 0,
        cost_s=sum(costs[key][1] for key in ids if key in costs),
        repeats=sum(costs[key][0] for key in ids if key in costs),
    )


class _Place(Enum):
    """A contender against the leader, by the simultaneous interval of their ratio."""

    BEHIND = auto()
    TIED = auto()
    AHEAD = auto()
    UNTESTED = auto()


def _standing(ratio: PointRatio | None, better: Better) -> _Place:
    ends = None if ratio is None else ratio.interval.ends
    if ends is None:
        return _Place.UNTESTED
    if ends[0] <= 1.0 <= ends[1]:
        return _Place.TIED
    return _Place.AHEAD if (ends[0] > 1.0) == (better is Better.HIGHER) else _Place.BEHIND


def _led_by_the_best(
    ranked: list[_Ranked], blocks: Blocks, better: Better
) -> tuple[list[_Ranked], list[PointRatio | None]]:
    """The contenders, the leader first, and the ratio of each other one over it.

    The leader has the best median, unless a contender is ahead of it block by block: then that one leads. If they go
    round in a circle, the last leader stays, and whoever is ahead of it counts as tied.
    """
    rivals = len(ranked) - 1
    led: set[int] = set()
    while True:
        leader = ranked[0]
        led.add(id(leader))
        ratios = [point_ratio(leader.measured, one.measured, blocks, _ALPHA / rivals) for one in ranked[1:]]
        ahead = [
            one
            for one, ratio in zip(ranked[1:], ratios, strict=True)
            if _standing(ratio, better) is _Place.AHEAD and id(one) not in led
        ]
        if not ahead:
            return ranked, ratios
        ranked = [ahead[0], *(one for one in ranked if one is not ahead[0])]


def _contender(point: SweepPoint, sweep: Sweep, over: Sequence[str]) -> Contender:
    """With its own settings: the axes of the sweep first, then those that follow from them."""
    own = {name: point.settings[name] for name in over}
    own |= {name: value for name, value in point.settings.items() if sweep.shared.get(name) != value}
    figure, outcome = point.figure, point.result.outcome
    if figure is None:
        return Contender(own, point.result.id, None, None, 0, f"{outcome.state}: {outcome.reason}".rstrip(": "))
    return Contender(own, point.result.id, figure.median, figure.ci95, figure.n_repeats, why_no_interval(figure))


def _gap(
    ranked: Sequence[_Ranked], ratio: PointRatio | None, sweep: Sweep, over: Sequence[str], blocks: Blocks
) -> Comparison | None:
    """The runner-up over the winner; None if a value is not positive, so no ratio exists."""
    winner, second = ranked[0], ranked[1]
    plain = point_ratio(winner.measured, second.measured, blocks, _ALPHA)
    if ratio is None or plain is None:
        return None
    low, high = ratio.interval.low, ratio.interval.high
    figure = winner.figure
    rivals = len(ranked) - 1
    return Comparison(
        benchmark=sweep.benchmark,
        figure=sweep.figure,
        parameters={name: value for name, value in sweep.shared.items() if name not in over},
        unit=figure.unit,
        better=figure.better,
        baseline=_side(winner, over),
        candidate=_side(second, over),
        ratio=ratio.interval.ratio,
        ci95=plain.interval.ends,
        ci95_family=ratio.interval.ends,
        verdict=verdict(low, high, DEFAULT_MARGIN, figure.better is Better.HIGHER),
        margin=DEFAULT_MARGIN,
        n_repeats=len(ratio.pairs) or min(winner.figure.n_repeats, second.figure.n_repeats),
        family=rivals,
        design=Design(len(ratio.pairs), (), Stopped.NOT_PLANNED, _ALPHA),
        pairs=ratio.pairs,
        note="" if low is not None else "too few repeats for an interval with this number of contenders",
    )


def _side(one: _Ranked, over: Sequence[str]) -> Side:
    name = " ".join(label(axis, one.point.settings[axis]) for axis in over)
    return Side(name, one.figure.median, one.figure.repeats, (one.point.result.id,))
