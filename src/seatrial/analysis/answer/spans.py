"""The range of each figure over the experiments of a study that neither compares nor scales."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seatrial.model.answer import Span
from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.parameter import Value
from seatrial.model.varying import distinguishing

_Point = tuple[Mapping[str, Value], FigureResult]


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
