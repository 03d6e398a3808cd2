"""Power over time, by sensor, under the time in which a program took its samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.power import RECORDED, energies_of
from seatrial.model.benchmark.power import ENERGY, SCOPE
from seatrial.model.machine.power import Scope
from seatrial.model.results.energy import Curve, PowerOverTime
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.study.result import of_experiment
from seatrial.probes.power.scopes import sensors_of
from seatrial.report.blocks import Chart
from seatrial.report.charts import vega
from seatrial.report.charts.energy_parts import energy_by_part
from seatrial.report.pages.view import BenchmarkView, TrialView, nearest
from seatrial.report.power_words import aspects_words, energy_table, energy_words

_WIDTH, _HEIGHT = 620, 200
_MOST_LINES = 6
_MOST_CHARTS = 12
_HERE = "this node"
_LEAST_SPAN = 0.05
"""The axis shows at least 5 % of the power, so that noise does not look large."""


def power_over_time(view: TrialView, benchmark: BenchmarkView) -> Iterator[Chart]:
    """A chart for each experiment whose power was measured: of the repeat with the median energy."""
    drawn = 0
    for result in benchmark.results:
        found = _middle(view, result)
        if found is not None and drawn < _MOST_CHARTS:
            drawn += 1
            name = benchmark.labels.get(result.id, benchmark.name)
            yield _chart(view.anchor(f"{result.id}-power"), name, *found)
            by_part = energy_by_part(
                view.anchor(f"{result.id}-energy-parts"),
                f"{name}: energy by part",
                energies_of({RECORDED: found[1]}) or (),
            )
            if by_part is not None:
                yield by_part


def _middle(view: TrialView, result: ExperimentResult) -> tuple[int, Mapping[str, Any]] | None:
    """(repeat, what was recorded of its power) of the repeat with the median energy, else of the last one."""
    if all(SCOPE not in figure.point for figure in result.figures):
        return None  # its power was not measured; of a large folder, all its records would be made
    known = {
        repeat: power
        for repeat, seen in of_experiment(view.trial.seen, result.id).items()
        if isinstance(power := seen.get(RECORDED), Mapping) and power.get("curves")
    }
    energy = next((figure for figure in result.shown if figure.name == ENERGY), None)
    order = [] if energy is None else list(nearest(energy, len(energy.values)))
    repeat = next((repeat for repeat in order if repeat in known), max(known, default=None))
    return None if repeat is None else (repeat, known[repeat])


def _chart(ident: str, name: str, repeat: int, power: Mapping[str, Any]) -> Chart:
    energies = energies_of({RECORDED: power}) or ()
    phase = power.get("phase", {})
    what = "took its samples" if phase.get("of") == "sampling" else "ran"
    caption = f"Repeat {repeat}. The band is the time in which the program {what}."
    curves = {str(name): tuple((float(at), float(watts)) for at, watts in own) for name, own in power["curves"].items()}
    band = (float(phase.get("start_s", 0.0)), float(phase.get("end_s", 0.0)))
    return power_chart(ident, f"{name}: power over time", caption, PowerOverTime(energies, curves), band)


def power_chart(ident: str, title: str, caption: str, power: PowerOverTime, band: tuple[float, float]) -> Chart:
    """The power of each sensor over time, with a band from and to these seconds."""
    nodes = _of_nodes(power)
    lines = nodes or _lines(power)
    shown = {name for name, _ in lines}
    words = " ".join(energy_words(one) for one in power.energies if one.source in shown or nodes)
    if nodes:
        caption = f"{caption} A line for each node; the sensors of parts are in the numbers."
    caption = f"{caption} {aspects_words(power.energies)}"
    return vega.chart(_spec(lines, band), ident, title, caption, energy_table(title, power.energies), words)


def _of_nodes(power: PowerOverTime) -> list[tuple[str, Curve]]:
    """Of several nodes, the curve of each one that has one, by its name; empty for a single node."""
    nodes = {one.node or _HERE: one.source for one in reversed(sensors_of(Scope.NODE, power.energies))}
    if len(nodes) < 2:
        return []
    return [(node, known) for node, source in sorted(nodes.items()) if len(known := _finite(power.curves, source)) > 1]


def _finite(curves: Mapping[str, Curve], name: str) -> Curve:
    return tuple((at, watts) for at, watts in curves.get(name, ()) if math.isfinite(watts))


def _lines(power: PowerOverTime) -> list[tuple[str, Curve]]:
    """The curves of the sensors with the highest power, in the order of the sensors."""
    order = [one.source for one in power.energies]
    curves = {name: known for name in power.curves if len(known := _finite(power.curves, name)) > 1}
    highest = sorted(curves, key=lambda name: -max(watts for _, watts in curves[name]))[:_MOST_LINES]
    return [(name, curves[name]) for name in sorted(highest, key=lambda name: (name not in order, name))]


def _spec(lines: Sequence[tuple[str, Curve]], band: tuple[float, float]) -> dict[str, Any]:
    values = [(name, at, watts) for name, points in lines for at, watts in points]
    rows: list[dict[str, Any]] = [{"sensor": name, "x": at, "y": watts} for name, at, watts in values]
    top = max((row["y"] for row in rows), default=1.0) or 1.0
    x = vega.quantity("x", "time since the start, s", axis={"grid": False, "tickCount": 10})
    y = vega.quantity("y", "power, W", scale={"domain": [0, top * (1 + _LEAST_SPAN)], "nice": True})
    over = {"x": x, "x2": {"field": "x2"}}
    line: dict[str, Any] = {"x": x, "y": y, "detail": {"field": "sensor"}}
    style: dict[str, Any] = {"strokeWidth": 1.6}
    layers: list[dict[str, Any]] = []
    if len(lines) <= _MOST_LINES:
        line["color"], line["strokeDash"] = vega.series("sensor", [name for name, _ in lines])
    else:  # of many nodes, the ends are named
        style = {"strokeWidth": 1, "opacity": 0.6, "color": "var(--series-1)"}
        means = {name: sum(watts for _, watts in points) / len(points) for name, points in lines}
        middle = (band[0] + band[1]) / 2
        layers = []
        for end, dy in ((min(means, key=means.__getitem__), 10), (max(means, key=means.__getitem__), -10)):
            at, watts = min(dict(lines)[end], key=lambda point: abs(point[0] - middle))
            mark = {"align": "center", "dy": dy, "color": "var(--ink)"}
            layers += vega.text_layers([{"text": end, "x": at, "y": watts}], mark, x, y)
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            vega.layer("rect", over, [{"x": band[0], "x2": band[1]}], color="var(--band)"),
            vega.layer("line", line, rows, **style),
            *layers,
        ],
    }
