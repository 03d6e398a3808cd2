"""Efficiency over the number of workers, with the threshold of efficient scaling; fitted laws with residuals."""

from __future__ import annotations

from typing import Any

from seatrial.model.spelling import NO_VALUE, bare_name, setting_number, show_percent
from seatrial.model.study.result import EFFICIENT, ScalingPoint, ScalingResult
from seatrial.report.charts.vega import (
    Chart,
    chart,
    layer,
    quantity,
    series,
    text_layers,
)
from seatrial.report.charts.workers_axis import (
    HEIGHT,
    WIDTH,
    failed_marks,
    failed_words,
    points_with_intervals,
    rows_of,
    workers_axis,
)
from seatrial.report.pages.templating import Cell, Cells, headings, percentage, right, table
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
    caption += f" {crossing_words(result)}".rstrip() + failed_words(result)
    words = " ".join(f"{workers(result, point.workers)}: {show_percent(value)}." for point, value in points)
    rows: list[Cells] = []
    for point, value in points:
        ends = point.efficiency_ci95
        interval = NO_VALUE if ends is None else f"{ends[0] * 100:.1f} to {ends[1] * 100:.1f} %"
        number = Cell(setting_number(result.along, point.workers), point.workers)
        rows.append([number, percentage(value), interval])
    numbers = table(title, right(bare_name(result.along), "Efficiency", "95 % interval"), rows)
    return chart(_spec(result), f"{ident}-efficiency", title, caption, numbers, words)


def _rated(result: ScalingResult) -> list[tuple[ScalingPoint, float]]:
    return [
        (point, point.efficiency) for point, _ in measured(result) if point.efficiency is not None and point.workers > 0
    ]


def _spec(result: ScalingResult) -> dict[str, Any]:
    points = _rated(result)
    ends = [end for point, value in points for end in (value, *(point.efficiency_ci95 or ()))]
    x = workers_axis(result)
    scale = {"domain": [0, max(1.0, *ends) * _ROOM], "nice": False}
    y = quantity("y", "efficiency ↑", scale=scale, axis={"format": ".0%", "tickCount": 6})
    layers = [
        layer("rule", {"y": y}, [{"y": level}], color=colour, strokeDash=dash, strokeWidth=1.2)
        for level, colour, dash in ((1.0, "var(--muted)", [1, 0]), (EFFICIENT, "var(--alarm)", [6, 4]))
    ]
    low, high = result.crossing_bounds
    if low is not None and high is not None:
        corners = {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
        at = [{"x": low, "x2": high, "y": EFFICIENT, "y2": 0}]
        layers.append(layer("rect", corners, at, color="var(--alarm)", opacity=0.12))
    rows = rows_of([(point.workers, value, point.efficiency_ci95) for point, value in points])
    layers += [*failed_marks(result, x), *points_with_intervals(x, y, rows)]
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
    caption = (
        "Top: points are measured, lines are fitted. Bottom: residuals, measured minus fitted. Curved residuals mean "
        "that the law does not hold, even if its standard error is small."
    )
    words = " ".join(fit_words(result, fit) for fit in fits)
    fitted = [
        (_LAWS[fit.law], number, speedups[number], residual)
        for fit in fits
        for number, residual in fit.residuals
        if number in speedups
    ]
    rows: list[Cells] = []
    for law, number, speedup, residual in fitted:
        speeds = [Cell(f"{value:.3f}", value) for value in (speedup, speedup - residual)]
        workers_cell = Cell(setting_number(result.along, number), number)
        rows.append([law, workers_cell, *speeds, Cell(signed(residual, 3), residual)])
    columns = headings("Law", *right(bare_name(result.along), "Measured", "Fitted", "Residual"))
    return chart(
        _fit_spec(result, fitted, speedups), f"{ident}-fit", title, caption, table(title, columns, rows), words
    )


def _fit_spec(
    result: ScalingResult, fitted: list[tuple[str, float, float, float]], speedups: dict[float, float]
) -> dict[str, Any]:
    """`fitted`: law, number of workers, measured speedup and residual of each point."""
    x = workers_axis(result)
    rows = [
        {"law": law, "x": number, "y": speedup - residual, "residual": residual, "zero": 0}
        for law, number, speedup, residual in fitted
    ]
    colour, dash = series("law", list(dict.fromkeys(law for law, *_ in fitted)), 1)
    y = quantity("y", "speedup ↑", scale={"zero": True})
    residual = quantity("residual", "residual", axis={"tickCount": 4})
    intervals = {point.workers: point.speedup_ci95 for point in result.points}
    points = rows_of([(number, speedup, intervals[number]) for number, speedup in sorted(speedups.items())])
    no_legend = {**colour, "legend": None}
    above = {
        "width": WIDTH,
        "height": HEIGHT - 50,
        "layer": [
            layer("line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, rows, strokeWidth=1.5),
            *points_with_intervals(x, y, points)[::2],
        ],
    }
    at = {"x": x, "y": residual, "color": no_legend}
    below = {
        "width": WIDTH,
        "height": _RESIDUAL_HEIGHT,
        "data": {"values": rows},
        "layer": [
            layer("rule", {"y": {"datum": 0}}, [{}], color="var(--axis)"),
            layer("rule", {**at, "y2": {"field": "zero"}}, strokeWidth=2),
            layer("point", at, filled=True, size=34, opacity=1),
        ],
    }
    return {"vconcat": [above, below], "spacing": 14, "config": {"axisY": {"minExtent": 44}}}
