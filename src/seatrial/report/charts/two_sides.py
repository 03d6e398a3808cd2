"""Common parts of the charts of two sides: which comparisons are drawn, the colours, the axis of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from seatrial.model.comparison import Comparison, Side, Verdict
from seatrial.model.figure_result import RepeatValue
from seatrial.model.frozen import Frozen
from seatrial.report.studies.effect import effect_of
from seatrial.report.studies.verdicts import short
from seatrial.report.units import arrow, display_scale

Recorded = Callable[[str, int], str | None]
"""(experiment, repeat) -> the address of its raw record, or None."""

PANELS = 8
PANEL_WIDTH = 400
SIDES = ("baseline", "candidate")
COLOURS = ("var(--series-2)", "var(--series-1)")
SHAPES = ("circle", "diamond")
_TITLE_CHARACTERS = 58
_ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.AMBIGUOUS, Verdict.SAME, Verdict.EQUIVALENT)


class Drawn(Frozen):
    """A comparison with repeats on at least one side. Values divided by `scale` are in `unit`."""

    subject: str
    comparison: Comparison
    scale: float
    unit: str

    @property
    def sides(self) -> tuple[tuple[str, Side], ...]:
        """Both sides with the word for each."""
        return tuple(zip(SIDES, (self.comparison.baseline, self.comparison.candidate), strict=True))

    @property
    def axis_title(self) -> str:
        """The figure's unit and its direction."""
        return f"{self.unit or 'ratio'} {arrow(self.comparison.better)}"

    def values(self) -> list[float]:
        """All drawn values: repeats, and the median of a side that has none."""
        return [value for _, side in self.sides for value in (finite(side) or [side.median])]


def drawn_pairs(comparisons: Sequence[Comparison], subjects: Sequence[str]) -> list[Drawn]:
    """At most eight, in their order: those with the largest differences, and ambiguous ones before equal ones."""
    drawable = [
        (one, name)
        for one, name in zip(comparisons, subjects, strict=True)
        if (finite(one.baseline) or finite(one.candidate)) and effect_of(one) is not None
    ]
    ranked = sorted(range(len(drawable)), key=lambda n: (_ORDER.index(drawable[n][0].verdict), -_size(drawable[n][0])))
    drawn = []
    for place in sorted(ranked[:PANELS]):
        one, name = drawable[place]
        values = [value for side in (one.baseline, one.candidate) for value in (finite(side) or [side.median])]
        scale, unit = display_scale(values, one.unit)
        drawn.append(Drawn(name, one, scale, unit))
    return drawn


def finite(side: Side) -> list[float]:
    """The values of the repeats that can be drawn."""
    return [value for value in side.numbers if math.isfinite(value)]


def repeats(side: Side) -> list[RepeatValue]:
    """The repeats that can be drawn, by start time."""
    return [repeat for repeat in side.values if math.isfinite(repeat.value)]


def side_legend(drawn: Sequence[Drawn]) -> str:
    """A phrase that identifies the sides."""
    bases = dict.fromkeys(one.comparison.baseline.name for one in drawn)
    candidates = dict.fromkeys(one.comparison.candidate.name for one in drawn)
    base = f" ({short(next(iter(bases)))})" if len(bases) == 1 else ""
    candidate = f" ({short(next(iter(candidates)))})" if len(candidates) == 1 else ""
    return f"Circles are the baseline{base}, diamonds the candidate{candidate}"


def left_out(drawn: Sequence[Drawn], total: int) -> str:
    """A sentence if not all comparisons are drawn; "" if all are."""
    if len(drawn) == total:
        return ""
    return f" {len(drawn)} of {total} comparisons are drawn: those with repeats and the largest differences."


def concat(panels: Sequence[dict[str, Any]], titles: Sequence[str]) -> dict[str, Any]:
    """Panels side by side in two columns, each with its own axes and title."""
    titled = []
    for panel, title in zip(panels, titles, strict=True):
        short = title if len(title) <= _TITLE_CHARACTERS else f"{title[: _TITLE_CHARACTERS - 1]}…"
        head = {"text": short, "anchor": "start", "fontSize": 12, "fontWeight": "normal", "color": "var(--ink)"}
        titled.append({**panel, "title": {**head, "limit": PANEL_WIDTH, "frame": "group", "offset": 6}})
    return {"concat": titled, "columns": 2, "spacing": {"row": 26, "column": 28}}


def by_side() -> dict[str, Any]:
    """Encodings that distinguish the sides, by colour and by shape."""
    field = {"field": "side", "type": "nominal", "legend": None}
    return {
        "color": {**field, "scale": {"domain": list(SIDES), "range": list(COLOURS)}},
        "shape": {**field, "scale": {"domain": list(SIDES), "range": list(SHAPES)}},
    }


def padded_domain(low: float, high: float, least: float) -> list[float]:
    """A domain around `low` to `high` whose width is at least the fraction `least` of their size."""
    span = max(high - low, abs(high) * least, abs(low) * least) or 1.0
    middle = (low + high) / 2
    return [middle - 0.56 * span, middle + 0.56 * span]


def _size(comparison: Comparison) -> float:
    effect = effect_of(comparison)
    return abs(math.log(effect.advantage)) if effect is not None else 0.0
