"""The comparisons that are drawn with both sides: the distributions of their repeats, and the repeats over time, which
show drift, steps and warm-up, and whether both sides have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import RepeatValue
from seatrial.model.spelling import NO_VALUE, arrow, display_scale, shortened, show
from seatrial.model.study.comparison import Comparison, Side
from seatrial.report.blocks import Cell, Cells, Chart, Table, headings, right
from seatrial.report.charts.repeats import moment
from seatrial.report.charts.vega import between, chart, layer, quantity
from seatrial.report.studies.effect import effect_of, signed, size_of
from seatrial.report.studies.verdicts import ORDER, short
from seatrial.stats.restated import without_restated

Recorded = Callable[[str, int], str | None]
"""(experiment, repeat) -> the address of its raw record, or None."""

PANELS = 8
PANEL_WIDTH = 400
SIDES = ("baseline", "candidate")
COLOURS = ("var(--series-2)", "var(--series-1)")
SHAPES = ("circle", "diamond")
_TITLE_CHARACTERS = 58
_LARGE = 1e6


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
    """At most eight, in their order: those with the largest differences, and ambiguous ones before equal ones; of
    figures that restate each other, the first."""
    drawable = [
        (one, name)
        for one, name in zip(comparisons, subjects, strict=True)
        if (finite(one.baseline) or finite(one.candidate)) and effect_of(one) is not None
    ]
    ranked = sorted(range(len(drawable)), key=lambda n: (ORDER.index(drawable[n][0].verdict), -size_of(drawable[n][0])))
    tried = sorted(ranked[: 3 * PANELS])
    restated = {tried[place] for place in without_restated([_series(drawable[n][0]) for n in tried])}
    kept = [n for n in ranked[: 3 * PANELS] if n not in restated][:PANELS]
    drawn = []
    for one, name in (drawable[n] for n in sorted(kept)):
        values = [value for side in (one.baseline, one.candidate) for value in (finite(side) or [side.median])]
        drawn.append(Drawn(name, one, *display_scale(values, one.unit)))
    return drawn


def _series(one: Comparison) -> tuple[object, object, list[float]]:
    """For `without_restated`: all repeats of both sides."""
    return (
        (one.benchmark, *one.parameters.items()),
        (one.unit, one.better),
        [*finite(one.baseline), *finite(one.candidate)],
    )


def finite(side: Side) -> list[float]:
    """The values of the repeats that can be drawn."""
    return [value for value in side.numbers if math.isfinite(value)]


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
    return (
        f" {len(drawn)} of {total} comparisons are drawn: those with repeats and the largest differences, one "
        "of figures that restate each other."
    )


def concat(panels: Sequence[dict[str, Any]], titles: Sequence[str]) -> dict[str, Any]:
    """Panels side by side in two columns, each with its own axes and title."""
    titled = []
    for panel, title in zip(panels, titles, strict=True):
        head = {
            "text": shortened(title, _TITLE_CHARACTERS),
            "anchor": "start",
            "fontSize": 12,
            "fontWeight": "normal",
            "color": "var(--ink)",
        }
        titled.append({**panel, "title": {**head, "limit": PANEL_WIDTH, "frame": "group", "offset": 6}})
    return {"concat": titled, "columns": 2, "spacing": {"row": 26, "column": 28}}


def by_side() -> dict[str, Any]:
    """Encodings that distinguish the sides, by colour and by shape."""
    field = {"field": "side", "type": "nominal", "legend": None}
    return {
        "color": {**field, "scale": {"domain": list(SIDES), "range": list(COLOURS)}},
        "shape": {**field, "scale": {"domain": list(SIDES), "range": list(SHAPES)}},
    }


def number_format(domain: Sequence[float]) -> str:
    """The format of an axis: plain digits, or powers of ten if they would not fit between two ticks."""
    return "~f" if max(map(abs, domain)) < _LARGE else "~g"


def padded_domain(low: float, high: float, least: float) -> list[float]:
    """A domain around `low` to `high` whose width is at least the fraction `least` of their size."""
    span = max(high - low, abs(high) * least, abs(low) * least) or 1.0
    middle = (low + high) / 2
    return [middle - 0.56 * span, middle + 0.56 * span]


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
    panels = [_panel(one) for one in drawn]
    caption = f"{side_legend(drawn)}; each dot is a repeat, the bar is the median of its side."
    if any(repeats_of_a_dot > 1 for _, repeats_of_a_dot in panels):
        caption += " If there are many repeats, a dot represents several."
    caption += left_out(drawn, len(comparisons))
    words = " ".join(
        f"{one.subject}: {'; '.join(_in_words(one, word, side) for word, side in one.sides)}." for one in drawn
    )
    spec = concat([panel for panel, _ in panels], [one.subject for one in drawn])
    return chart(spec, f"{ident}-distributions", "Distributions of the two sides", caption, _table(drawn), words)


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
    axis = {"tickCount": 5, "format": number_format(domain), "grid": False}
    x = quantity("x", one.axis_title, axis=axis, scale={"domain": domain, "nice": False, "zero": False})
    y = {"type": "quantitative", "axis": None, "scale": {"domain": [-_TALLEST - 0.5, _TALLEST + 0.5], "nice": False}}
    sides = by_side()
    spec = {
        "width": PANEL_WIDTH,
        "height": _HEIGHT,
        "layer": [
            layer("rule", {"y": {**y, "datum": 0}}, [{}], color="var(--rule)"),
            layer("point", {"x": x, "y": {**y, "field": "y"}, **sides}, rows, filled=True, size=32, opacity=0.9),
            layer("rule", {**between(x, y), "color": sides["color"]}, medians, strokeWidth=2),
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
    rows: list[Cells] = []
    for one in drawn:
        for word, side in one.sides:
            values = sorted(finite(side))
            numbers: list[float | None] = [None, None, side.median, None, None]
            if values:
                numbers = [values[0], _quantile(values, 0.25), side.median, _quantile(values, 0.75), values[-1]]
            amounts = [Cell.amount(number, one.comparison.unit, 4) for number in numbers]
            rows.append([one.subject, f"{word}: {side.name}", Cell.number(len(values)), *amounts])
    numeric = right("Repeats", "Minimum", "First quartile", "Median", "Third quartile", "Maximum")
    return Table.of("The repeats of each side", ["Figure", "Side", *numeric], rows)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between order statistics (type 7 of Hyndman and Fan, The American Statistician 50, 1996)."""
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


_HEIGHT_OVER_TIME = 118
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
    spec = concat([_panel_over_time(one) for one in drawn], [one.subject for one in drawn])
    words = " ".join(f"{one.subject}: {drift_words(one.comparison)}." for one in drawn)
    numbers = _table_over_time(drawn, record)
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


def _positions(one: Drawn) -> dict[tuple[str, int], int]:
    """(side, position in it) -> position among the repeats of both sides, by start time."""
    starts = [
        ((repeat.t0, repeat.order), (word, place))
        for word, side in one.sides
        for place, repeat in enumerate(side.values)
    ]
    return {key: number for number, (_, key) in enumerate(sorted(starts), start=1)}


def _panel_over_time(one: Drawn) -> dict[str, Any]:
    places = _positions(one)
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
    domain = padded_domain(min(values), max(values), _LEAST_HEIGHT)
    upwards = {"tickCount": 4, "format": number_format(domain), "minExtent": 50}
    x = quantity("x", None, axis=across, scale={"domain": [0, len(places) + 1], "nice": False})
    y = quantity("y", one.axis_title, axis=upwards, scale={"domain": domain, "nice": False, "zero": False})
    lines = [
        layer("rule", {"y": y}, [{"y": side.median / one.scale}], color=colour, strokeWidth=1, opacity=0.6)
        for colour, (_, side) in zip(COLOURS, one.sides, strict=True)
    ]
    of_block = {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
    return {
        "width": PANEL_WIDTH - 20,
        "height": _HEIGHT_OVER_TIME,
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


def _table_over_time(drawn: Sequence[Drawn], record: Recorded) -> Table:
    rows: list[Cells] = []
    for one in drawn:
        in_block = len(blocks(one.comparison))
        sides = dict(one.sides)
        drawn_places = {(word, place) for word, side in one.sides for place in _chosen(side)}
        for (word, place), number in sorted(_positions(one).items(), key=lambda item: item[1]):
            if (word, place) not in drawn_places:
                continue
            side = sides[word]
            repeat = side.values[place]
            # If a side pools several experiments, a repeat's number does not identify the experiment.
            link = record(side.experiments[0], repeat.repeat) if len(side.experiments) == 1 else None
            rows.append(
                [
                    Cell.number(number),
                    one.subject,
                    f"{word}: {side.name}",
                    str(place + 1) if in_block else NO_VALUE,
                    moment(repeat.t0),
                    Cell.amount(repeat.value, one.comparison.unit, 5),
                    Cell("record", href=link) if link else NO_VALUE,
                ]
            )
    columns = headings(
        *right("Position"), "Figure", "Side", *right("Block"), "Started (UTC)", *right("Value"), "Record"
    )
    return Table.of("All drawn repeats by start time", columns, rows)
