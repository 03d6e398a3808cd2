"""The repeats of both sides over time: shows drift, steps and warm-up, and whether both sides have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from seatrial.model.results.figure_result import RepeatValue
from seatrial.model.spelling import NO_VALUE
from seatrial.model.study.comparison import Comparison, Side
from seatrial.report.charts.distributions import (
    COLOURS,
    PANEL_WIDTH,
    SIDES,
    Drawn,
    Recorded,
    by_side,
    concat,
    drawn_pairs,
    finite,
    left_out,
    padded_domain,
    side_legend,
)
from seatrial.report.charts.repeats import moment
from seatrial.report.charts.vega import Chart, chart, layer, quantity
from seatrial.report.pages.templating import Cell, Cells, Table, amount, counted, headings, right, table
from seatrial.report.studies.effect import signed

_HEIGHT = 118
_LEAST_HEIGHT = 0.02
"""The axis spans at least 2 %: a smaller drift does not matter."""
_MOST_POINTS = 240
"""Of a side in a panel; of more repeats, every k-th is drawn."""
_FEWEST_FOR_DRIFT = 9


def in_order(
    comparisons: Sequence[Comparison], subjects: Sequence[str], ident: str, record: Recorded = lambda *of: None
) -> Chart | None:
    """One small panel for each comparison; a thin line joins the two repeats of a block. None if nothing has repeats.

    `record` returns the addresses that the table links to.
    """
    drawn = drawn_pairs(comparisons, subjects)
    if not drawn:
        return None

    caption = f"{side_legend(drawn)}; the horizontal axis numbers the repeats of both sides by start time."
    if any(blocks(one.comparison) for one in drawn):
        caption += " A thin line joins the repeats of one block."
    if any(not one.comparison.design.is_interleaved for one in drawn):
        caption += " Without blocks, the sides may have run at different times, and drift looks like a difference."
    if any(len(side.values) > _MOST_POINTS for one in drawn for _, side in one.sides):
        caption += f" If a side has more than {_MOST_POINTS} repeats, an evenly spaced selection is drawn."
    caption += left_out(drawn, len(comparisons))
    spec = concat([_panel(one) for one in drawn], [one.subject for one in drawn])
    words = " ".join(f"{one.subject}: {drift_words(one.comparison)}." for one in drawn)
    numbers = _table(drawn, record)
    return chart(spec, f"{ident}-order", "Repeats of both sides over time", caption, numbers, words)


def blocks(comparison: Comparison) -> list[tuple[RepeatValue, RepeatValue]]:
    """(baseline, candidate) of each block, if the pairs and the repeats of the sides match."""
    base, candidate = comparison.baseline.values, comparison.candidate.values
    if not comparison.design.is_interleaved or not len(comparison.pairs) == len(base) == len(candidate):
        return []
    paired = list(zip(base, candidate, strict=True))
    in_turns = any(repeat.turns for pair in paired for repeat in pair)  # their ratio is computed turn by turn
    same = in_turns or all((a.value, b.value) == pair for (a, b), pair in zip(paired, comparison.pairs, strict=True))
    return paired if same else []


def drift(side: Side) -> float | None:
    """The median of the last third of the repeats over that of the first, minus one; None below nine repeats."""
    values = finite(side)
    third = len(values) // 3
    if len(values) < _FEWEST_FOR_DRIFT or not median(values[:third]):
        return None
    return median(values[-third:]) / median(values[:third]) - 1


def drift_words(comparison: Comparison) -> str:
    """The drift of each side: "baseline +0.4 %, candidate -0.1 % from the first to the last third of its repeats"."""
    drifts = [
        (name, drift(side)) for name, side in zip(SIDES, (comparison.baseline, comparison.candidate), strict=True)
    ]
    known = [f"{name} {signed(change * 100, 1)} %" for name, change in drifts if change is not None]
    if not known:
        return "too few repeats to detect drift"
    return f"{', '.join(known)} from the first to the last third of its repeats"


def _places(one: Drawn) -> dict[tuple[str, int], int]:
    """(side, position in it) -> position among the repeats of both sides, by start time."""
    starts = [
        ((repeat.t0, repeat.order), (word, place))
        for word, side in one.sides
        for place, repeat in enumerate(side.values)
    ]
    return {key: number for number, (_, key) in enumerate(sorted(starts), start=1)}


def _panel(one: Drawn) -> dict[str, Any]:
    places = _places(one)
    rows = [
        {"side": word, "x": places[word, place], "y": side.values[place].value / one.scale}
        for word, side in one.sides
        for place in _chosen(side)
    ]
    joined = []
    pairs = blocks(one.comparison)
    for place in _chosen(one.comparison.baseline) if pairs else []:
        a, b = pairs[place]
        at = [places[word, place] for word in SIDES]
        joined.append({"x": at[0], "x2": at[1], "y": a.value / one.scale, "y2": b.value / one.scale})
    values = [value / one.scale for value in one.values()]
    across = {"tickMinStep": 1, "tickCount": 6, "grid": False}
    upwards = {"tickCount": 4, "format": "~f", "minExtent": 40}
    x = quantity("x", None, axis=across, scale={"domain": [0, len(places) + 1], "nice": False})
    domain = padded_domain(min(values), max(values), _LEAST_HEIGHT)
    y = quantity("y", one.axis_title, axis=upwards, scale={"domain": domain, "nice": False, "zero": False})
    lines = [
        layer("rule", {"y": y}, [{"y": side.median / one.scale}], color=colour, strokeWidth=1, opacity=0.6)
        for colour, (_, side) in zip(COLOURS, one.sides, strict=True)
    ]
    of_block = {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    return {
        "width": PANEL_WIDTH - 20,
        "height": _HEIGHT,
        "layer": [
            *lines,
            layer("rule", of_block, joined, color="var(--axis)", strokeWidth=0.9),
            layer("point", {"x": x, "y": y, **by_side()}, rows, filled=True, size=30, opacity=1),
        ],
    }


def _chosen(side: Side) -> list[int]:
    """The positions of the repeats that are drawn: all, or every k-th."""
    drawable = [place for place, value in enumerate(side.numbers) if math.isfinite(value)]
    return drawable[:: -(-len(drawable) // _MOST_POINTS) or 1]


def _table(drawn: Sequence[Drawn], record: Recorded) -> Table:
    rows: list[Cells] = []
    for one in drawn:
        in_block = len(blocks(one.comparison))
        sides = dict(one.sides)
        drawn_places = {(word, place) for word, side in one.sides for place in _chosen(side)}
        for (word, place), number in sorted(_places(one).items(), key=lambda item: item[1]):
            if (word, place) not in drawn_places:
                continue
            side = sides[word]
            repeat = side.values[place]
            # If a side pools several experiments, a repeat's number does not identify the experiment.
            link = record(side.experiments[0], repeat.repeat) if len(side.experiments) == 1 else None
            rows.append(
                [
                    counted(number),
                    one.subject,
                    f"{word}: {side.name}",
                    str(place + 1) if in_block else NO_VALUE,
                    moment(repeat.t0),
                    amount(repeat.value, one.comparison.unit, 5),
                    Cell("record", href=link) if link else NO_VALUE,
                ]
            )
    columns = headings(
        *right("Position"), "Figure", "Side", *right("Block"), "Started (UTC)", *right("Value"), "Record"
    )
    return table("All drawn repeats by start time", columns, rows)
