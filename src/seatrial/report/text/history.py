"""The history of a figure as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.history import Change, FigureHistory
from seatrial.model.spelling import settings
from seatrial.report.histories.words import (
    FALSE_ALARMS,
    NOT_TESTED,
    NOTHING_ELSE,
    change_words,
    no_change_words,
    span_words,
)
from seatrial.report.text.terminal import Style, clean
from seatrial.report.units import arrow

_MOST_DIFFERENCES = 12


def history_text(found: Sequence[FigureHistory], style: Style) -> str:
    """Each series with its first and last value, then its changes."""
    blocks = ["\n".join(_series(one, style)) for one in found]
    return "\n\n".join([*blocks, FALSE_ALARMS])


def _series(one: FigureHistory, style: Style) -> Iterator[str]:
    yield style.paint(
        clean(f"{one.benchmark} {one.figure} {arrow(one.better)} {settings(one.parameters)} on {one.host}"), "heading"
    )
    yield f"  {span_words(one)}"
    if not one.changes:
        yield f"  {no_change_words(one)}"
    for change in one.changes:
        yield from _change(change, one, style)


def _change(change: Change, one: FigureHistory, style: Style) -> Iterator[str]:
    yield f"  {change_words(change, one)}"
    if not change.differences:
        yield f"    {NOTHING_ELSE}"
        return
    yield f"    {NOT_TESTED}:"
    rows = [
        (one.what, _side(one.baseline), "->", _side(one.candidate)) for one in change.differences[:_MOST_DIFFERENCES]
    ]
    yield style.table([tuple(map(clean, row)) for row in rows], indent="      ")
    if len(change.differences) > _MOST_DIFFERENCES:
        yield f"      and {len(change.differences) - _MOST_DIFFERENCES} more (--format json lists all)"


def _side(text: str | None) -> str:
    return "missing" if text is None else text if len(text) <= 60 else f"{text[:57]}..."
