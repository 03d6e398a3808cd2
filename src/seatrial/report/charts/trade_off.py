"""Speed against energy: each experiment of a study as a point with its intervals, and the front of those that no other
one beats in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.power import SCOPE, SCOPES, of_result
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import NO_VALUE, arrow, display_scale, settings, show, show_range
from seatrial.report.blocks import Cell, Cells, Chart, Table, headings, right
from seatrial.report.charts import vega

_WIDTH, _HEIGHT = 620, 300
_FEWEST = 3
_MOST_NAMED = 12
_ROOM = 0.06


class TradeOff(Frozen):
    """An experiment: how fast it is, and what a result costs. `is_best`: no other is better in both."""

    name: str
    speed: FigureResult
    cost: FigureResult
    is_best: bool = False


def trade_offs(results: Sequence[ExperimentResult], ident: str) -> Iterator[Chart]:
    """A chart for each figure and scope that three experiments or more have with its energy."""
    by_name = grouped((result.experiment.benchmark, result) for result in results)
    number = 0
    for name, own in by_name.items():
        declared = registry().get(name)
        for figure in () if declared is None else declared.figures:
            cost = None if figure.is_secondary else of_result(figure)
            for scope in SCOPES if cost is not None else ():
                points = _points(own, figure.name, cost.name if cost else "", scope)
                if len(points) >= _FEWEST:
                    number += 1
                    yield _chart(f"{ident}-{number}-energy", f"{name} {figure.name}", scope, front(points))


def front(points: Sequence[TradeOff]) -> list[TradeOff]:
    """The points, those on the Pareto front marked: by their medians, no other one is at least as good in both, and
    better in one."""
    return [
        TradeOff(one.name, one.speed, one.cost, not any(_beats(other, one) for other in points if other is not one))
        for one in points
    ]


def _beats(one: TradeOff, other: TradeOff) -> bool:
    pairs = [(one.speed, other.speed), (one.cost, other.cost)]
    gains = [a.median - b.median if a.better is Better.HIGHER else b.median - a.median for a, b in pairs]
    return all(gain >= 0 for gain in gains) and any(gain > 0 for gain in gains)


def _points(results: Sequence[ExperimentResult], speed: str, cost: str, scope: Scope) -> list[TradeOff]:
    names = _names(results)
    found: list[TradeOff] = []
    for result in results:
        fast = [one for one in result.figures if one.name == speed and one.median > 0]
        costs = {
            tuple((name, value) for name, value in one.point.items() if name != SCOPE): one
            for one in result.figures
            if one.name == cost and one.point.get(SCOPE) == scope.value
        }
        if len(fast) == 1 and (own := costs.get(tuple(fast[0].point.items()))) is not None:
            found.append(TradeOff(names[result.id], fast[0], own))
    return found


def _names(results: Sequence[ExperimentResult]) -> Mapping[str, str]:
    """Experiment -> the parameters that distinguish it; its environment if none does."""
    all_of = [result.experiment.parameters for result in results]
    varying = [name for name in all_of[0] if len({repr(own.get(name)) for own in all_of}) > 1]
    return {
        result.id: settings({name: result.experiment.parameters[name] for name in varying})
        or result.experiment.environment[:8]
        for result in results
    }


def _chart(ident: str, what: str, scope: Scope, points: Sequence[TradeOff]) -> Chart:
    first = points[0]
    title = f"{what}: speed against energy"
    caption = (
        f"Medians with 95 % intervals, of which the errors of the sensors are a part; energy of the {scope.value}. "
        "Filled points are on the front: no other one is faster and costs less."
    )
    best = [one for one in points if one.is_best]
    words = " ".join(f"{one.name}: {_text(one.speed)}, {_text(one.cost)}." for one in best)
    rows: list[Cells] = [
        [one.name, *_cells(one.speed), *_cells(one.cost), "yes" if one.is_best else "no"]
        for one in sorted(points, key=lambda one: one.speed.median, reverse=first.speed.better is Better.HIGHER)
    ]
    numbers = right(first.speed.name, "95 % interval", first.cost.name, "95 % interval")
    table = Table.of(title, headings("Experiment", *numbers, "On the front"), rows)
    return vega.chart(_spec(points), ident, title, caption, table, words)


def _text(figure: FigureResult) -> str:
    return f"{figure.name} {show(figure.median, figure.unit)}"


def _cells(figure: FigureResult) -> list[Cell]:
    interval = NO_VALUE if figure.ci95 is None else show_range(*figure.ci95, figure.unit, beside=figure.median)
    return [Cell.amount(figure.median, figure.unit, 4), Cell(interval)]


def _spec(points: Sequence[TradeOff]) -> dict[str, Any]:
    x_of, y_of = points[0].speed, points[0].cost
    (x_scale, x_unit), (y_scale, y_unit) = (
        display_scale([getattr(one, side).median for one in points], figure.unit)
        for side, figure in (("speed", x_of), ("cost", y_of))
    )
    rows: list[dict[str, Any]] = [
        {"text": one.name, "best": one.is_best, **_ends("x", one.speed, x_scale), **_ends("y", one.cost, y_scale)}
        for one in points
    ]
    x = vega.quantity("x", f"{x_of.name}, {x_unit} {arrow(x_of.better)}", scale=_domain(rows, "x"))
    y = vega.quantity("y", f"{y_of.name}, {y_unit} {arrow(y_of.better)}", scale=_domain(rows, "y"))
    best = sorted((row for row in rows if row["best"]), key=lambda row: row["x"])
    colour = "var(--series-1)"
    wide = {"x": {**x, "field": "x_low"}, "x2": {"field": "x_high"}, "y": y}
    high = {"x": x, "y": {**y, "field": "y_low"}, "y2": {"field": "y_high"}}
    layers = [
        vega.layer("line", {"x": x, "y": y}, best, strokeWidth=1, color="var(--muted)", interpolate="linear"),
        vega.layer("rule", wide, rows, strokeWidth=1.6, color=colour),
        vega.layer("rule", high, rows, strokeWidth=1.6, color=colour),
        vega.layer("point", {"x": x, "y": y}, best, filled=True, size=60, opacity=1, color=colour),
        vega.layer("point", {"x": x, "y": y}, [row for row in rows if not row["best"]], size=50, color=colour),
    ]
    if len(rows) <= _MOST_NAMED:
        layers += vega.text_layers(rows, {"align": "left", "dx": 8, "dy": -9, "color": "var(--ink)"}, x, y)
    return {"width": _WIDTH, "height": _HEIGHT, "layer": layers}


def _ends(axis: str, figure: FigureResult, scale: float) -> dict[str, float]:
    low, high = figure.ci95 or (figure.median, figure.median)
    return {axis: figure.median / scale, f"{axis}_low": low / scale, f"{axis}_high": high / scale}


def _domain(rows: Sequence[Mapping[str, Any]], axis: str) -> dict[str, Any]:
    low, high = min(row[f"{axis}_low"] for row in rows), max(row[f"{axis}_high"] for row in rows)
    room = (high - low or abs(high) or 1.0) * _ROOM
    return {"domain": [max(0.0, low - room), high + 2 * room], "nice": True}
