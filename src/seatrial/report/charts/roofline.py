"""The roofline chart: flop/s over flop/B, both axes logarithmic."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from seatrial.model.spelling import show, show_percent
from seatrial.report.blocks import Cell, Cells, Chart, Table, right
from seatrial.report.charts.heat import short
from seatrial.report.charts.roofline_devices import Ridge, Roof, Roofline, RooflinePoint, device_rooflines, roofline
from seatrial.report.charts.vega import chart, layer, logarithmic, text_layers
from seatrial.report.pages.view import TrialView

_WIDTH, _HEIGHT = 860, 400
_GFLOP = 1e9
_ROOM = 1.8
"""The axes extend beyond the drawn elements by this factor."""
_SHAPES = {"": "circle", "fp64": "diamond", "fp32": "square"}
_SERIES = {"fp64": "var(--series-1)", "fp32": "var(--series-2)"}


def roofline_charts(view: TrialView) -> Iterator[Chart]:
    """The charts of a trial: of the processor, and of each device with both memory and arithmetic measured."""
    of_processor = roofline(view)
    if of_processor is not None:
        yield _chart(view, of_processor, "Roofline", "roofline-chart")
    for device, model in device_rooflines(view):
        yield _chart(view, model, f"Roofline of {device}", f"roofline-{device}")


def _chart(view: TrialView, model: Roofline, title: str, anchor: str) -> Chart:
    return chart(_spec(model), view.anchor(anchor), title, _in_words(model), _table(model))


def _in_words(model: Roofline) -> str:
    ridges = [f"{short(ridge.intensity)} flop/B in {ridge.compute.precision}" for ridge in model.ridges]
    shares = [
        f"{point.name} {show(point.rate, 'flop/s')} at {short(point.intensity)} flop/B, "
        f"{show_percent(point.rate / _bound(model, point))}"
        for point in model.points
    ]
    text = f"Memory limits kernels below the ridge ({' and '.join(ridges)}), arithmetic those above."
    text += f" Share of the measured roof: {'; '.join(shares)}."
    return text + " " + " ".join(dict.fromkeys(point.counting for point in model.points))


def _bound(model: Roofline, point: RooflinePoint) -> float:
    """The measured roof at a point's intensity, in flop/s: of the point's precision if it has one."""
    memory = [roof.value * point.intensity for roof in model.roofs if roof.is_memory and roof.basis == "measured"]
    own = [roof.value for roof in model.roofs if roof.basis == "measured" and roof.precision == point.precision]
    compute = own or [max(r.value for r in model.roofs if not r.is_memory and r.basis == "measured")]
    return min((*memory, *compute))


def _spec(model: Roofline) -> dict[str, Any]:
    # Room for the names on the right of all points and ridges.
    at = [point.intensity for point in model.points] + [ridge.intensity for ridge in model.ridges]
    left, end = min(at) / 3, max(at) * 8
    memory = [roof for roof in model.roofs if roof.is_memory]
    compute = [roof for roof in model.roofs if not roof.is_memory]
    highest = max(roof.value for roof in compute)
    lowest = min(min(roof.value for roof in memory) * left, *(point.rate for point in model.points))
    low, high = lowest / _ROOM / _GFLOP, highest * _ROOM / _GFLOP
    x = logarithmic("x", "arithmetic intensity, flop/B", left, end)
    y = logarithmic("y", "GFLOP/s", low, high)
    angle = math.degrees(math.atan((_HEIGHT / math.log(high / low)) / (_WIDTH / math.log(end / left))))
    layers: list[dict[str, Any]] = []
    for roof in model.roofs:
        layers.append(_roof(roof, model, x, y, left, end))
    layers += _memory_names(memory, x, y, min(ridge.intensity for ridge in model.ridges), angle)
    layers += _compute_names(compute, x, y, max(ridge.intensity for ridge in model.ridges))
    layers += _ridges(model.ridges, x, y, low)
    layers += _points(model.points, x, y)
    return {"width": _WIDTH, "height": _HEIGHT, "layer": layers}


def _roof(
    roof: Roof, model: Roofline, x: dict[str, Any], y: dict[str, Any], left: float, right: float
) -> dict[str, Any]:
    """A memory roof rises to the highest compute roof; a compute roof begins at the steepest memory roof."""
    like = [r.value for r in model.roofs if not r.is_memory and r.basis == roof.basis]
    compute = max(like or [r.value for r in model.roofs if not r.is_memory])
    bandwidth = max(r.value for r in model.roofs if r.is_memory)
    ends = [(roof.value / bandwidth, roof.value), (right, roof.value)]
    if roof.is_memory:
        ends = [(left, roof.value * left), (compute / roof.value, compute)]
    width, dash = (1.2, [6, 3]) if roof.basis == "limit" else (2.2, [1, 0])
    colour = _SERIES.get(roof.precision, "var(--series-3)")
    rows = [{"x": at, "y": rate / _GFLOP} for at, rate in ends]
    return layer("line", {"x": x, "y": y}, rows, color=colour, strokeWidth=width, strokeDash=dash)


def _memory_names(
    roofs: Sequence[Roof], x: dict[str, Any], y: dict[str, Any], ridge: float, angle: float
) -> list[dict[str, Any]]:
    """Names along the slope, left of the ridge: the limit above, the measured roof below."""
    layers = []
    at = ridge / 6
    for roof in roofs:
        is_limit = roof.basis == "limit"
        text = f"{roof.name}, {roof.basis}: {show(roof.value, 'B/s')}"
        mark = {"angle": -angle, "dy": -9 if is_limit else 16, "fill": "var(--series-3)"}
        layers += text_layers([{"x": at, "y": roof.value * at / _GFLOP, "text": text}], mark, x, y)
    return layers


def _compute_names(roofs: Sequence[Roof], x: dict[str, Any], y: dict[str, Any], ridge: float) -> list[dict[str, Any]]:
    """One label for each precision, right of the last ridge and above its lines: the measured rate and the limit."""
    layers = []
    for precision in dict.fromkeys(roof.precision for roof in roofs):
        own = [roof for roof in roofs if roof.precision == precision]
        rates = ", ".join(f"{roof.basis} {show(roof.value, 'flop/s')}" for roof in own)
        row = {"x": ridge * 1.1, "y": max(roof.value for roof in own) / _GFLOP, "text": f"{own[0].name}: {rates}"}
        layers += text_layers([row], {"align": "left", "dy": -9, "fill": _SERIES[precision]}, x, y)
    return layers


def _ridges(ridges: Sequence[Ridge], x: dict[str, Any], y: dict[str, Any], low: float) -> list[dict[str, Any]]:
    """A thin line from each ridge down to the axis, labelled with its intensity."""
    layers: list[dict[str, Any]] = []
    for count, ridge in enumerate(sorted(ridges, key=lambda ridge: ridge.intensity)):
        rows = [{"x": ridge.intensity, "y": ridge.rate / _GFLOP}, {"x": ridge.intensity, "y": low}]
        layers.append(layer("line", {"x": x, "y": y}, rows, color="var(--axis)", strokeWidth=1, strokeDash=[2, 3]))
        text = f"ridge {ridge.compute.precision}: {short(ridge.intensity)} flop/B"
        words = {"align": "left", "dx": 6, "dy": -8 - 18 * count, "fill": "var(--muted)"}
        layers += text_layers([{"x": ridge.intensity, "y": low, "text": text}], words, x, y)
    return layers


def _points(points: Sequence[RooflinePoint], x: dict[str, Any], y: dict[str, Any]) -> list[dict[str, Any]]:
    """Each point with its name on its right."""
    layers: list[dict[str, Any]] = []
    for point in points:
        style = {"color": _SERIES.get(point.precision, "var(--series-3)"), "shape": _SHAPES[point.precision]}
        at = {"x": point.intensity, "y": point.rate / _GFLOP}
        layers.append(layer("point", {"x": x, "y": y}, [at], filled=True, size=90, opacity=1, **style))
        row = {**at, "text": f"{point.name} {show(point.rate, 'flop/s')}"}
        layers += text_layers([row], {"align": "left", "baseline": "middle", "dx": 10, "fill": "var(--ink)"}, x, y)
    return layers


def _table(model: Roofline) -> Table:
    rows: list[Cells] = []
    for roof in model.roofs:
        rate = Cell.amount(roof.value, "B/s" if roof.is_memory else "flop/s")
        rows.append([f"roof: {roof.name}", "", rate, roof.basis, roof.origin])
    for ridge in model.ridges:
        name, at = f"ridge: {ridge.compute.name} over {ridge.memory.name}", _intensity(ridge.intensity)
        source = "measured compute roof divided by measured memory roof"
        rows.append([name, at, Cell.amount(ridge.rate, "flop/s"), "derived", source])
    for point in model.points:
        name, at = f"point: {point.name}", _intensity(point.intensity)
        rows.append([name, at, Cell.amount(point.rate, "flop/s"), "measured", f"{point.origin}. {point.counting}"])
    return Table.of("Elements of the roofline", ["Element", *right("Intensity", "Rate"), "Basis", "Source"], rows)


def _intensity(value: float) -> Cell:
    return Cell(f"{short(value)} flop/B", value)
