"""Power over time, by sensor, under the time in which a program took its samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.power import RECORDED, energies_of
from seatrial.model.benchmark.power import ENERGY
from seatrial.model.results.energy import Curve, PowerOverTime
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.report.blocks import Chart
from seatrial.report.charts import vega
from seatrial.report.pages.view import BenchmarkView, TrialView, nearest
from seatrial.report.power_words import aspects_words, energy_table, energy_words

_WIDTH, _HEIGHT = 620, 200
_MOST_LINES = 6
_MOST_CHARTS = 12
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


def _middle(view: TrialView, result: ExperimentResult) -> tuple[int, Mapping[str, Any]] | None:
    """(repeat, what was recorded of its power) of the repeat with the median energy, else of the last one."""
    known = {
        repeat: power
        for repeat in view.repeats.get(result.id, ())
        if isinstance(power := view.trial.seen[result.id, repeat].get(RECORDED), Mapping) and power.get("curves")
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
    lines = _lines(power)
    shown = {name for name, _ in lines}
    words = " ".join(energy_words(one) for one in power.energies if one.source in shown)
    caption = f"{caption} {aspects_words(power.energies)}"
    return vega.chart(_spec(lines, band), ident, title, caption, energy_table(title, power.energies), words)


def _lines(power: PowerOverTime) -> list[tuple[str, Curve]]:
    """The curves of the sensors with the highest power, in the order of the sensors."""
    order = [one.source for one in power.energies]
    curves = {
        name: known
        for name, points in power.curves.items()
        if len(known := tuple((at, watts) for at, watts in points if math.isfinite(watts))) > 1
    }
    highest = sorted(curves, key=lambda name: -max(watts for _, watts in curves[name]))[:_MOST_LINES]
    return [(name, curves[name]) for name in sorted(highest, key=lambda name: (name not in order, name))]


def _spec(lines: Sequence[tuple[str, Curve]], band: tuple[float, float]) -> dict[str, Any]:
    values = [(name, at, watts) for name, points in lines for at, watts in points]
    rows: list[dict[str, Any]] = [{"sensor": name, "x": at, "y": watts} for name, at, watts in values]
    top = max((row["y"] for row in rows), default=1.0) or 1.0
    x = vega.quantity("x", "time since the start, s", axis={"grid": False})
    y = vega.quantity("y", "power, W", scale={"domain": [0, top * (1 + _LEAST_SPAN)], "nice": True})
    colour, dash = vega.series("sensor", [name for name, _ in lines])
    over = {"x": x, "x2": {"field": "x2"}}
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            vega.layer("rect", over, [{"x": band[0], "x2": band[1]}], color="var(--band)"),
            vega.layer("line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, rows, strokeWidth=1.6),
        ],
    }
