"""The common logarithmic axis of workers of the scaling charts, and the marks of failed points on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.model.spelling import bare_name, setting_number
from seatrial.model.study.result import ScalingPoint, ScalingResult
from seatrial.report.charts.vega import layer
from seatrial.report.studies.scaling_words import failed

WIDTH = 620
HEIGHT = 250
_ROOM = 1.12
_MOST_TICKS = 12
_REASON_CHARACTERS = 28


def workers_axis(result: ScalingResult) -> dict[str, Any]:
    """The encoding of `x`: every number of workers is a tick, including failed ones."""
    numbers = sorted({point.workers for point in result.points})
    ticks = numbers[:: -(-len(numbers) // _MOST_TICKS)]
    names = " : ".join([f"datum.value == {x!r} ? '{setting_number(result.along, x)}'" for x in ticks] + ["''"])
    scale: dict[str, Any] = {"nice": False, "domain": [numbers[0] / _ROOM, numbers[-1] * _ROOM], "type": "log"}
    if numbers[0] <= 0:  # a logarithmic axis cannot show 0
        scale = {"nice": False, "zero": True}
    axis = {"values": ticks, "labelExpr": names, "labelOverlap": True, "grid": False}
    return {"field": "x", "type": "quantitative", "title": bare_name(result.along), "scale": scale, "axis": axis}


def failed_marks(result: ScalingResult, x: dict[str, Any], *, on_top: bool = False) -> list[dict[str, Any]]:
    """A cross at the bottom of the picture for each point without a value, with its reason as vertical text.

    `on_top`: at the top instead, if the figure falls.
    """
    rows = [{"x": point.workers, "text": _reason(point)} for point in failed(result)]
    if not rows:
        return []
    cross = {"type": "point", "shape": "cross", "angle": 45, "size": 90, "filled": True, "opacity": 1}
    text = {
        "type": "text",
        "angle": 270,
        "align": "right" if on_top else "left",
        "baseline": "middle",
        "fontSize": 12,
        "color": "var(--alarm)",
    }
    floor, reason = (9, 22) if on_top else (HEIGHT - 9, HEIGHT - 22)
    return [
        {
            "data": {"values": rows},
            "mark": {**cross, "color": "var(--alarm)"},
            "encoding": {"x": x, "y": {"value": floor}},
        },
        {
            "data": {"values": rows},
            "mark": {**text, "limit": HEIGHT - 34},
            "encoding": {"x": x, "y": {"value": reason}, "text": {"field": "text"}},
        },
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


def _reason(point: ScalingPoint) -> str:
    text = point.reason or "no result"
    return text if len(text) <= _REASON_CHARACTERS else f"{text[: _REASON_CHARACTERS - 1]}…"


def rows_of(points: Sequence[tuple[float, float, tuple[float, float] | None]]) -> list[dict[str, Any]]:
    """(workers, value, interval) as data; the ends of a missing interval are None."""
    return [
        {"x": x, "y": y, "low": interval[0] if interval else None, "high": interval[1] if interval else None}
        for x, y, interval in points
    ]


def points_with_intervals(x: dict[str, Any], y: dict[str, Any], rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line through the points, the points, and a whisker for each interval."""
    colour = "var(--series-1)"
    return [
        layer(
            "rule",
            {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
            [row for row in rows if row["low"] is not None],
            strokeWidth=1.8,
            color=colour,
        ),
        layer("line", {"x": x, "y": y}, list(rows), strokeWidth=1.6, color=colour),
        layer("point", {"x": x, "y": y}, list(rows), filled=True, size=44, opacity=1, color=colour),
    ]
