"""How a figure is distributed over nodes: a dot for each of a few, a histogram of many, with the odd ones marked."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.frozen import Frozen
from seatrial.model.screen import FigureOverNodes, Odd
from seatrial.report.charts.heat import number, rectangle, svg, text
from seatrial.report.cluster.words import few_names, figure_name
from seatrial.report.pages.svg import Svg
from seatrial.report.units import arrow_meaning, count, settings, show

_WIDTH, _HEIGHT = 500.0, 74.0
_BINS = 80
_LEAST_WIDTH = 0.02
"""The axis spans at least 2 %, so that noise does not look like a difference."""
_MARGIN = 14.0
_TOP = 22.0
_MOST_MARKS = 200
_MOST_DOTS = 48
_MOST_NAMED = 12
_DOT = 4.0
_MOST_WITH_ENDS = 10
"""The middle 90 % of so few are all of them."""


class Distribution(Frozen):
    """One figure: its name, its picture, and the same in words."""

    title: str
    said: str
    picture: Svg


def distribution(figure: FigureOverNodes, odd: Sequence[Odd], ident: str) -> Distribution:
    """The histogram of the medians of a figure; `odd` are the odd ones in this figure."""
    low, high = min(figure.medians), max(figure.medians)
    least = _LEAST_WIDTH * figure.median
    if high - low < least:
        middle = (low + high) / 2
        low, high = middle - least / 2, middle + least / 2
    named = " ".join(filter(None, (figure_name(figure.benchmark, figure.figure), settings(figure.parameters))))
    said = _said(figure, odd)
    content = "".join(
        (
            *(_dots(figure, odd, low, high) if len(figure.items) <= _MOST_DOTS else _bars(figure, low, high)),
            *_axis(figure, low, high),
            *_marks(figure, odd, low, high),
        )
    )
    size = (_WIDTH + 2 * _MARGIN, _TOP + _HEIGHT + 24)
    shifted = f'<g transform="translate({number(_MARGIN)} {number(_TOP)})">{content}</g>'
    return Distribution(named, said, Svg(svg(ident, *size, named, said, shifted)))


def _said(figure: FigureOverNodes, odd: Sequence[Odd]) -> str:
    ends = [f"{(end - 1.0) * 100:+.1f}".replace("-", "\N{MINUS SIGN}") for end in figure.spread]
    among = f" Odd: {few_names([one.what for one in odd])}." if odd else ""
    which = "all" if len(figure.items) <= _MOST_WITH_ENDS else "the middle 90 %"
    return (
        f"{count(len(figure.items), _of(figure))}: median {show(figure.median, figure.unit)} "
        f"({arrow_meaning(figure.better)}), {which} from {ends[0]} to {ends[1]} %.{among}"
    )


def _of(figure: FigureOverNodes) -> str:
    return {"node": "node", "device": "device", "link": "link", "switch": "switch"}[figure.kind.value]


def _dots(figure: FigureOverNodes, odd: Sequence[Odd], low: float, high: float) -> list[str]:
    """A dot for each, those with nearly equal values above each other; of a dozen, with names above the piles where
    there is room."""
    marked = {one.value for one in odd}
    piles: dict[int, list[str]] = {}
    for item, value in sorted(zip(figure.items, figure.medians, strict=True), key=lambda pair: pair[1]):
        if value not in marked:
            place = round((value - low) / (high - low) * _WIDTH / (2.2 * _DOT))
            piles.setdefault(place, []).append(item.name)
    parts, last_end = [], -1e9
    for place, names in sorted(piles.items()):
        at = min(place * 2.2 * _DOT, _WIDTH)
        step = min(2.2 * _DOT, (_HEIGHT - 18) / len(names))
        parts += [
            f'<circle class="fine" cx="{number(at)}" cy="{number(_HEIGHT - _DOT - 1 - k * step)}" r="{number(_DOT)}"/>'
            for k in range(len(names))
        ]
        shown = names[0] if len(names) == 1 else f"{names[0]} +{len(names) - 1}"
        length = 6.6 * len(shown)
        start = min(max(0.0, at - length / 2), _WIDTH - length)
        below = max(
            len(own) for own_place, own in piles.items() if start - 6 <= own_place * 2.2 * _DOT <= start + length + 6
        )
        if start > last_end + 6 and len(figure.items) <= _MOST_NAMED:
            parts.append(text(start, _HEIGHT - 2 * _DOT - 6 - (below - 1) * step, shown, "tick", "start"))
            last_end = start + length
    return parts


def _bars(figure: FigureOverNodes, low: float, high: float) -> list[str]:
    """A bar for each bin with values, at least a pixel high: a single node is visible among thousands."""
    width = (high - low) / _BINS
    counts = [0] * _BINS
    for value in figure.medians:
        counts[min(_BINS - 1, int((value - low) / width))] += 1
    tallest = max(counts)
    side = _WIDTH / len(counts)
    bars = []
    for k, n in enumerate(counts):
        if n:
            height = max(1.5, n / tallest * _HEIGHT)
            bars.append(rectangle(k * side, _HEIGHT - height, max(1.0, side - 0.5), height, "fine"))
    return bars


def _axis(figure: FigureOverNodes, low: float, high: float) -> list[str]:
    at = (figure.median - low) / (high - low) * _WIDTH
    median = f'<path class="border-package" d="M{number(at)} {number(_HEIGHT)}v6"/>'
    line = f'<path class="border-node" d="M0 {number(_HEIGHT)}h{number(_WIDTH)}"/>'
    under = _HEIGHT + 18
    labels = [line, median]
    anchor = "start" if at < 40 else "end" if at > _WIDTH - 40 else "middle"
    labels.append(text(at, under, show(figure.median, figure.unit), "tick", anchor))
    if at > 150:
        labels.append(text(0, under, show(low, figure.unit), "tick", "start"))
    if at < _WIDTH - 150:
        labels.append(text(_WIDTH, under, show(high, figure.unit), "tick", "end"))
    return labels


def _marks(figure: FigureOverNodes, odd: Sequence[Odd], low: float, high: float) -> list[str]:
    """A triangle above each odd one, and the names of the first of each side."""
    parts: list[str] = []
    last_end = -1e9
    for one in sorted(odd[:_MOST_MARKS], key=lambda one: one.value):
        at = (min(max(one.value, low), high) - low) / (high - low) * _WIDTH
        parts.append(f'<path class="odd" d="M{number(at)} {number(_HEIGHT - 4)}l-5 -9h10z"/>')
        length = 6.6 * len(one.what)
        start = min(max(0.0, at - length / 2), _WIDTH - length)
        if start > last_end + 6:
            parts.append(text(start, _HEIGHT - 18, one.what, "odd-name", "start"))
            last_end = start + length
    return parts
