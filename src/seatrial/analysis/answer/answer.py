"""The answer of a study, or of comparisons alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.answer.reaches import open_points, rated_points, reaches_of
from seatrial.analysis.answer.stretches import Curve, curves_of, stretches_of
from seatrial.analysis.needed_repeats import ROOM, needed_repeats, repeats_made, repeats_to_exclude
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.study.answer import Answer, Span
from seatrial.model.study.comparison import Verdict
from seatrial.model.study.result import BestOfResult, Compared, ScalingResult, StudyResult
from seatrial.model.study.study import distinguishing

_Point = tuple[Mapping[str, Value], FigureResult]

More = list[Mapping[str, int] | None]
"""For each undecided part of an answer, the repeats that may decide it, by experiment; None: unknown, or none help."""


def answer_of_study(result: StudyResult) -> Answer:
    """What a study says: its comparisons, its scaling and its sweeps; else the range of each figure."""
    is_asked = bool(result.compared or result.scaling or result.best_of)
    answer = _answer(
        result.compared,
        result.scaling,
        result.best_of,
        result.repeat_s,
        spans=() if is_asked else spans_of(result.results),
        outcomes=Counter(one.outcome.state.value for one in result.results),
    )
    if answer.more_s is None:
        return answer
    policy = result.study.repeat
    needs = [one.needed for one in answer.stretches] + [one.needed for one in answer.reaches]
    needed = max((number for number in needs if number is not None), default=0)
    return replace(
        answer,
        budget_s=max(policy.budget_s, result.spent_s + result.start_s + ROOM * answer.more_s),
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
    asked += sum(max(0, _ranked(one) - 1) for one in best)
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
    )


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
    return [
        None if point.more is None else dict.fromkeys((point.experiment, point.baseline), point.more)
        for result in results
        for point in open_points(result)
    ]


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


def _ranked(result: BestOfResult) -> int:
    return sum(contender.median is not None for contender in result.contenders)


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
    found: dict[tuple[str, str], list[_Point]] = {}
    for result in results:
        for figure in (one for one in result.figures if not one.is_secondary):
            settings = {**result.experiment.parameters, **figure.point}
            found.setdefault((result.experiment.benchmark, figure.name), []).append((settings, figure))
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
