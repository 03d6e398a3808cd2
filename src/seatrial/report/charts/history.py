"""A figure over the sessions of months, with its changes of level."""

from __future__ import annotations

from typing import Any

from seatrial.model.history import FigureHistory
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.two_sides import padded_domain
from seatrial.report.charts.vega import render, text_layers
from seatrial.report.histories.words import change_words, day, no_change_words, span_words
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import NO_VALUE, arrow, arrow_meaning, display_scale, show

_WIDTH = 760
_HEIGHT = 170
_LEAST_HEIGHT = 0.02
"""The axis spans at least 2 %: a smaller change does not matter."""
_MOST_SESSIONS = 300
_MOST_NUMBERED = 20
_NUMBER = {"baseline": "top", "align": "right", "dx": -3, "color": "var(--ink)"}
_MS = 1e3


def history_chart(one: FigureHistory, ident: str) -> Chart:
    """The medians of the sessions over time, the level between changes, and a band where each change happened."""
    title = f"{one.figure} over time"
    caption = f"A dot is the median of a session; {arrow_meaning(one.better)} {arrow(one.better)}."
    if one.changes:
        caption += (
            " Lines are medians between changes. A change happened between the last session before it and the first "
            "one after it, where the band is."
        )
    drawn = drawn_sessions(one)
    if len(drawn) < len(one.sessions):
        caption += (
            f" Of {len(one.sessions)} sessions, {len(drawn)} are drawn and listed: evenly spaced ones, the smallest, "
            "the largest, and those at a change."
        )
    words = ". ".join([span_words(one), *(change_words(change, one) for change in one.changes)])
    described = f"{caption} {words}. {'' if one.changes else no_change_words(one)}".strip()
    return Chart(title, caption, render(_spec(one, drawn), f"{ident}-history", title, described), _table(one, drawn))


def drawn_sessions(one: FigureHistory) -> list[int]:
    """The sessions that are drawn: all, or evenly spaced ones with the extremes and those beside a change."""
    n = len(one.sessions)
    if n <= _MOST_SESSIONS:
        return list(range(n))
    medians = [session.median for session in one.sessions]
    places = {place * (n - 1) // (_MOST_SESSIONS - 1) for place in range(_MOST_SESSIONS)}
    places |= {min(range(n), key=medians.__getitem__), max(range(n), key=medians.__getitem__)}
    return sorted(places | {place for change in one.changes for place in (change.index - 1, change.index)})


def _spec(one: FigureHistory, drawn: list[int]) -> dict[str, Any]:
    scale, unit = display_scale([session.median for session in one.sessions], one.unit)
    points = [{"x": one.sessions[n].at * _MS, "y": one.sessions[n].median / scale} for n in drawn]
    values = [point["y"] for point in points]
    x: dict[str, Any] = {"field": "x", "type": "temporal", "title": None, "scale": {"type": "utc"}}
    x["axis"] = {"grid": False, "labelOverlap": True, "tickCount": 8}
    y: dict[str, Any] = {"field": "y", "type": "quantitative", "title": f"{unit or 'ratio'} {arrow(one.better)}"}
    y["scale"] = {"domain": padded_domain(min(values), max(values), _LEAST_HEIGHT), "nice": False, "zero": False}
    y["axis"] = {"tickCount": 4, "format": "~g", "minExtent": 46}
    changes = [
        {"x": change.last_before * _MS, "x2": change.first_after * _MS, "text": str(number)}
        for number, change in enumerate(one.changes, start=1)
    ]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            {
                "data": {"values": changes},
                # The rim keeps a change visible whose sessions are minutes apart in a history of months.
                "mark": {"type": "rect", "color": "var(--band)", "stroke": "var(--band)", "strokeWidth": 3},
                "encoding": {"x": x, "x2": {"field": "x2"}},
            },
            {
                "data": {"values": _levels(one, scale)},
                "mark": {"type": "rule", "color": "var(--ink)", "strokeWidth": 1.2},
                "encoding": {"x": x, "x2": {"field": "x2"}, "y": y},
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "size": 26, "opacity": 1, "color": "var(--accent)"},
                "encoding": {"x": x, "y": y},
            },
            *text_layers(changes[:_MOST_NUMBERED], _NUMBER, x, {"value": 2}),
        ],
    }


def _levels(one: FigureHistory, scale: float) -> list[dict[str, float]]:
    """The medians between changes, from the first session of a part to its last one."""
    if not one.changes:
        return []
    starts = [one.sessions[0].at, *(change.first_after for change in one.changes)]
    ends = [*(change.last_before for change in one.changes), one.sessions[-1].at]
    heights = [one.changes[0].before, *(change.after for change in one.changes)]
    return [
        {"x": start * _MS, "x2": end * _MS, "y": height / scale}
        for start, end, height in zip(starts, ends, heights, strict=True)
    ]


def _table(one: FigureHistory, drawn: list[int]) -> Table:
    after = {change.index: number for number, change in enumerate(one.changes, start=1)}
    columns = [Column("Started (UTC)"), Column("Median", numeric=True), Column("Repeats", numeric=True)]
    columns += [Column("First after change", numeric=True)] if after else []
    rows = []
    for n in drawn:
        session = one.sessions[n]
        cells = [
            Cell(day(session.at)),
            Cell(show(session.median, one.unit, 4), session.median),
            Cell(str(session.n_repeats), session.n_repeats),
        ]
        cells += [Cell(str(after.get(n, NO_VALUE)))] if after else []
        rows.append(cells)
    return Table(f"Sessions of {one.figure}", columns, rows)
