"""Bars beside figures as inline SVG: to the limit with published values as marks, and extra time with its interval.

A reference has a tick on a bar if benchmark, figure, unit and all its stated parameters match. It must state at least
one parameter: otherwise it would be on every bar of the benchmark. The list below the bars explains the ticks.

On the bar of an overhead, no extra time is in the middle, more is to the right. The axis reaches a fixed number of
margins to each side, the same for all rows of one margin; an interval that goes on beyond it ends in an arrow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from msgspec import Struct

from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Basis
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.results.history import Reference
from seatrial.model.results.no_cpu import NOT_JUDGED
from seatrial.model.spelling import settings, show, show_percent, show_range
from seatrial.references import references_for
from seatrial.references.words import (
    ANOTHER_MACHINE,
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)
from seatrial.report.blocks import Svg
from seatrial.report.pages.view import Row
from seatrial.report.studies.effect import Overhead


class Tick(Frozen):
    """A reference on one bar. `mark` is its number in the list below the benchmark, `value` in the figure's unit."""

    mark: str
    value: float
    words: str


class ReferenceLine(Frozen):
    """One entry of the list. `what` is the figure with the settings that the source states."""

    mark: str
    value: str
    what: str
    about: str


class ReferenceMarks(Struct):
    """Numbers the references of one benchmark in the order of the rows; `lines` explain the numbers."""

    numbers: dict[str, int] = {}
    lines: list[ReferenceLine] = []

    def ticks(self, row: Row, figure: FigureResult) -> tuple[Tick, ...]:
        """The ticks of one bar, by number; new references are numbered."""
        parameters = {**row.result.experiment.parameters, **figure.point}
        found = references_for(row.result.experiment.benchmark, figure.name, parameters, figure.unit)
        ticks = [self._tick(reference) for reference in found if reference.parameters]
        return tuple(sorted(ticks, key=lambda tick: int(tick.mark)))

    def _tick(self, reference: Reference) -> Tick:
        if reference.id not in self.numbers:
            self.numbers[reference.id] = len(self.numbers) + 1
            self.lines.append(_line(str(self.numbers[reference.id]), reference))
        return Tick(str(self.numbers[reference.id]), reference.value, value_text(reference))


def _line(mark: str, reference: Reference) -> ReferenceLine:
    about = (
        f"{machine_of(reference) or 'unnamed machine'} ({ANOTHER_MACHINE})",
        configuration_text(reference),
        source_text(reference),
        reference.remark,
        contradiction_text(reference),
        f"reference {reference.id}",
    )
    return ReferenceLine(
        mark,
        value_text(reference),
        f"{reference.figure} {settings(reference.parameters)}",
        ". ".join(part[:1].upper() + part[1:] for part in about if part),
    )


def merged_labels(places: Mapping[str, float], narrowest: float, character: float) -> Sequence[tuple[str, float, str]]:
    """Labels below a bar that do not overlap: (text, place, anchor), from left to right.

    `places` are shares of the bar's width by mark, `narrowest` is the smallest width of a bar and `character` the width
    of a digit, in pixels. Labels that would overlap on such a bar are merged into one between them.
    """
    groups: list[list[str]] = []
    in_order = sorted(places, key=lambda mark: (places[mark], int(mark)))
    for _, same_place in groupby(in_order, key=lambda mark: places[mark]):
        groups.append(list(same_place))
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], places, character / narrowest):
            last = groups.pop()
            groups[-1] += last
    return [(_label(group), _place(group, places), _anchor(_place(group, places))) for group in groups]


def _overlap(left: Sequence[str], right: Sequence[str], places: Mapping[str, float], character: float) -> bool:
    return _extent(left, places, character)[1] + character > _extent(right, places, character)[0]


def _extent(group: Sequence[str], places: Mapping[str, float], character: float) -> tuple[float, float]:
    """The start and end of a label, as shares of the bar."""
    place, width = _place(group, places), len(_label(group)) * character
    start = place - {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(place)] * width
    return start, start + width


def _place(group: Sequence[str], places: Mapping[str, float]) -> float:
    return sum(places[mark] for mark in group) / len(group)


def _anchor(place: float) -> str:
    return "start" if place < 0.15 else "end" if place > 0.85 else "middle"


def _label(group: Sequence[str]) -> str:
    """The marks of a group in their order: "1", "3, 1", "2-4"; for many only their count."""
    numbers = [int(mark) for mark in group]
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        return f"{numbers[0]}\N{EN DASH}{numbers[-1]}"
    return ", ".join(group) if len(group) <= 3 else f"{len(group)} values"


_HEIGHT = 20
_LABELS_HEIGHT = 10
_NARROWEST_PX = 60.0
_DIGIT_PX = 5.5
"""The width of a bar on A4, and of a digit in a label."""
_ROOM = 1.03
"""The scale extends beyond the larger of limit and value by this factor, so that the tick at its end is visible."""


def bar(figure: FigureResult, largest: float, ticks: Sequence[Tick] = (), *, is_judged: bool = True) -> Svg:
    """The bar, with the same in words as its title. `largest` is the scale without a limit.

    `ticks` are published values of the same figure. Not `is_judged`: its programs had no CPU.
    """
    limit = figure.limit.value if figure.limit is not None else None
    high = figure.ci95[1] if figure.ci95 is not None else figure.median
    scale = _ROOM * max(limit or largest, high, figure.median)
    drawn = _drawn(figure, limit, scale) + _references(ticks, scale) if scale > 0 else ""
    words = _in_words(figure, is_judged)
    if ticks:
        beyond = " (beyond the end of the bar)"
        marks = ", ".join(f"{tick.mark}: {tick.words}{beyond if tick.value > scale else ''}" for tick in ticks)
        words += f"; published for other machines: {marks}"
    return _svg("bar", _HEIGHT + (_LABELS_HEIGHT if ticks else 0), words, drawn)


def _svg(kind: str, height: int, words: str, drawn: str) -> Svg:
    title = f"<title>{escape(words)}</title>"
    return Svg(f'<svg class="{kind}" role="img" width="100%" height="{height}">{title}{drawn}</svg>')


def _drawn(figure: FigureResult, limit: float | None, scale: float) -> str:
    parts = [_rect("track", limit / scale)] if limit else []
    parts.append(_rect("value", figure.median / scale))
    if limit and figure.limit is not None:
        basis = "physical" if figure.limit.basis is Basis.PHYSICAL else "measured"
        parts.append(_bar_line(limit / scale, limit / scale, 1, 19, f"limit {basis}"))
    if figure.ci95 is not None:
        low, high = (end / scale for end in figure.ci95)
        lines = _bar_line(low, high, 10, 10) + _bar_line(low, low, 6.5, 13.5) + _bar_line(high, high, 6.5, 13.5)
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
            # The halo separates it from the bar and from a whisker at the same position.
            shape = (
                '<path class="halo" d="M0 4.5V14"/><path class="reference stem" d="M0 4.5V14"/>'
                '<path class="reference" d="M-3.5 0h7L0 5.5z"/>'
            )
        parts.append(f'<svg aria-hidden="true" x="{_percent(tick.value / scale)}" overflow="visible">{shape}</svg>')
    places = {tick.mark: min(tick.value / scale, 1.0) for tick in ticks}
    for text, place, anchor in merged_labels(places, _NARROWEST_PX, _DIGIT_PX):
        parts.append(f'<text x="{_percent(place)}" y="{_HEIGHT + 7}" text-anchor="{anchor}">{text}</text>')
    return "".join(parts)


def _rect(kind: str, length: float) -> str:
    return f'<rect class="{kind}" x="0" y="6" width="{_percent(length)}" height="8"/>'


def _bar_line(from_x: float, to_x: float, from_y: float, to_y: float, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<line{named} x1="{_percent(from_x)}" x2="{_percent(to_x)}" y1="{from_y:g}" y2="{to_y:g}"/>'


def _percent(share: float) -> str:
    return f"{max(0.0, min(share, 1.0)) * 100:.2f}%"


def _in_words(figure: FigureResult, is_judged: bool) -> str:
    words = [f"{figure.name}: {show(figure.median, figure.unit)}"]
    if figure.ci95 is not None:
        words.append(f"95 % interval {show_range(*figure.ci95, figure.unit, beside=figure.median)}")
    if not is_judged:
        words.append(NOT_JUDGED)
    elif figure.fraction_of_limit is not None and figure.limit is not None:
        words.append(f"{show_percent(figure.fraction_of_limit)} of the {figure.limit.basis.value} limit")
    else:
        words.append("no known limit")
    return ", ".join(words)


_REACH = 4.0
"""Margins to each side of the middle."""


def overhead_bar(one: Overhead) -> Svg:
    """The bar, with the same in words as its title."""
    margin = one.comparison.margin
    band = _extra_at(-margin / (1 + margin), margin), _extra_at(margin, margin)
    drawn = [
        f'<rect class="band" x="{_percent(band[0])}" y="1" width="{_percent(band[1] - band[0])}" height="18"/>',
        _bar_line(0.5, 0.5, 1, 19, "zero"),
    ]
    if one.interval is not None:
        low, high = (_extra_at(end, margin) for end in one.interval)
        drawn += [_bar_line(low, high, 10, 10, "reach"), _end(low), _end(high)]
    if 0.0 <= (middle := _extra_at(one.extra, margin, is_cut=False)) <= 1.0:
        drawn.append(f'<circle class="value" cx="{_percent(middle)}" cy="10" r="3.5"/>')
    words = f"{one.subject}: {one.words} extra time, interval {one.interval_words}, margin {one.margin}, {one.verdict}"
    return _svg(f"bar overhead {one.comparison.verdict.value}", _HEIGHT, words, "".join(drawn))


def _extra_at(extra: float, margin: float, *, is_cut: bool = True) -> float:
    """The position on the axis, between 0 and 1."""
    place = 0.5 + extra / margin / _REACH / 2
    return min(max(place, 0.0), 1.0) if is_cut else place


def _end(place: float) -> str:
    """A short stroke at an end of the interval; an arrow where it goes on beyond the axis."""
    if 0.0 < place < 1.0:
        return _bar_line(place, place, 6, 14, "reach")
    shape = "M7 5l-7 5 7 5z" if place <= 0.0 else "M-7 5l7 5-7 5z"
    return f'<svg aria-hidden="true" x="{_percent(place)}" overflow="visible"><path class="arrow" d="{shape}"/></svg>'
