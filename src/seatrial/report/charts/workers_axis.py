"""The common logarithmic axis of workers of the scaling charts, and the marks of failed points on it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from seatrial.model.spelling import bare_name, setting_number
from seatrial.model.study.result import ScalingResult
from seatrial.report.charts.vega import between, layer, named_ticks, quantity
from seatrial.report.studies.scaling_words import failed

WIDTH = 620
HEIGHT = 250
_ROOM = 1.12
_MOST_TICKS = 12
_LONGEST_REASON = 28


def workers_axis(result: ScalingResult) -> dict[str, Any]:
    """The encoding of `x`: every number of workers is a tick, including failed ones."""
    numbers = sorted({point.workers for point in result.points})
    ticks = numbers[:: -(-len(numbers) // _MOST_TICKS)]
    scale: dict[str, Any] = {"nice": False, "domain": [numbers[0] / _ROOM, numbers[-1] * _ROOM], "type": "log"}
    if numbers[0] <= 0:  # a logarithmic axis cannot show 0
        scale = {"nice": False, "zero": True}
    axis = {**named_ticks(ticks, partial(setting_number, result.along)), "labelOverlap": True, "grid": False}
    return quantity("x", bare_name(result.along), scale=scale, axis=axis)


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
        layer("point", {"x": x, "y": {"value": floor}}, rows, **cross, color=colour),
        layer("text", named, rows, **style, color=colour, limit=HEIGHT - 34),
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
        layer("rule", between(x, y), known, strokeWidth=1.8, color=colour),
        layer("line", {"x": x, "y": y}, list(rows), strokeWidth=1.6, color=colour),
        layer("point", {"x": x, "y": y}, list(rows), filled=True, size=44, opacity=1, color=colour),
    ]
