"""The repeats of both sides, stacked by value: shows spread, tails and bimodality, which a median's interval hides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.model.comparison import Comparison, Side
from seatrial.report.charts.chart import Chart
from seatrial.report.charts.two_sides import (
    PANEL_WIDTH,
    SIDES,
    Drawn,
    by_side,
    concat,
    drawn_pairs,
    finite,
    left_out,
    padded_domain,
    side_legend,
)
from seatrial.report.charts.vega import render
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.units import NO_VALUE, show

_HEIGHT = 92
_BINS = 66
_LEAST_WIDTH = 0.01
"""The axis spans at least 1 %, so that noise of a hundredth of a percent does not look like a difference."""
_TALLEST = 9
"""Dots in the tallest stack; with more repeats of one value, a dot represents several."""


def distributions(comparisons: Sequence[Comparison], subjects: Sequence[str], ident: str) -> Chart | None:
    """One small panel for each comparison: the baseline above, the candidate below. None if nothing has repeats."""
    drawn = drawn_pairs(comparisons, subjects)
    if not drawn:
        return None
    panels, several = [], False
    for one in drawn:
        spec, dot = _panel(one)
        panels.append(spec)
        several = several or dot > 1
    title = "Distributions of the two sides"
    caption = f"{side_legend(drawn)}; each dot is a repeat, the bar is the median of its side."
    if several:
        caption += " If there are many repeats, a dot represents several."
    caption += left_out(drawn, len(comparisons))
    words = " ".join(
        f"{one.subject}: {'; '.join(_in_words(one, word, side) for word, side in one.sides)}." for one in drawn
    )
    svg = render(concat(panels, [one.subject for one in drawn]), f"{ident}-distributions", title, f"{caption} {words}")
    return Chart(title, caption, svg, _table(drawn))


def _panel(one: Drawn) -> tuple[dict[str, Any], int]:
    """The panel, and the number of repeats for each dot."""
    values = [value / one.scale for value in one.values()]
    domain = padded_domain(min(values), max(values), _LEAST_WIDTH)
    width = (domain[1] - domain[0]) / _BINS
    stacks: list[tuple[str, float, int]] = []
    for word, side in one.sides:
        counts: dict[int, int] = {}
        for value in finite(side):
            place = int((value / one.scale - domain[0]) / width)
            counts[place] = counts.get(place, 0) + 1
        stacks += [(word, domain[0] + (place + 0.5) * width, number) for place, number in counts.items()]
    dot = -(-max((number for _, _, number in stacks), default=1) // _TALLEST)
    rows = [
        {"side": word, "x": x, "y": _height(word, level)}
        for word, x, number in stacks
        for level in range(-(-number // dot))
    ]
    medians = [
        {"side": word, "x": side.median / one.scale, "low": _height(word, -0.5), "high": _height(word, _TALLEST)}
        for word, side in one.sides
    ]
    axis = {"tickCount": 5, "format": "~f", "grid": False}
    x: dict[str, Any] = {"field": "x", "type": "quantitative", "title": one.axis_title, "axis": axis}
    x["scale"] = {"domain": domain, "nice": False, "zero": False}
    y = {"type": "quantitative", "axis": None, "scale": {"domain": [-_TALLEST - 0.5, _TALLEST + 0.5], "nice": False}}
    sides = by_side()
    spec = {
        "width": PANEL_WIDTH,
        "height": _HEIGHT,
        "layer": [
            {
                "data": {"values": [{}]},
                "mark": {"type": "rule", "color": "var(--rule)"},
                "encoding": {"y": {**y, "datum": 0}},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "size": 32, "opacity": 0.9},
                "encoding": {"x": x, "y": {**y, "field": "y"}, **sides},
            },
            {
                "data": {"values": medians},
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": sides["color"]},
            },
        ],
    }
    return spec, dot


def _height(side: str, level: float) -> float:
    """The baseline grows upwards from the middle, the candidate downwards."""
    return (level + 0.75) * (1 if side == SIDES[0] else -1)


def _in_words(one: Drawn, word: str, side: Side) -> str:
    values = finite(side)
    median = show(side.median, one.comparison.unit, 4)
    if not values:
        return f"{word} {median}, no repeats"
    ends = f"{show(min(values), one.comparison.unit, 4)} to {show(max(values), one.comparison.unit, 4)}"
    return f"{word} median {median}, {len(values)} repeats from {ends}"


def _table(drawn: Sequence[Drawn]) -> Table:
    columns = [Column("Figure"), Column("Side"), Column("Repeats", numeric=True)]
    columns += [
        Column(name, numeric=True) for name in ("Minimum", "First quartile", "Median", "Third quartile", "Maximum")
    ]
    rows = []
    for one in drawn:
        for word, side in one.sides:
            values = sorted(finite(side))
            unit = one.comparison.unit
            numbers = (
                [values[0], _quantile(values, 0.25), side.median, _quantile(values, 0.75), values[-1]]
                if values
                else [None, None, side.median, None, None]
            )
            cells = [Cell(NO_VALUE if number is None else show(number, unit, 4), number) for number in numbers]
            rows.append([Cell(one.subject), Cell(f"{word}: {side.name}"), Cell(str(len(values)), len(values)), *cells])
    return Table("The repeats of each side", columns, rows)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between order statistics (type 7 of Hyndman and Fan, The American Statistician 50, 1996)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
