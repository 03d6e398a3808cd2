"""The answer of a study, or of comparisons alone; how far figures scale, by their intervals: the conclusions that the
sentence of a study may state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.missing_cpus import missing_cpus, missing_of_sides
from seatrial.analysis.stretches import (
    ROOM,
    Curve,
    curves_of,
    needed_repeats,
    repeats_made,
    repeats_to_exclude,
    stretches_of,
)
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.study.answer import Answer, Efficiency, Interval, Reach, Span
from seatrial.model.study.comparison import Verdict, decisive
from seatrial.model.study.result import (
    EFFICIENT,
    BestOfResult,
    Compared,
    ScalingPoint,
    ScalingResult,
    StudyResult,
    judged_points,
)
from seatrial.model.study.study import distinguishing
from seatrial.stats.interval import MINIMUM_REPEATS


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


def _reach(result: ScalingResult) -> Reach:
    rated = rated_points(result)
    efficient: ScalingPoint | None = None
    below: ScalingPoint | None = None
    undecided: list[ScalingPoint] = []
    judged = judged_points(result.points, result.baseline_workers)
    unjudged = [point for point in rated if point not in judged]
    for point in (one for one in rated if one in judged):
        if _is_open(point):
            undecided.append(point)
        elif point.efficiency_ci95 is not None and point.efficiency_ci95[0] >= EFFICIENT:
            is_gap = any(one.workers < point.workers for one in unjudged)
            efficient = point if not undecided and not is_gap else efficient
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
        unjudged=tuple(map(_efficiency, unjudged)),
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
    groups = (tuple(e.workers for e in own) for own in (one.undecided, one.unjudged))
    return (one.benchmark, one.kind, one.along, one.baseline_workers, where, *at, *groups, one.lost)


def _join(first: Reach, second: Reach) -> Reach:
    needed = [number for number in (first.needed, second.needed) if number is not None]
    return replace(
        first,
        figures=(*first.figures, *second.figures),
        efficient=_both(first.efficient, second.efficient),
        below=_both(first.below, second.below),
        last=_both(first.last, second.last),
        undecided=tuple(_hull(a, b) for a, b in zip(first.undecided, second.undecided, strict=True)),
        unjudged=tuple(_hull(a, b) for a, b in zip(first.unjudged, second.unjudged, strict=True)),
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


_Point = tuple[Mapping[str, Value], FigureResult]

More = list[Mapping[str, int] | None]
"""For each undecided part of an answer, the repeats that may decide it, by experiment; None: unknown, or none help."""


def answer_of_study(result: StudyResult) -> Answer:
    """What a study says: its comparisons, its scaling and its sweeps; else the range of each figure."""
    is_asked = bool(result.compared or result.scaling or result.best_of)
    answer = _answer(
        result.compared,
        decisive(result.scaling),
        result.best_of,
        result.repeat_s,
        spans=() if is_asked else spans_of(result.results),
        outcomes=Counter(one.outcome.state.value for one in result.results),
    )
    measured = [one for one in result.results if one.outcome.is_ok]
    beside = _beside([one.beside for one in measured])
    answer = replace(answer, no_cpu=missing_cpus(measured), measured=len(measured), beside=beside)
    if answer.more_s is None:
        return answer
    policy = result.study.repeat
    needs = [one.needed for one in answer.stretches] + [one.needed for one in answer.reaches]
    needed = max((number for number in needs if number is not None), default=0)
    budget_s = result.spent_s + result.start_s + ROOM * answer.more_s
    return replace(
        answer,
        budget_s=budget_s if budget_s > policy.budget_s else None,
        maximum=math.ceil(ROOM * needed) if needed > policy.maximum else None,
    )


def answer_of_comparisons(compared: Sequence[Compared], repeat_s: Mapping[str, float] | None = None) -> Answer:
    """What comparisons say. `repeat_s` has the time of a repeat of each experiment, in seconds."""
    return _answer(compared, (), (), repeat_s or {})


def _answer(
    compared: Sequence[Compared],
    scaling: Sequence[ScalingResult],
    best: Sequence[BestOfResult],
    repeat_s: Mapping[str, float],
    spans: tuple[Span, ...] = (),
    outcomes: Mapping[str, int] | None = None,
) -> Answer:
    curves = curves_of(compared)
    more = [*_more_for_curves(curves), *_more_for_scaling(scaling), *_more_for_best(best)]
    asked = sum(len(curve.points) for curve in curves) + sum(len(rated_points(result)) for result in scaling)
    asked += sum(max(0, sum(own.median is not None for own in one.contenders) - 1) for one in best)
    known = [own for own in more if own is not None]
    return Answer(
        asked=asked,
        undecided=len(more),
        decidable=len(known),
        more_s=_time_s(known, repeat_s),
        stretches=stretches_of(curves),
        reaches=reaches_of(scaling),
        best=tuple(best),
        breakdowns=tuple(breakdown for one in compared for breakdown in one.breakdowns),
        not_compared=tuple(dict.fromkeys(text for one in compared for text in one.lost)),
        spans=spans,
        outcomes=outcomes or {},
        no_cpu=missing_of_sides(each for one in compared for each in one.comparisons),
        beside=_beside(
            [
                side.beside
                for one in compared
                for each in one.comparisons
                for side in (each.baseline, each.candidate)
                if not side.is_reference
            ]
        ),
    )


def _beside(found: Sequence[str]) -> str:
    """What was beside most of what was measured."""
    loaded = [said for said in found if said]
    return loaded[0] if 2 * len(loaded) > len(found) else ""


def _more_for_curves(curves: Iterable[Curve]) -> More:
    found: More = []
    for curve in curves:
        for one in curve.points:
            if one.verdict is not Verdict.AMBIGUOUS:
                continue
            needed = needed_repeats(one, len(curve.points))
            more = None if needed is None else max(0, needed - repeats_made(one))
            ids = (*one.baseline.experiments, *one.candidate.experiments)
            found.append(None if more is None else dict.fromkeys(ids, more))
    return found


def _more_for_scaling(results: Iterable[ScalingResult]) -> More:
    """For each efficiency that is not decided: of the point and of the baseline."""
    found: More = []
    for result in results:
        judged = judged_points(result.points, result.baseline_workers)
        base = next((p.experiment for p in result.points if p.workers == result.baseline_workers), "")
        for point in rated_points(result):
            if point in judged and not _is_open(point):
                continue
            needed = _needed(point) if point in judged else None  # more repeats bring no CPU
            more = None if needed is None else max(0, needed - point.n_repeats)
            found.append(None if more is None else dict.fromkeys((point.experiment, base), more))
    return found


def _more_for_best(results: Iterable[BestOfResult]) -> More:
    found: More = []
    for result in results:
        winner = result.contenders[0] if result.contenders else None
        for place in (*result.tied, *result.untested):
            contender = result.contenders[place]
            needed = result.needed if place in result.untested else _to_part(result, place)
            if needed is None or winner is None:
                found.append(None)
                continue
            made = {one.experiment: one.n_repeats for one in (winner, contender)}
            found.append({key: max(0, needed - number) for key, number in made.items()})
    return found


def _to_part(result: BestOfResult, place: int) -> int | None:
    """The repeats that may tell a contender from the winner; known for the runner-up, whose interval is."""
    gap = result.gap
    if place != 1 or gap is None or gap.ci95_family is None:
        return None
    return repeats_to_exclude(gap.ratio, gap.ci95_family, 1.0, gap.n_repeats)


def _time_s(more: Iterable[Mapping[str, int]], repeat_s: Mapping[str, float]) -> float | None:
    """The time of the repeats of all experiments, each as often as the part that needs most; None if a part has an
    experiment whose time is unknown, or nothing is needed."""
    most: dict[str, int] = {}
    for own in more:
        for key, number in own.items():
            most[key] = max(number, most.get(key, 0))
    if not any(most.values()) or any(key not in repeat_s for key, number in most.items() if number):
        return None
    total = sum(number * repeat_s[key] for key, number in most.items() if number)
    return total if math.isfinite(total) else None


def spans_of(results: Iterable[ExperimentResult]) -> tuple[Span, ...]:
    """One for each figure of each benchmark, in order of appearance."""
    found = grouped(
        ((result.experiment.benchmark, figure.name), ({**result.experiment.parameters, **figure.point}, figure))
        for result in results
        for figure in result.figures
        if not figure.is_secondary
    )
    return tuple(_span(benchmark, name, points) for (benchmark, name), points in found.items())


def _span(benchmark: str, name: str, points: Sequence[_Point]) -> Span:
    low, high = (extreme(points, key=lambda point: point[1].median) for extreme in (min, max))
    first = points[0][1]
    names = distinguishing([settings for settings, _ in points])
    return Span(
        benchmark,
        name,
        first.unit,
        first.better,
        len(points),
        low[1].median,
        _only(low[0], names),
        high[1].median,
        _only(high[0], names),
    )


def _only(settings: Mapping[str, Value], names: Sequence[str]) -> dict[str, Value]:
    return {name: settings[name] for name in names if name in settings}
