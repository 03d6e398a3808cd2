"""The roofline as a picture: flop/s over flop/B, both logarithmic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from seatrial.report.charts.chart import Chart
from seatrial.report.charts.roofline_elements import Point, Ridge, Roof, Roofline, roofline
from seatrial.report.charts.vega import render
from seatrial.report.tables import Cell, Column, Table
from seatrial.report.units import show
from seatrial.report.view import TrialView

_WIDTH, _HEIGHT = 860, 400
_GFLOP = 1e9
_ROOM = 1.8
"""The axes go this factor beyond what is drawn."""
_TEXT: dict[str, Any] = {"type": "text", "fontSize": 12}
_SHAPES = {"": "circle", "fp64": "diamond", "fp32": "square"}
_SERIES = {"fp64": "var(--series-1)", "fp32": "var(--series-2)"}


def roofline_chart(view: TrialView) -> Chart | None:
    """The chart of a trial, or None where memory or arithmetic was not measured."""
    made = roofline(view)
    if made is None:
        return None
    title = "Roofline"
    said = _in_words(made)
    svg = render(_spec(made), view.anchor("roofline-chart"), title, said)
    return Chart(title, said, svg, _table(made))


def _in_words(made: Roofline) -> str:
    sentences = [
        f"Below {ridge.intensity:.3g} flop/B memory bounds a program of {ridge.compute.precision}, above it arithmetic."
        for ridge in made.ridges
    ]
    for point in made.points:
        bound = _bound(made, point)
        share = f", {point.rate / bound * 100:.0f} % of the measured roof above it" if bound else ""
        sentences.append(f"{point.name}: {show(point.rate, 'flop/s')} at {point.intensity:.3g} flop/B{share}.")
    return " ".join(sentences)


def _bound(made: Roofline, point: Point) -> float | None:
    """What the measured roofs allow at a point's intensity, in flop/s: of its own precision where it has one."""
    memory = [roof.value * point.intensity for roof in made.roofs if roof.is_memory and roof.basis == "measured"]
    own = [roof.value for roof in made.roofs if roof.basis == "measured" and roof.precision == point.precision]
    compute = own or [max(r.value for r in made.roofs if not r.is_memory and r.basis == "measured")]
    return min((*memory, *compute), default=None)


def _spec(made: Roofline) -> dict[str, Any]:
    left, right = _span(made)
    memory = [roof for roof in made.roofs if roof.is_memory]
    compute = [roof for roof in made.roofs if not roof.is_memory]
    highest = max(roof.value for roof in compute)
    lowest = min(min(roof.value for roof in memory) * left, *(point.rate for point in made.points))
    low, high = lowest / _ROOM / _GFLOP, highest * _ROOM / _GFLOP
    x = {
        "field": "x",
        "type": "quantitative",
        "title": "arithmetic intensity, flop/B",
        "scale": {"type": "log", "domain": [left, right], "nice": False},
        "axis": {"values": _ticks(left, right), "format": "~g"},
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "title": "GFLOP/s",
        "scale": {"type": "log", "domain": [low, high], "nice": False},
        "axis": {"values": _ticks(low, high), "format": "~g"},
    }
    angle = math.degrees(math.atan((_HEIGHT / math.log(high / low)) / (_WIDTH / math.log(right / left))))
    layers: list[dict[str, Any]] = []
    for roof in made.roofs:
        layers += _roof(roof, made, x, y, left, right)
    layers += _memory_names(memory, x, y, left, low, angle)
    layers += _compute_names(compute, x, y, right)
    layers += _ridges(made.ridges, x, y, low)
    layers += _points(made.points, x, y)
    return {"width": _WIDTH, "height": _HEIGHT, "layer": layers}


def _span(made: Roofline) -> tuple[float, float]:
    """The ends of the axis of intensity: room on both sides of all points and ridges."""
    at = [point.intensity for point in made.points] + [ridge.intensity for ridge in made.ridges]
    return min(at) / 3, max(at) * 4


def _ticks(low: float, high: float) -> list[float]:
    """Powers of ten within the axis; with 2 and 5 between them where there are few."""
    powers = [10.0**k for k in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    between = (1, 2, 5) if high / low < 3e3 else (1,)
    return [tick for power in powers for factor in between if low <= (tick := round(power * factor, 12)) <= high]


def _roof(
    roof: Roof, made: Roofline, x: dict[str, Any], y: dict[str, Any], left: float, right: float
) -> list[dict[str, Any]]:
    """A memory roof rises until it meets the highest compute roof; a compute roof begins at the steepest memory roof."""
    like = [r.value for r in made.roofs if not r.is_memory and r.basis == roof.basis]
    compute = max(like or [r.value for r in made.roofs if not r.is_memory])
    bandwidth = max(r.value for r in made.roofs if r.is_memory)
    if roof.is_memory:
        ends = [(left, roof.value * left), (compute / roof.value, compute)]
    else:
        ends = [(roof.value / bandwidth, roof.value), (right, roof.value)]
    is_limit = roof.basis == "limit"
    mark = {
        "type": "line",
        "color": _SERIES.get(roof.precision, "var(--series-3)"),
        "strokeWidth": 1.2 if is_limit else 2.2,
        "strokeDash": [6, 3] if is_limit else [1, 0],
    }
    values = [{"x": at, "y": rate / _GFLOP} for at, rate in ends]
    return [{"data": {"values": values}, "mark": mark, "encoding": {"x": x, "y": y}}]


def _memory_names(
    roofs: Sequence[Roof], x: dict[str, Any], y: dict[str, Any], left: float, low: float, angle: float
) -> list[dict[str, Any]]:
    """Names along the slopes: the limit above its line, the measured roof below its own."""
    layers = []
    for roof in roofs:
        is_limit = roof.basis == "limit"
        at = left * 1.15
        text = f"{roof.name} {roof.basis}: {show(roof.value, 'B/s')}"
        mark = {**_TEXT, "angle": -angle, "align": "left", "dy": -8 if is_limit or len(roofs) == 1 else 15}
        layers.append(_text(text, at, roof.value * at / _GFLOP, {**mark, "fill": "var(--series-3)"}, x, y))
    return layers


def _compute_names(
    roofs: Sequence[Roof], x: dict[str, Any], y: dict[str, Any], right: float
) -> list[dict[str, Any]]:  # fmt: skip
    """Names at the right end: the measured roof below its line, a limit that is near it in the same words above."""
    layers = []
    for roof in roofs:
        is_limit = roof.basis == "limit"
        text = f"{roof.name} {roof.basis}: {show(roof.value, 'flop/s')}"
        mark = {**_TEXT, "align": "right", "dy": -8 if is_limit else 14, "fill": _SERIES[roof.precision]}
        layers.append(_text(text, right, roof.value / _GFLOP, mark, x, y))
    return layers


def _text(
    text: str, at: float, height: float, mark: dict[str, Any], x: dict[str, Any], y: dict[str, Any]
) -> dict[str, Any]:  # fmt: skip
    encoding = {"x": x, "y": y, "text": {"field": "text", "type": "nominal"}}
    return {"data": {"values": [{"x": at, "y": height, "text": text}]}, "mark": mark, "encoding": encoding}


def _ridges(ridges: Sequence[Ridge], x: dict[str, Any], y: dict[str, Any], low: float) -> list[dict[str, Any]]:
    """A thin line from each ridge down to the axis, its intensity beside it."""
    layers: list[dict[str, Any]] = []
    for count, ridge in enumerate(sorted(ridges, key=lambda ridge: ridge.intensity)):
        values = [{"x": ridge.intensity, "y": ridge.rate / _GFLOP}, {"x": ridge.intensity, "y": low}]
        mark = {"type": "line", "color": "var(--axis)", "strokeWidth": 1, "strokeDash": [2, 3]}
        layers.append({"data": {"values": values}, "mark": mark, "encoding": {"x": x, "y": y}})
        text = f"ridge {ridge.compute.precision}: {ridge.intensity:.3g} flop/B"
        words = {**_TEXT, "align": "left", "dx": 6, "dy": -8 - 18 * count, "fill": "var(--muted)"}
        layers.append(_text(text, ridge.intensity, low, words, x, y))
    return layers


def _points(points: Sequence[Point], x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    layers: list[dict[str, Any]] = []
    for point in points:
        colour = _SERIES.get(point.precision, "var(--series-3)")
        values = [{"x": point.intensity, "y": point.rate / _GFLOP}]
        mark = {"type": "point", "filled": True, "size": 90, "opacity": 1, "color": colour, "shape": _SHAPES[point.precision]}
        layers.append({"data": {"values": values}, "mark": mark, "encoding": {"x": x, "y": y}})
        text = f"{point.name} {show(point.rate, 'flop/s')}"
        words = {**_TEXT, "align": "left", "dx": 10, "dy": 12, "fill": "var(--ink)"}
        layers.append(_text(text, point.intensity, point.rate / _GFLOP, words, x, y))
    return layers


def _table(made: Roofline) -> Table:
    columns = [
        Column("Element"),
        Column("Intensity", numeric=True),
        Column("Rate", numeric=True),
        Column("Basis"),
        Column("Where it comes from"),
    ]
    rows = [
        *(
            [Cell(f"roof: {roof.name}"), Cell(""), _roof_rate(roof), Cell(roof.basis), Cell(roof.origin)]
            for roof in made.roofs
        ),
        *(
            [
                Cell(f"ridge: {ridge.compute.name} over {ridge.memory.name}"),
                Cell(f"{ridge.intensity:.3g} flop/B", ridge.intensity),
                Cell(show(ridge.rate, "flop/s"), ridge.rate),
                Cell("derived"),
                Cell("the measured compute roof over the measured memory roof"),
            ]
            for ridge in made.ridges
        ),
        *(
            [
                Cell(f"point: {point.name}"),
                Cell(f"{point.intensity:.3g} flop/B", point.intensity),
                Cell(show(point.rate, "flop/s"), point.rate),
                Cell("measured"),
                Cell(f"{point.origin}; counted: {point.counted}"),
            ]
            for point in made.points
        ),
    ]
    return Table("What the roofline is drawn of", columns, rows)


def _roof_rate(roof: Roof) -> Cell:
    return Cell(show(roof.value, "B/s" if roof.is_memory else "flop/s"), roof.value)
