"""The forest plot: the ratio of each comparison with its two intervals on a logarithmic axis.

The ratios are those of the table and of the sentences: candidate over baseline of the raw figure. Figures that are
better when lower have their own chart, whose axis runs from high to low: right is better in every chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import arrow, count, shortened
from seatrial.model.study.comparison import Comparison, Verdict
from seatrial.report.blocks import Chart
from seatrial.report.charts.vega import chart, layer, named_ticks
from seatrial.report.studies.effect import (
    TIMES,
    Effect,
    Interval,
    asks_equivalence,
    effect_of,
    effect_words,
    margin_edges,
    margin_words,
    verdict_word,
)
from seatrial.report.studies.verdicts import comparison_table

_ROWS_OF_A_CHART = 36
"""More do not fit on a sheet of paper."""
_MOST_ROWS = 144
_ROW_HEIGHT = 24
_WIDTH = 430
_LABEL_WIDTH = 320
_LABEL_CHARACTERS = 46
_EFFECT_WIDTH = 330
_PIXELS_OF_A_CHARACTER = 1.4
"""The renderer measures text in its own font; some browsers' fonts are wider and would be cut off at the edges."""
_LEAST_SPAN = 1.05
_ROOM = 1.06
_PIXELS_OF_A_TICK = 62
_TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998)
_TICKS_ABOVE = (1.002, 1.005, 1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)

_SHAPES = {
    Verdict.FASTER: ("triangle-right", "var(--series-3)"),
    Verdict.SLOWER: ("triangle-left", "var(--alarm)"),
    Verdict.SAME: ("square", "var(--series-1)"),
    Verdict.EQUIVALENT: ("square", "var(--series-1)"),
    Verdict.AMBIGUOUS: ("circle", "var(--muted)"),
}


class _Row(Frozen):
    """A comparison that can be drawn."""

    subject: str
    comparison: Comparison
    effect: Effect

    @property
    def plain(self) -> Interval | None:
        """The interval of the ratio alone, if it can be drawn."""
        return None if self.effect.plain is None else self.comparison.plain

    @property
    def family(self) -> Interval | None:
        """The simultaneous interval of the ratio, if it can be drawn."""
        return None if self.effect.family is None else self.comparison.simultaneous


def forest(comparisons: Sequence[Comparison], subjects: Sequence[str], ident: str) -> list[Chart]:
    """A chart for each direction of the figures, or several with the same axis if there are many rows. `subjects` name
    the comparisons.

    Empty if no comparison has a ratio.
    """
    rows = [
        _Row(subject, comparison, effect)
        for comparison, subject in zip(comparisons, subjects, strict=True)
        if (effect := effect_of(comparison)) is not None
    ]
    drawn = _largest_effects(rows)
    charts: list[Chart] = []
    for better in dict.fromkeys(row.comparison.better for row in drawn):
        own = [row for row in drawn if row.comparison.better is better]
        domain = _domain(own)
        parts = [own[start : start + _ROWS_OF_A_CHART] for start in range(0, len(own), _ROWS_OF_A_CHART)]
        for number, part in enumerate(parts, start=1):
            title = f"Candidate over baseline, {better.value} is better"
            title += f", {number} of {len(parts)}" if len(parts) > 1 else ""
            if number > 1:
                caption = "Same axis as the previous chart."
            else:
                caption = _direction(better, is_first=not charts)
                caption += "" if charts else f" {_caption(drawn, len(comparisons))}"
            words = " ".join(f"{row.subject}: {effect_words(row.comparison)}." for row in part)
            numbers = comparison_table([(row.subject, row.comparison) for row in part])
            own_ident = f"{ident}-forest-{len(charts) + 1}"
            charts.append(chart(_spec(part, domain), own_ident, title, caption, numbers, words))
    return charts


def _largest_effects(rows: Sequence[_Row]) -> list[_Row]:
    """All rows in their order; if there are too many, those with the largest differences."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    far = sorted(range(len(rows)), key=lambda n: -abs(math.log(rows[n].effect.advantage)))[:_MOST_ROWS]
    return [rows[n] for n in sorted(far)]


def _direction(better: Better, *, is_first: bool) -> str:
    """How to read the axis."""
    marks = "" if is_first else " Marks are as in the charts above."
    if better is Better.LOWER:
        return f"Right is better: these figures are better when lower, so the axis runs from high to low.{marks}"
    return f"Right is better.{marks}"


def _caption(rows: Sequence[_Row], total: int) -> str:
    margins = sorted({row.comparison.margin for row in rows})
    text = (
        "Each point is the ratio of the two sides. The thin line is the 95 % interval of that comparison alone; the "
        "thick line is the simultaneous interval over its family and all looks, which decides the verdict. The shaded "
        f"band is the margin ({' or '.join(map(margin_words, margins))}). Triangles point to faster and slower, "
        f"squares are {_squares(rows)}, circles are undecided."
    )
    if asks_equivalence(row.comparison for row in rows):
        text += " The lines of equivalent sides are 90 % intervals, those of two one-sided tests."
    bare = [row for row in rows if row.effect.plain is None and row.effect.family is None]
    if bare:
        text += f" {count(len(bare), 'point')} without a line {'has' if len(bare) == 1 else 'have'} no interval."
    if len(rows) < total:
        text += f" {len(rows)} of {total} comparisons are shown; the table has all."
    return text


def _squares(rows: Sequence[_Row]) -> str:
    verdicts = {row.comparison.verdict for row in rows}
    if not asks_equivalence(row.comparison for row in rows):
        return "the same"
    return "the same or equivalent" if Verdict.SAME in verdicts else "equivalent"


def _domain(rows: Sequence[_Row]) -> tuple[float, float]:
    values = [1 / _LEAST_SPAN, _LEAST_SPAN]
    for row in rows:
        values += [row.comparison.ratio, *(row.plain or ()), *(row.family or ())]
        values += [edge**2 for edge in margin_edges(row.comparison.margin)]
    low, high = min(values), max(values)
    room = max((high / low) ** 0.03, _ROOM**0.2)
    return low / room, high * room


def _ticks(domain: tuple[float, float]) -> list[float]:
    """From no difference outwards, as many as fit with their labels."""
    width = math.log(domain[1] / domain[0])
    least = width * _PIXELS_OF_A_TICK / _WIDTH
    chosen = [1.0]
    for side in (reversed(_TICKS), _TICKS_ABOVE):
        last = 0.0
        for tick in side:
            if domain[0] <= tick <= domain[1] and abs(math.log(tick)) - last >= least:
                chosen.append(tick)
                last = abs(math.log(tick))
    return sorted(chosen)


def _ends(comparisons: Sequence[Comparison]) -> str:
    """What both ends of the axis mean: "<- slower    ratio    faster ->", with arrows."""
    left, right = (verdict_word(verdict, comparisons) for verdict in (Verdict.SLOWER, Verdict.FASTER))
    space = "\N{NO-BREAK SPACE}" * 8
    return f"\N{LEFTWARDS ARROW} {left}{space}candidate / baseline{space}{right} \N{RIGHTWARDS ARROW}"


def _spec(rows: Sequence[_Row], domain: tuple[float, float]) -> dict[str, Any]:
    values = [_values(position, row) for position, row in enumerate(rows)]
    paddings = [2 + _PIXELS_OF_A_CHARACTER * max(len(row[name]) for row in values) for name in ("subject", "effect")]
    axis = {**named_ticks(_ticks(domain), lambda tick: f"{tick:g}{TIMES}"), "grid": True, "labelOverlap": True}
    x: dict[str, Any] = {"type": "quantitative", "title": _ends([row.comparison for row in rows]), "axis": axis}
    is_reversed = rows[0].comparison.better is Better.LOWER
    x["scale"] = {"type": "log", "domain": list(domain), "nice": False, "reverse": is_reversed}
    scale = {"domain": [-0.5, len(rows) - 0.5], "reverse": True, "nice": False, "zero": False}
    y = {"field": "row", "type": "quantitative", "axis": None, "scale": scale}

    def at(field: str) -> dict[str, Any]:
        return {**x, "field": field}

    def line(low: str, high: str, width: float, colour: str) -> dict[str, Any]:
        return {
            "transform": [{"filter": f"isValid(datum.{low})"}],
            "mark": {"type": "rule", "strokeWidth": width, "color": colour},
            "encoding": {"x": at(low), "x2": {"field": high}, "y": y},
        }

    points = [
        {
            "transform": [{"filter": f"datum.verdict == '{verdict.value}'"}],
            "mark": {
                "type": "point", "shape": shape, "size": 110, "filled": verdict is not Verdict.AMBIGUOUS, "opacity": 1,
                "color": colour, "fill": "var(--paper)" if verdict is Verdict.AMBIGUOUS else colour, "strokeWidth": 1.6,
            },
            "encoding": {"x": at("ratio"), "y": y},
        }
        for verdict, (shape, colour) in _SHAPES.items()
    ]  # fmt: skip
    text = {"type": "text", "fontSize": 12, "baseline": "middle"}
    subject = {**text, "align": "right", "color": "var(--ink)", "limit": _LABEL_WIDTH}
    effect_text = {**text, "align": "left", "color": "var(--ink)", "limit": _EFFECT_WIDTH}
    return {
        "data": {"values": values},
        "padding": {"left": paddings[0], "right": paddings[1], "top": 2, "bottom": 2},
        "width": _WIDTH,
        "height": _ROW_HEIGHT * len(rows),
        "layer": [
            layer("rect", {"x": at("margin_low"), "x2": {"field": "margin_high"}, "y": {**y, "field": "top"},
                             "y2": {"field": "bottom"}}, color="var(--band)"),
            layer("rule", {"x": {**x, "datum": 1.0}}, [{}], color="var(--axis)"),
            line("family_low", "family_high", 6, "var(--faint)"),
            line("plain_low", "plain_high", 1.6, "var(--ink)"),
            *points,
            {"mark": subject, "encoding": {"x": {"value": -12}, "y": y, "text": {"field": "subject"}}},
            {"mark": effect_text, "encoding": {"x": {"value": _WIDTH + 14}, "y": y, "text": {"field": "effect"}}},
        ],
    }  # fmt: skip


def _values(position: int, row: _Row) -> dict[str, Any]:
    one = row.comparison
    plain, family = row.plain or (None, None), row.family or (None, None)
    low, high = margin_edges(one.margin)
    return {
        "row": position,
        "top": position - 0.5,
        "bottom": position + 0.5,
        "subject": f"{shortened(row.subject, _LABEL_CHARACTERS)} {arrow(one.better)}",
        "effect": effect_words(one),
        "verdict": one.verdict.value,
        "ratio": one.ratio,
        "plain_low": plain[0],
        "plain_high": plain[1],
        "family_low": family[0],
        "family_high": family[1],
        "margin_low": low,
        "margin_high": high,
    }
