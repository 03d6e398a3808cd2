"""Speed against energy: each experiment of a study as a point with its intervals, and the front of those that no other
one beats in both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.power import SCOPE, SCOPES, of_result
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import NO_VALUE, arrow, display_scale, label, show, show_range
from seatrial.model.study.study import ENVIRONMENT_PREFIX
from seatrial.report.blocks import Cell, Cells, Chart, Table, headings, right
from seatrial.report.charts import vega

_WIDTH, _HEIGHT = 620, 300
_FEWEST = 3
_MOST_NAMED = 12
_ROOM = 0.06
_LETTER_PX, _LINE_PX = 6.6, 14.0
_BESIDE = ((8, -9, "left"), (8, 13, "left"), (-8, -9, "right"), (-8, 13, "right"))
"""Where a name is beside its point: pixels to the right and down, and its alignment; the first that is free."""
Given = Mapping[str, Mapping[str, Value | None]]
"""Experiment -> the values of the axes of its study."""


class TradeOff(Frozen):
    """An experiment: how fast it is, and what a result costs. `is_best`: no other is better in both."""

    name: str
    speed: FigureResult
    cost: FigureResult
    is_best: bool = False


def trade_offs(results: Sequence[ExperimentResult], ident: str, given: Given) -> Iterator[Chart]:
    """A chart for each figure that three experiments or more have with its energy, of the largest scope that they
    have."""
    by_name = grouped((result.experiment.benchmark, result) for result in results)
    number = 0
    for name, own in by_name.items():
        declared = registry().get(name)
        for figure in () if declared is None else declared.figures:
            cost = None if figure.is_secondary else of_result(figure)
            each = ((scope, _points(own, figure.name, cost.name, scope, given)) for scope in SCOPES) if cost else ()
            scope, points = next((one for one in each if len(one[1]) >= _FEWEST), (Scope.NODE, []))
            if points:
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


def _points(results: Sequence[ExperimentResult], speed: str, cost: str, scope: Scope, given: Given) -> list[TradeOff]:
    found: list[tuple[str, FigureResult, FigureResult]] = []
    for result in results:
        fast = [one for one in result.figures if one.name == speed and one.median > 0]
        costs = {
            tuple((name, value) for name, value in one.point.items() if name != SCOPE): one
            for one in result.figures
            if one.name == cost and one.point.get(SCOPE) == scope.value
        }
        if len(fast) == 1 and (own := costs.get(tuple(fast[0].point.items()))) is not None:
            found.append((result.id, fast[0], own))
    names = _names(results, given) if found else {}
    return [TradeOff(names[key], speed_of, cost_of) for key, speed_of, cost_of in found]


def environments_given(results: Sequence[ExperimentResult], given: Given) -> dict[str, dict[str, Value | None]]:
    """Experiment -> the settings of its environment that its study gave and that differ among these, without the
    prefix."""
    own = {result.id: given.get(result.id, {}) for result in results}
    names = dict.fromkeys(name for one in own.values() for name in one if name.startswith(ENVIRONMENT_PREFIX))
    varying = [name for name in names if len({repr(one.get(name)) for one in own.values()}) > 1]
    return {
        key: {name.removeprefix(ENVIRONMENT_PREFIX): one[name] for name in varying if name in one}
        for key, one in own.items()
    }


def _names(results: Sequence[ExperimentResult], given: Given) -> Mapping[str, str]:
    """Experiment -> the settings that distinguish it; its environment if none does."""
    all_of = [result.experiment.parameters for result in results]
    varying = [name for name in all_of[0] if len({repr(own.get(name)) for own in all_of}) > 1]
    of_environment = environments_given(results, given)
    return {
        result.id: ", ".join(
            label(name, value)
            for name, value in (
                *((name, result.experiment.parameters[name]) for name in varying),
                *of_environment[result.id].items(),
            )
        )
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
    domains = {axis: _domain(rows, axis) for axis in ("x", "y")}
    x = vega.quantity("x", f"{_plain(x_of.name)}, {x_unit} {arrow(x_of.better)}", scale={"domain": domains["x"]})
    y = vega.quantity("y", f"{_plain(y_of.name)}, {y_unit} {arrow(y_of.better)}", scale={"domain": domains["y"]})
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
    for (dx, dy, align), named in _beside(rows, domains).items():
        layers += vega.text_layers(named, {"align": align, "dx": dx, "dy": dy, "color": "var(--ink)"}, x, y)
    return {"width": _WIDTH, "height": _HEIGHT, "layer": layers}


def _ends(axis: str, figure: FigureResult, scale: float) -> dict[str, float]:
    low, high = figure.ci95 or (figure.median, figure.median)
    return {axis: figure.median / scale, f"{axis}_low": low / scale, f"{axis}_high": high / scale}


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _beside(
    rows: Sequence[Mapping[str, Any]], domains: Mapping[str, tuple[float, float]]
) -> dict[tuple[int, int, str], list[Mapping[str, Any]]]:
    """The rows whose names have room, by where they are beside their points; those on the front first. The others are
    in the table."""
    found: dict[tuple[int, int, str], list[Mapping[str, Any]]] = {}
    taken: list[tuple[float, float, float, float]] = []
    for row in sorted(rows, key=lambda row: not row["best"])[:_MOST_NAMED]:
        (x_low, x_high), (y_low, y_high) = domains["x"], domains["y"]
        x = _WIDTH * (row["x"] - x_low) / (x_high - x_low)
        y = _HEIGHT * (1 - (row["y"] - y_low) / (y_high - y_low))
        length = _LETTER_PX * len(row["text"])
        for dx, dy, align in _BESIDE:
            left = x + dx - (length if align == "right" else 0.0)
            box = (left, left + length, y + dy - _LINE_PX / 2, y + dy + _LINE_PX / 2)
            is_free = all(box[0] > b[1] or box[1] < b[0] or box[2] > b[3] or box[3] < b[2] for b in taken)
            if is_free and box[0] >= 0 and box[1] <= _WIDTH and box[2] >= 0 and box[3] <= _HEIGHT:
                taken.append(box)
                found.setdefault((dx, dy, align), []).append(row)
                break
    return found


def _domain(rows: Sequence[Mapping[str, Any]], axis: str) -> tuple[float, float]:
    low, high = min(row[f"{axis}_low"] for row in rows), max(row[f"{axis}_high"] for row in rows)
    room = (high - low or abs(high) or 1.0) * _ROOM
    return max(0.0, low - room), high + 2 * room
