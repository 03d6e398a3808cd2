"""Charts over the number of workers: a figure with the line of ideal scaling, both axes logarithmic; its efficiency
with the threshold of efficient scaling; fitted laws with their residuals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.spelling import (
    NO_VALUE,
    arrow,
    arrow_meaning,
    bare_name,
    display_scale,
    setting_number,
    show,
    show_percent,
    show_range,
)
from seatrial.model.study.result import EFFICIENT, ScalingPoint, ScalingResult
from seatrial.report.blocks import Cell, Cells, Chart, Column, Table, headings, right
from seatrial.report.charts import vega
from seatrial.report.intervals import no_interval_words
from seatrial.report.studies.effect import ratio_words, signed
from seatrial.report.studies.scaling_words import (
    crossing_words,
    efficiency_words,
    failed,
    fit_words,
    measured,
    winning_parameters,
    workers,
)

WIDTH = 620
HEIGHT = 250
_AXIS_ROOM = 1.12
_MOST_TICKS = 12
_LONGEST_REASON = 28


def workers_axis(result: ScalingResult) -> dict[str, Any]:
    """The encoding of `x`: every number of workers is a tick, including failed ones."""
    numbers = sorted({point.workers for point in result.points})
    ticks = numbers[:: -(-len(numbers) // _MOST_TICKS)]
    scale: dict[str, Any] = {
        "nice": False,
        "domain": [numbers[0] / _AXIS_ROOM, numbers[-1] * _AXIS_ROOM],
        "type": "log",
    }
    if numbers[0] <= 0:  # a logarithmic axis cannot show 0
        scale = {"nice": False, "zero": True}
    axis = {**vega.named_ticks(ticks, partial(setting_number, result.along)), "labelOverlap": True, "grid": False}
    return vega.quantity("x", bare_name(result.along), scale=scale, axis=axis)


def failed_marks(result: ScalingResult, x: dict[str, Any], *, on_top: bool = False) -> list[dict[str, Any]]:
    """A cross at the bottom of the picture for each point without a value, with its reason as vertical text.

    `on_top`: at the top instead, if the figure falls.
    """
    reasons = [(point.workers, point.reason or "no result") for point in failed(result)]
    if not reasons:
        return []
    shown = ((at, text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…") for at, text in reasons)
    rows = [{"x": at, "text": text} for at, text in shown]
    floor, reason = (9, 22) if on_top else (HEIGHT - 9, HEIGHT - 22)
    colour = "var(--alarm)"
    style = {"angle": 270, "align": "right" if on_top else "left", "baseline": "middle", "fontSize": 12}
    named = {"x": x, "y": {"value": reason}, "text": {"field": "text"}}
    cross = {"shape": "cross", "angle": 45, "size": 90, "filled": True, "opacity": 1}
    return [
        vega.layer("point", {"x": x, "y": {"value": floor}}, rows, **cross, color=colour),
        vega.layer("text", named, rows, **style, color=colour, limit=HEIGHT - 34),
    ]


def failed_words(result: ScalingResult) -> str:
    """The points without a value and their reasons, as a sentence of a caption; "" if there are none."""
    without_value = failed(result)
    if not without_value:
        return ""
    reasons = "; ".join(
        f"{setting_number(result.along, point.workers)}: {point.reason or 'no reason given'}" for point in without_value
    )
    return f" Crosses mark experiments without a result ({reasons})."


def rows_of(points: Sequence[tuple[float, float, tuple[float, float] | None]]) -> list[dict[str, Any]]:
    """(workers, value, interval) as data; the ends of a missing interval are None."""
    return [
        {"x": x, "y": y, "low": interval[0] if interval else None, "high": interval[1] if interval else None}
        for x, y, interval in points
    ]


def points_with_intervals(x: dict[str, Any], y: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line through the points, the points, and a whisker for each interval."""
    colour = "var(--series-1)"
    known = [row for row in rows if row["low"] is not None]
    return [
        vega.layer("rule", vega.between(x, y), known, strokeWidth=1.8, color=colour),
        vega.layer("line", {"x": x, "y": y}, list(rows), strokeWidth=1.6, color=colour),
        vega.layer("point", {"x": x, "y": y}, list(rows), filled=True, size=44, opacity=1, color=colour),
    ]


_ROOM = 1.25
_MOST_NAMED = 12
_LONGEST_NAME = 26
_PIXELS_OF_A_CHARACTER = 2
_MOST_ROOM = 70


def scaling_chart(result: ScalingResult, ident: str) -> Chart | None:
    """The chart, or None if no point has a positive value."""
    points = [(point, value) for point, value in measured(result) if value > 0 and point.workers > 0]
    if not points:
        return None
    title = f"{result.figure} over {bare_name(result.along)}"
    caption = f"Medians with 95 % intervals; {arrow_meaning(result.better)} {arrow(result.better)}."
    if len(points) > 1:
        caption += f" The thin line is ideal: {_ideal_words(result)}."
    winners = winning_parameters(result)
    if winners:
        caption += " Labels show the winning settings."
    caption += failed_words(result)
    words = " ".join(f"{workers(result, point.workers)}: {show(value, result.unit)}." for point, value in points)
    return vega.chart(_spec(result, points, winners), f"{ident}-scaling", title, caption, scaling_table(result), words)


def ideal(result: ScalingResult, base: float, number: float) -> float:
    """The figure at `number` workers with ideal scaling; `base` is its value at the baseline."""
    growth = number / result.baseline_workers
    if result.better is Better.LOWER:
        return base / growth if result.kind == "strong" else base
    return base * growth


def _ideal_words(result: ScalingResult) -> str:
    base = workers(result, result.baseline_workers)
    if result.better is Better.LOWER:
        return f"the value of {base} divided by the growth in workers" if result.kind == "strong" else f"that of {base}"
    return f"the value of {base} times the growth in workers"


def _spec(result: ScalingResult, points: list[tuple[ScalingPoint, float]], winners: dict[float, str]) -> dict[str, Any]:
    base = next((value for point, value in points if point.workers == result.baseline_workers), None)
    ends = (points[0][0].workers, points[-1][0].workers)
    line = [] if base is None or len(points) < 2 else [(x, ideal(result, base, x)) for x in ends]
    shown = [value for _, value in points]
    scale, unit = display_scale(shown, result.unit)
    reach = [*shown, *(y for _, y in line)]
    reach += [end for point, _ in points for end in (point.ci95 or ()) if end > 0]
    low, high = min(reach) / scale / _ROOM, max(reach) / scale * _ROOM
    x = workers_axis(result)
    y = vega.logarithmic("y", f"{unit or 'ratio'} {arrow(result.better)}", low, high)
    rows = rows_of([(p.workers, value / scale, _scaled(p.ci95, scale)) for p, value in points])
    falls = shown[-1] < shown[0]
    ideal_line = [{"x": at, "y": value / scale} for at, value in line]
    layers = [
        vega.layer("line", {"x": x, "y": y}, ideal_line, strokeWidth=1, color="var(--muted)"),
        *failed_marks(result, x, on_top=falls),
        *points_with_intervals(x, y, rows),
    ]
    if winners and len(winners) <= _MOST_NAMED and max(map(len, winners.values())) <= _LONGEST_NAME:
        names = [{"x": p.workers, "y": value / scale, "text": winners.get(p.workers, "")} for p, value in points]
        mark = {"align": "left", "dx": 7, "dy": -10 if falls else 12, "color": "var(--muted)"}
        layers += vega.text_layers([row for row in names if row["text"]], mark, x, y)
    # The labels of the last points extend over the right edge, in a font that is unknown to the renderer.
    right = 8 + _PIXELS_OF_A_CHARACTER * max((len(name) for name in winners.values()), default=0)
    padding = {"left": 2, "top": 2, "bottom": 2, "right": min(right, _MOST_ROOM)}
    return {"width": WIDTH, "height": HEIGHT, "padding": padding, "layer": layers}


def _scaled(interval: tuple[float, float] | None, scale: float) -> tuple[float, float] | None:
    """The interval in the unit of the axis; None if a logarithmic axis cannot show it."""
    return (interval[0] / scale, interval[1] / scale) if interval is not None and interval[0] > 0 else None


def scaling_table(result: ScalingResult) -> Table:
    """All points with their statistics; a separate column for the residuals of each fit."""
    winners = winning_parameters(result)
    has_failed = any(point.value is None for point in result.points)
    numbers = ("Median", "95 % interval", "Repeats", "Speedup", "Efficiency")
    residuals = [f"Residual, {fit.law.capitalize()}" for fit in result.fits]
    columns: list[str | Column] = [*right(bare_name(result.along), *numbers, *residuals)]
    columns += ["Winning settings"] * bool(winners) + ["Reason for no result"] * has_failed
    rows: list[Cells] = []
    for point in sorted(result.points, key=lambda each: each.workers):
        cells = [Cell(setting_number(result.along, point.workers), point.workers), *_cells(result, point)]
        for fit in result.fits:
            residual = dict(fit.residuals).get(point.workers)
            cells.append(Cell(NO_VALUE if residual is None else signed(residual, 3), residual))
        cells += [Cell(winners.get(point.workers, NO_VALUE))] if winners else []
        if has_failed:
            cells.append(Cell("" if point.value is not None else point.reason or "no reason given", tone="remark-cell"))
        rows.append(cells)
    return Table.of(f"{result.figure} over {bare_name(result.along)}", columns, rows)


def _cells(result: ScalingResult, point: ScalingPoint) -> list[Cell]:
    interval = NO_VALUE if point.value is None else no_interval_words(point.n_repeats)
    return [
        Cell.amount(point.value, result.unit, 4),
        Cell(interval if point.ci95 is None else show_range(*point.ci95, result.unit, beside=point.value)),
        Cell.number(point.n_repeats),
        Cell(NO_VALUE if point.speedup is None else ratio_words(point.speedup, point.speedup_ci95), point.speedup),
        Cell(efficiency_words(result, point) or NO_VALUE, point.efficiency),
    ]


_EFFICIENCY_ROOM = 1.06


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
        rows.append([number, Cell.share(value), interval])
    numbers = Table.of(title, right(bare_name(result.along), "Efficiency", "95 % interval"), rows)
    return vega.chart(_efficiency_spec(result), f"{ident}-efficiency", title, caption, numbers, words)


def _rated(result: ScalingResult) -> list[tuple[ScalingPoint, float]]:
    return [
        (point, point.efficiency) for point, _ in measured(result) if point.efficiency is not None and point.workers > 0
    ]


def _efficiency_spec(result: ScalingResult) -> dict[str, Any]:
    points = _rated(result)
    ends = [end for point, value in points for end in (value, *(point.efficiency_ci95 or ()))]
    x = workers_axis(result)
    scale = {"domain": [0, max(1.0, *ends) * _EFFICIENCY_ROOM], "nice": False}
    y = vega.quantity("y", "efficiency ↑", scale=scale, axis={"format": ".0%", "tickCount": 6})
    layers = [
        vega.layer("rule", {"y": y}, [{"y": level}], color=colour, strokeDash=dash, strokeWidth=1.2)
        for level, colour, dash in ((1.0, "var(--muted)", [1, 0]), (EFFICIENT, "var(--alarm)", [6, 4]))
    ]
    low, high = result.crossing_bounds
    if low is not None and high is not None:
        corners = {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
        at = [{"x": low, "x2": high, "y": EFFICIENT, "y2": 0}]
        layers.append(vega.layer("rect", corners, at, color="var(--alarm)", opacity=0.12))
    rows = rows_of([(point.workers, value, point.efficiency_ci95) for point, value in points])
    layers += [*failed_marks(result, x), *points_with_intervals(x, y, rows)]
    if len(points) <= _MOST_NAMED:
        names = [{"x": point.workers, "y": value, "text": show_percent(value)} for point, value in points]
        layers += vega.text_layers(names, {"align": "left", "dx": 7, "dy": -11, "color": "var(--ink)"}, x, y)
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
    return vega.chart(
        _fit_spec(result, fitted, speedups), f"{ident}-fit", title, caption, Table.of(title, columns, rows), words
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
    colour, dash = vega.series("law", list(dict.fromkeys(law for law, *_ in fitted)), 1)
    y = vega.quantity("y", "speedup ↑", scale={"zero": True})
    residual = vega.quantity("residual", "residual", axis={"tickCount": 4})
    intervals = {point.workers: point.speedup_ci95 for point in result.points}
    points = rows_of([(number, speedup, intervals[number]) for number, speedup in sorted(speedups.items())])
    no_legend = {**colour, "legend": None}
    above = {
        "width": WIDTH,
        "height": HEIGHT - 50,
        "layer": [
            vega.layer("line", {"x": x, "y": y, "color": colour, "strokeDash": dash}, rows, strokeWidth=1.5),
            *points_with_intervals(x, y, points)[::2],
        ],
    }
    at = {"x": x, "y": residual, "color": no_legend}
    below = {
        "width": WIDTH,
        "height": _RESIDUAL_HEIGHT,
        "data": {"values": rows},
        "layer": [
            vega.layer("rule", {"y": {"datum": 0}}, [{}], color="var(--axis)"),
            vega.layer("rule", {**at, "y2": {"field": "zero"}}, strokeWidth=2),
            vega.layer("point", at, filled=True, size=34, opacity=1),
        ],
    }
    return {"vconcat": [above, below], "spacing": 14, "config": {"axisY": {"minExtent": 44}}}
