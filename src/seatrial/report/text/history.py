"""The history of a figure as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.history import Change, FigureHistory
from seatrial.model.spelling import count, settings, show
from seatrial.report.histories.words import (
    FALSE_ALARMS,
    NOT_TESTED,
    NOTHING_ELSE,
    change_words,
    day,
    no_change_words,
    span_words,
)
from seatrial.report.text.detail import Detail
from seatrial.report.text.terminal import Style, clean
from seatrial.report.units import arrow

_MOST_DIFFERENCES = 12


def history_text(found: Sequence[FigureHistory], style: Style, detail: Detail = Detail.USUAL) -> str:
    """Each series with its first and last value, then its changes; in brief, a line for each change, or that there is
    none; in full, also every session and every difference."""
    if detail is Detail.BRIEF:
        return "\n".join(line for one in found for line in _brief(one))
    blocks = ["\n".join(_series(one, style, detail)) for one in found]
    return "\n\n".join([*blocks, FALSE_ALARMS])


def _name(one: FigureHistory) -> str:
    return clean(f"{one.benchmark} {one.figure} {arrow(one.better)} {settings(one.parameters)} on {one.host}")


def _brief(one: FigureHistory) -> Iterator[str]:
    for words in [change_words(change, one) for change in one.changes] or [no_change_words(one)]:
        yield f"{_name(one)}: {words}"


def _series(one: FigureHistory, style: Style, detail: Detail) -> Iterator[str]:
    yield style.paint(_name(one), "heading")
    yield f"  {span_words(one)}"
    if not one.changes:
        yield f"  {no_change_words(one)}"
    for change in one.changes:
        yield from _change(change, one, style, detail)
    if detail is Detail.FULL:
        yield "  sessions:"
        rows = [
            (day(session.at), show(session.median, one.unit), count(session.n_repeats, "repeat"))
            for session in one.sessions
        ]
        yield style.table(rows, indent="    ")


def _change(change: Change, one: FigureHistory, style: Style, detail: Detail) -> Iterator[str]:
    yield f"  {change_words(change, one)}"
    if not change.differences:
        yield f"    {NOTHING_ELSE}"
        return
    yield f"    {NOT_TESTED}:"
    most = len(change.differences) if detail is Detail.FULL else _MOST_DIFFERENCES
    rows = [(one.what, _side(one.baseline), "->", _side(one.candidate)) for one in change.differences[:most]]
    yield style.table([tuple(map(clean, row)) for row in rows], indent="      ")
    if len(change.differences) > most:
        yield f"      and {len(change.differences) - most} more (--verbose lists all)"


def _side(text: str | None) -> str:
    return "missing" if text is None else text if len(text) <= 60 else f"{text[:57]}..."
