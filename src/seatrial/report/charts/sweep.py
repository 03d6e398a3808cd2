"""A figure over a number: size, working set, threads. One line for each combination of the other settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.model.figure_result import FigureResult
from seatrial.model.parameter import Value
from seatrial.model.units import Unit
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.vega import SERIES_COLOURS, render
from seatrial.report.tables import Cell, Column, Table
from seatrial.report.units import arrow, bare_name, display_scale, label, setting_number, show, show_range
from seatrial.report.view import BenchmarkView, Row, TrialView

_FEWEST_POINTS = 3
_WIDE_RANGE = 20
"""From this ratio of largest to smallest on, an axis is logarithmic."""
_MOST_TICKS = 9
_WIDTH, _HEIGHT = 640, 250
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 2])

Measured = tuple[Row, FigureResult]
Line = tuple[str, list[tuple[float, FigureResult]]]


def over_a_number(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """One chart for each unit that was measured over at least three values of one number.

    Two numbers that vary together inside the program (a matrix of CPU pairs) make no line; they are left to a heat map.
    """
    units: dict[Unit, list[Measured]] = {}
    for row, figure in benchmark.measured:
        units.setdefault(figure.unit, []).append((row, figure))
    for number, (unit, measured) in enumerate(units.items(), start=1):
        axis = _axis(measured)
        if axis is None:
            continue
        lines = _lines(measured, axis)
        shown = sorted(lines, key=lambda line: -len(line[1]))[: len(SERIES_COLOURS)]
        lines = [line for line in lines if line in shown]
        title = f"{benchmark.name} over {bare_name(axis)}"
        better = measured[0][1].better
        caption = f"Medians with their 95 % intervals; {better.value} is better {arrow(better)}."
        if len(shown) < len(_lines(measured, axis)):
            caption += f" Shown are {len(shown)} of {len(_lines(measured, axis))} lines; the table above has all."
        ident = view.anchor(f"{benchmark.name}-over-{axis}-{number}")
        svg = render(_spec(lines, axis, unit), ident, title, f"{caption} {_in_words(lines, axis, unit)}")
        yield Chart(title, caption, svg, _table(title, lines, axis, unit))


def _settings(row: Row, figure: FigureResult) -> Mapping[str, Value]:
    return {**row.result.experiment.parameters, **figure.point}


def _axis(measured: Sequence[Measured]) -> str | None:
    """The numeric setting to draw over: the only one that varies inside the program, else one of the parameters."""
    inside: dict[str, set[float]] = {}
    outside: dict[str, set[float]] = {}
    for row, figure in measured:
        for found, settings in ((inside, figure.point), (outside, row.result.experiment.parameters)):
            for name, value in settings.items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    found.setdefault(name, set()).add(float(value))
    varying = [name for name, values in inside.items() if len(values) > 1]
    if len(varying) > 1:
        return None
    candidates = inside if varying else outside
    best = max(candidates, key=lambda candidate: len(candidates[candidate]), default=None)
    return best if best is not None and len(candidates[best]) >= _FEWEST_POINTS else None


def _lines(measured: Sequence[Measured], axis: str) -> list[Line]:
    """Figures that differ in nothing but the axis belong to one line, named by what tells the lines apart."""
    groups: dict[tuple[object, ...], tuple[list[str], list[tuple[float, FigureResult]]]] = {}
    everything = [_settings(row, figure) for row, figure in measured]
    telling = [
        name
        for name in dict.fromkeys(key for settings in everything for key in settings)
        if name != axis and len({settings.get(name) for settings in everything}) > 1
    ]
    for (row, figure), settings in zip(measured, everything, strict=True):
        x = settings.get(axis)
        if not isinstance(x, int | float) or isinstance(x, bool):
            continue
        key = (figure.name, row.result.experiment.environment, *(settings.get(name) for name in telling))
        words = [figure.name, *(label(name, settings[name]) for name in telling if name in settings)]
        groups.setdefault(key, (words, []))[1].append((float(x), figure))
    return [
        (" · ".join(words), sorted(points, key=lambda p: p[0])) for words, points in groups.values() if len(points) > 1
    ]


def _spec(lines: Sequence[Line], axis: str, unit: Unit) -> dict[str, Any]:
    scale, scaled_unit = display_scale([f.median for _, points in lines for _, f in points], unit)
    rows: list[dict[str, Any]] = [
        {
            "line": name,
            "x": x,
            "y": figure.median / scale,
            "low": (figure.ci95 or (figure.median, figure.median))[0] / scale,
            "high": (figure.ci95 or (figure.median, figure.median))[1] / scale,
        }
        for name, points in lines
        for x, figure in points
    ]
    xs = sorted({float(row["x"]) for row in rows})
    ys = [float(row["y"]) for row in rows]
    direction = arrow(lines[0][1][0][1].better)
    x: dict[str, Any] = {
        "field": "x",
        "type": "quantitative",
        "title": bare_name(axis),
        "scale": _scale_of(xs),
        "axis": {"values": _ticks(xs), "labelExpr": _tick_names(axis, xs), "labelOverlap": True, "grid": False},
    }
    y = {"field": "y", "type": "quantitative", "title": f"{scaled_unit or 'ratio'} {direction}", "scale": _scale_of(ys)}
    names = [name for name, _ in lines]
    told_apart = {"field": "line", "type": "nominal", "sort": None, "title": None}
    legend = (
        {"orient": "bottom", "columns": 2, "symbolType": "stroke", "symbolSize": 400, "columnPadding": 60}
        if len(names) > 1
        else None
    )
    colour = {**told_apart, "scale": {"domain": names, "range": list(SERIES_COLOURS[: len(names)])}, "legend": legend}
    dash = {**told_apart, "scale": {"domain": names, "range": list(_DASHES[: len(names)])}, "legend": legend}
    return {
        "data": {"values": rows},
        "width": _WIDTH,
        "height": _HEIGHT,
        "encoding": {"x": x, "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 1.5},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}},
            },
            {"mark": {"type": "line", "strokeWidth": 1.8}, "encoding": {"y": y, "strokeDash": dash}},
            {"mark": {"type": "point", "filled": True, "size": 30, "opacity": 1}, "encoding": {"y": y}},
        ],
    }


def _scale_of(values: Sequence[float]) -> dict[str, Any]:
    if min(values) > 0 and max(values) >= _WIDE_RANGE * min(values):
        return {"type": "log", "nice": False}
    return {"zero": True}


def _ticks(xs: Sequence[float]) -> list[float]:
    """At most nine of the measured values: every k-th, so that ticks stand where points are."""
    step = -(-len(xs) // _MOST_TICKS)
    return list(xs[::step])


def _tick_names(axis: str, xs: Sequence[float]) -> str:
    """A Vega expression from value to text. It holds nothing but numbers and units that this module spells itself."""
    choices = [f"datum.value == {x!r} ? '{setting_number(axis, x)}'" for x in _ticks(xs)]
    return " : ".join([*choices, "''"])


def _in_words(lines: Sequence[Line], axis: str, unit: Unit) -> str:
    return " ".join(
        f"{name}: from {show(points[0][1].median, unit)} at {setting_number(axis, points[0][0])} to "
        f"{show(points[-1][1].median, unit)} at {setting_number(axis, points[-1][0])}."
        for name, points in lines
    )


def _table(title: str, lines: Sequence[Line], axis: str, unit: Unit) -> Table:
    columns = [
        Column("Line"),
        Column(bare_name(axis), numeric=True),
        Column("Median", numeric=True),
        Column("95 % interval", numeric=True),
    ]
    rows = [
        [
            Cell(name),
            Cell(setting_number(axis, x), x),
            Cell(show(figure.median, unit, 4), figure.median),
            Cell(show_range(*figure.ci95, unit) if figure.ci95 else "needs 6 repeats"),
        ]
        for name, points in lines
        for x, figure in points
    ]
    return Table(title, columns, rows)
