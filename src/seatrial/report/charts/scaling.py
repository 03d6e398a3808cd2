"""A figure over the number of workers with the line of ideal scaling, both axes logarithmic."""

from __future__ import annotations

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
    show_range,
)
from seatrial.model.study.result import ScalingPoint, ScalingResult
from seatrial.report.charts.vega import Chart, chart, layer, logarithmic, text_layers
from seatrial.report.charts.workers_axis import (
    HEIGHT,
    WIDTH,
    failed_marks,
    failed_words,
    points_with_intervals,
    rows_of,
    workers_axis,
)
from seatrial.report.intervals import no_interval_words
from seatrial.report.pages.templating import (
    Cell,
    Cells,
    Column,
    Table,
    amount,
    counted,
    percentage,
    right,
    table,
)
from seatrial.report.studies.effect import interval_words, ratio_words, signed
from seatrial.report.studies.scaling_words import measured, winning_parameters, workers

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
    return chart(_spec(result, points, winners), f"{ident}-scaling", title, caption, scaling_table(result), words)


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
    y = logarithmic("y", f"{unit or 'ratio'} {arrow(result.better)}", low, high)
    rows = rows_of([(p.workers, value / scale, _scaled(p.ci95, scale)) for p, value in points])
    falls = shown[-1] < shown[0]
    ideal_line = [{"x": at, "y": value / scale} for at, value in line]
    layers = [
        layer("line", {"x": x, "y": y}, ideal_line, strokeWidth=1, color="var(--muted)"),
        *failed_marks(result, x, on_top=falls),
        *points_with_intervals(x, y, rows),
    ]
    if winners and len(winners) <= _MOST_NAMED and max(map(len, winners.values())) <= _LONGEST_NAME:
        names = [{"x": p.workers, "y": value / scale, "text": winners.get(p.workers, "")} for p, value in points]
        mark = {"align": "left", "dx": 7, "dy": -10 if falls else 12, "color": "var(--muted)"}
        layers += text_layers([row for row in names if row["text"]], mark, x, y)
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
    numbers = ("Median", "95 % interval", "Repeats", "Speedup", "95 % interval", "Efficiency", "95 % interval")
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
    return table(f"{result.figure} over {bare_name(result.along)}", columns, rows)


def _cells(result: ScalingResult, point: ScalingPoint) -> list[Cell]:
    interval = NO_VALUE if point.value is None else no_interval_words(point.n_repeats)
    efficiency = point.efficiency_ci95
    return [
        amount(point.value, result.unit, 4),
        Cell(interval if point.ci95 is None else show_range(*point.ci95, result.unit, beside=point.value)),
        counted(point.n_repeats),
        Cell(NO_VALUE if point.speedup is None else ratio_words(point.speedup, point.speedup_ci95), point.speedup),
        Cell(NO_VALUE if point.speedup_ci95 is None else interval_words(point.speedup_ci95)),
        percentage(point.efficiency),
        Cell(NO_VALUE if efficiency is None else f"{efficiency[0] * 100:.1f} to {efficiency[1] * 100:.1f} %"),
    ]
