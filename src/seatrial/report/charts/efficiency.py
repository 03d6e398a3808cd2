"""Efficiency over the number of workers, with the threshold of efficient scaling; fitted laws with residuals."""

from __future__ import annotations

from typing import Any

from seatrial.model.spelling import NO_VALUE, bare_name, setting_number, show_percent
from seatrial.model.study.result import EFFICIENT, Fit, ScalingPoint, ScalingResult
from seatrial.report.charts.vega import SERIES_COLOURS, SERIES_DASHES, STROKE_LEGEND, Chart, layer, render, text_layers
from seatrial.report.charts.workers_axis import (
    HEIGHT,
    WIDTH,
    failed_marks,
    failed_words,
    points_with_intervals,
    rows_of,
    workers_axis,
)
from seatrial.report.pages.templating import Cell, Column, Table, headings, right
from seatrial.report.studies.effect import signed
from seatrial.report.studies.scaling_words import crossing_words, fit_words, measured, workers

_ROOM = 1.06
_MOST_NAMED = 12
_RESIDUAL_HEIGHT = 96
_LAWS = {"amdahl": "Amdahl", "gustafson": "Gustafson"}


def efficiency_chart(result: ScalingResult, ident: str) -> Chart | None:
    """The chart, or None with fewer than two points that have an efficiency."""
    points = _rated(result)
    if len(points) < 2:
        return None
    title = f"Efficiency of {result.figure}"
    caption = f"1 is ideal. The dashed line is {show_percent(EFFICIENT)}, the usual lower bound for efficient scaling."
    caption += f" {crossing_words(result)}".rstrip()
    caption += failed_words(result)
    words = " ".join(f"{workers(result, point.workers)}: {show_percent(value)}." for point, value in points)
    svg = render(_spec(result), f"{ident}-efficiency", title, f"{caption} {words}")
    columns = headings(right(bare_name(result.along)), right("Efficiency"))
    columns.append(Column("95 % interval", numeric=True))
    rows = [
        [
            Cell(setting_number(result.along, point.workers), point.workers),
            Cell(show_percent(value), value),
            Cell(
                NO_VALUE if (ends := point.efficiency_ci95) is None else f"{ends[0] * 100:.1f} to {ends[1] * 100:.1f} %"
            ),
        ]
        for point, value in points
    ]
    return Chart(title, caption, svg, Table(title, columns, rows))


def _rated(result: ScalingResult) -> list[tuple[ScalingPoint, float]]:
    return [
        (point, point.efficiency) for point, _ in measured(result) if point.efficiency is not None and point.workers > 0
    ]


def _spec(result: ScalingResult) -> dict[str, Any]:
    points = _rated(result)
    highest = max(
        [1.0, *(value for _, value in points), *(p.efficiency_ci95[1] for p, _ in points if p.efficiency_ci95)]
    )
    x = workers_axis(result)
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": "efficiency ↑"}
    y["scale"] = {"domain": [0, highest * _ROOM], "nice": False}
    y["axis"] = {"format": ".0%", "tickCount": 6}
    rules = [
        layer("rule", {"y": y}, [{"y": level}], color=colour, strokeDash=dash, strokeWidth=1.2)
        for level, colour, dash in ((1.0, "var(--muted)", [1, 0]), (EFFICIENT, "var(--alarm)", [6, 4]))
    ]
    crossing = []
    low, high = result.crossing_bounds
    if low is not None and high is not None:
        at = [{"x": low, "x2": high, "y": EFFICIENT, "y2": 0}]
        mark = {"type": "rect", "color": "var(--alarm)", "opacity": 0.12}
        ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
        crossing.append({"data": {"values": at}, "mark": mark, "encoding": {"x": x, "y": y, **ends}})
    rows = rows_of([(point.workers, value, point.efficiency_ci95) for point, value in points])
    layers = [*rules, *crossing, *failed_marks(result, x), *points_with_intervals(x, y, rows)]
    if len(points) <= _MOST_NAMED:
        names = [{"x": point.workers, "y": value, "text": show_percent(value)} for point, value in points]
        layers += text_layers(names, {"align": "left", "dx": 7, "dy": -11, "color": "var(--ink)"}, x, y)
    return {"width": WIDTH, "height": HEIGHT, "layer": layers}


def fit_chart(result: ScalingResult, ident: str) -> Chart | None:
    """Speedups with the fitted laws, and the residuals below; None if nothing was fitted."""
    speedups = {point.workers: point.speedup for point, _ in measured(result) if point.speedup is not None}
    fits = [fit for fit in result.fits if any(number in speedups for number, _ in fit.residuals)]
    if not fits:
        return None
    title = f"Speedup of {result.figure} and the laws fitted to it"
    caption = "Top: points are measured, lines are fitted. Bottom: residuals, measured minus fitted. Curved residuals "
    caption += "mean that the law does not hold, even if its standard error is small."
    words = " ".join(fit_words(result, fit) for fit in fits)
    svg = render(_fit_spec(result, fits, speedups), f"{ident}-fit", title, f"{caption} {words}")
    columns = headings("Law", right(bare_name(result.along)))
    columns += [Column(name, numeric=True) for name in ("Measured", "Fitted", "Residual")]
    rows = [
        [
            Cell(_LAWS[fit.law]),
            Cell(setting_number(result.along, number), number),
            Cell(f"{speedups[number]:.3f}", speedups[number]),
            Cell(f"{speedups[number] - residual:.3f}", speedups[number] - residual),
            Cell(signed(residual, 3), residual),
        ]
        for fit in fits
        for number, residual in fit.residuals
        if number in speedups
    ]
    return Chart(title, caption, svg, Table(title, columns, rows))


def _fit_spec(result: ScalingResult, fits: list[Fit], speedups: dict[float, float]) -> dict[str, Any]:
    x = workers_axis(result)
    names = [_LAWS[fit.law] for fit in fits]
    rows = [
        {"law": _LAWS[fit.law], "x": number, "y": speedups[number] - residual, "residual": residual, "zero": 0}
        for fit in fits
        for number, residual in fit.residuals
        if number in speedups
    ]
    legend = STROKE_LEGEND if len(fits) > 1 else None
    law = {"field": "law", "type": "nominal", "sort": None, "title": None}
    colour = {**law, "scale": {"domain": names, "range": list(SERIES_COLOURS[1 : len(names) + 1])}, "legend": legend}
    dash = {**law, "scale": {"domain": names, "range": list(SERIES_DASHES[1 : len(names) + 1])}, "legend": legend}
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": "speedup ↑", "scale": {"zero": True}}
    residual = {"field": "residual", "type": "quantitative", "title": "residual", "axis": {"tickCount": 4}}
    points = [(number, speedup, _interval(result, number)) for number, speedup in sorted(speedups.items())]
    fitted = layer("line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, rows, strokeWidth=1.5)
    left = {"type": "rule", "strokeWidth": 2}
    dot = {"type": "point", "filled": True, "size": 34, "opacity": 1}
    no_legend = {**colour, "legend": None}
    above = {
        "width": WIDTH,
        "height": HEIGHT - 50,
        "layer": [fitted, *points_with_intervals(x, y, rows_of(points))[::2]],
    }
    below = {
        "width": WIDTH,
        "height": _RESIDUAL_HEIGHT,
        "data": {"values": rows},
        "layer": [
            layer("rule", {"y": {"datum": 0}}, [{}], color="var(--axis)"),
            {"mark": left, "encoding": {"x": x, "y": residual, "y2": {"field": "zero"}, "color": no_legend}},
            {"mark": dot, "encoding": {"x": x, "y": residual, "color": no_legend}},
        ],
    }
    return {"vconcat": [above, below], "spacing": 14, "config": {"axisY": {"minExtent": 44}}}


def _interval(result: ScalingResult, number: float) -> tuple[float, float] | None:
    return next((point.speedup_ci95 for point in result.points if point.workers == number), None)
