"""The bar of one figure: from 0 to its limit, with the interval as a whisker, as inline SVG.

Lengths are percentages, so that a bar fills its cell without being distorted. A solid tick is a physical limit, a
dashed one a measured ceiling; a bar without a tick has no known limit and is scaled to the largest figure of its unit.

References are triangles above the bar with their numbers below it. They do not change the scale: a reference beyond the
end is an arrow there, and the title states it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from seatrial.model.figure_result import FigureResult
from seatrial.model.limit import Basis
from seatrial.report.pages.reference_marks import Tick, merged_labels
from seatrial.report.pages.svg import Svg
from seatrial.report.units import show, show_percent, show_range

_HEIGHT = 20
_LABELS_HEIGHT = 10
_NARROWEST_PX = 60.0
_DIGIT_PX = 5.5
"""The width of a bar on A4, and of a digit in a label."""
_ROOM = 1.03
"""The scale extends beyond the larger of limit and value by this factor, so that the tick at its end is visible."""


def bar(figure: FigureResult, largest: float, ticks: Sequence[Tick] = ()) -> Svg:
    """The bar, with the same in words as its title. `largest` is the scale without a limit.

    `ticks` are published values of the same figure.
    """
    limit = figure.limit.value if figure.limit is not None else None
    high = figure.ci95[1] if figure.ci95 is not None else figure.median
    scale = _ROOM * max(limit or largest, high, figure.median)
    drawn = _drawn(figure, limit, scale) + _references(ticks, scale) if scale > 0 else ""
    title = f"<title>{escape(_in_words(figure) + _ticks_in_words(ticks, scale))}</title>"
    height = _HEIGHT + (_LABELS_HEIGHT if ticks else 0)
    return Svg(f'<svg class="bar" role="img" width="100%" height="{height}">{title}{drawn}</svg>')


def _drawn(figure: FigureResult, limit: float | None, scale: float) -> str:
    parts = []
    if limit:
        parts.append(_rect("track", limit / scale))
    parts.append(_rect("value", figure.median / scale))
    if limit and figure.limit is not None:
        basis = "physical" if figure.limit.basis is Basis.PHYSICAL else "measured"
        parts.append(_line(limit / scale, limit / scale, 1, 19, f"limit {basis}"))
    if figure.ci95 is not None:
        low, high = (end / scale for end in figure.ci95)
        lines = _line(low, high, 10, 10) + _line(low, low, 6.5, 13.5) + _line(high, high, 6.5, 13.5)
        # The halo keeps the whisker visible on the bar and beside it, in both colour schemes.
        parts.append(f'<g class="halo">{lines}</g><g class="whisker">{lines}</g>')
    return "".join(parts)


def _references(ticks: Sequence[Tick], scale: float) -> str:
    """A triangle at each reference, an arrow at the end of the bar for those beyond it, and their numbers below."""
    parts = []
    for tick in ticks:
        if tick.value > scale:
            shape = '<path class="reference" d="M2 6l6 4-6 4z"/>'
        else:
            # The halo separates it from the bar and from a whisker at the same place.
            shape = (
                '<path class="halo" d="M0 4.5V14"/><path class="reference stem" d="M0 4.5V14"/>'
                '<path class="reference" d="M-3.5 0h7L0 5.5z"/>'
            )
        parts.append(f'<svg aria-hidden="true" x="{_percent(tick.value / scale)}" overflow="visible">{shape}</svg>')
    places = {tick.mark: min(tick.value / scale, 1.0) for tick in ticks}
    for text, place, anchor in merged_labels(places, _NARROWEST_PX, _DIGIT_PX):
        parts.append(f'<text x="{_percent(place)}" y="{_HEIGHT + 7}" text-anchor="{anchor}">{text}</text>')
    return "".join(parts)


def _ticks_in_words(ticks: Sequence[Tick], scale: float) -> str:
    if not ticks:
        return ""
    words = (f"{t.mark}: {t.words}{' (beyond the end of the bar)' if t.value > scale else ''}" for t in ticks)
    return f"; published for other machines: {', '.join(words)}"


def _rect(kind: str, length: float) -> str:
    return f'<rect class="{kind}" x="0" y="6" width="{_percent(length)}" height="8"/>'


def _line(from_x: float, to_x: float, from_y: float, to_y: float, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<line{named} x1="{_percent(from_x)}" x2="{_percent(to_x)}" y1="{from_y:g}" y2="{to_y:g}"/>'


def _percent(share: float) -> str:
    return f"{max(0.0, min(share, 1.0)) * 100:.2f}%"


def _in_words(figure: FigureResult) -> str:
    words = [f"{figure.name}: {show(figure.median, figure.unit)}"]
    if figure.ci95 is not None:
        words.append(f"95 % interval {show_range(*figure.ci95, figure.unit, beside=figure.median)}")
    if figure.fraction_of_limit is not None and figure.limit is not None:
        words.append(f"{show_percent(figure.fraction_of_limit)} of the {figure.limit.basis.value} limit")
    else:
        words.append("no known limit")
    return ", ".join(words)
