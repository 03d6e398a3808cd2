"""The bar of one overhead: its interval against the band of the margin, as inline SVG.

No extra time is in the middle, more is to the right. The axis reaches a fixed number of margins to each side, the same
for all rows of one margin; an interval that goes on beyond it ends in an arrow.
"""

from __future__ import annotations

from html import escape

from seatrial.report.pages.svg import Svg
from seatrial.report.studies.overhead import Overhead

_HEIGHT = 20
_REACH = 4.0
"""Margins to each side of the middle."""


def overhead_bar(one: Overhead) -> Svg:
    """The bar, with the same in words as its title."""
    margin = one.comparison.margin
    band = _place(-margin / (1 + margin), margin), _place(margin, margin)
    drawn = [
        f'<rect class="band" x="{_percent(band[0])}" y="1" width="{_percent(band[1] - band[0])}" height="18"/>',
        _line(0.5, 0.5, 1, 19, "zero"),
    ]
    if one.interval is not None:
        low, high = (_place(end, margin) for end in one.interval)
        drawn.append(_line(low, high, 10, 10, "reach"))
        drawn += [_end(place) for place in (low, high)]
    if 0.0 <= (middle := _place(one.extra, margin, is_cut=False)) <= 1.0:
        drawn.append(f'<circle class="value" cx="{_percent(middle)}" cy="10" r="3.5"/>')
    title = f"{one.subject}: {one.words} extra time, interval {one.interval_words}, margin {one.margin}, {one.verdict}"
    return Svg(
        f'<svg class="bar overhead {one.comparison.verdict.value}" role="img" width="100%" height="{_HEIGHT}">'
        f"<title>{escape(title)}</title>{''.join(drawn)}</svg>"
    )


def _place(extra: float, margin: float, *, is_cut: bool = True) -> float:
    """The place on the axis, between 0 and 1."""
    place = 0.5 + extra / margin / _REACH / 2
    return min(max(place, 0.0), 1.0) if is_cut else place


def _end(place: float) -> str:
    """A short stroke at an end of the interval; an arrow where it goes on beyond the axis."""
    if 0.0 < place < 1.0:
        return _line(place, place, 6, 14, "reach")
    shape = "M7 5l-7 5 7 5z" if place <= 0.0 else "M-7 5l7 5-7 5z"
    return f'<svg aria-hidden="true" x="{_percent(place)}" overflow="visible"><path class="arrow" d="{shape}"/></svg>'


def _line(from_x: float, to_x: float, from_y: float, to_y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{_percent(from_x)}" x2="{_percent(to_x)}" y1="{from_y:g}" y2="{to_y:g}"/>'


def _percent(share: float) -> str:
    return f"{share * 100:.2f}%"
