"""The history of a figure as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from seatrial.analysis.history import FALSE_ALARM_RATE
from seatrial.model.history import Change, FigureHistory
from seatrial.model.spelling import count, settings, show
from seatrial.report.text.terminal import Style, clean

_MOST_DIFFERENCES = 12


def history_text(found: Sequence[FigureHistory], style: Style) -> str:
    """Each series with its first and last value, then its changes."""
    blocks = ["\n".join(_series(one, style)) for one in found]
    rate = f"In a history without a change, one is named in at most {FALSE_ALARM_RATE:.0%} of cases."
    return "\n\n".join([*blocks, rate])


def _series(one: FigureHistory, style: Style) -> Iterator[str]:
    arrow = "↑" if one.better == "higher" else "↓"
    yield style.paint(
        clean(f"{one.benchmark} {one.figure} {arrow} {settings(one.parameters)} on {one.host}"), "heading"
    )
    first, last = one.sessions[0], one.sessions[-1]
    yield (
        f"  {count(len(one.sessions), 'session')}, {day(first.at)} to {day(last.at)}: "
        f"first {show(first.median, one.unit)}, "
        f"last {show(last.median, one.unit)}"
    )
    if one.why_not:
        yield f"  {one.why_not}"
    elif not one.changes:
        yield "  no change found"
    for change in one.changes:
        yield from _change(change, one, style)


def _change(change: Change, one: FigureHistory, style: Style) -> Iterator[str]:
    yield (
        f"  between {day(change.last_before)} and {day(change.first_after)}: from {show(change.before, one.unit)} to "
        f"{show(change.after, one.unit)} ({change.ratio - 1.0:+.1%}), sureness {change.sureness:.2%}"
    )
    if not change.differences:
        yield "    nothing else that was recorded changed then"
        return
    yield "    recorded to differ between the sessions before and after (whether it is the reason is not tested):"
    rows = [
        (one.what, _side(one.baseline), "->", _side(one.candidate)) for one in change.differences[:_MOST_DIFFERENCES]
    ]
    yield style.table([tuple(map(clean, row)) for row in rows], indent="      ")
    if len(change.differences) > _MOST_DIFFERENCES:
        yield f"      and {len(change.differences) - _MOST_DIFFERENCES} more (--format json lists all)"


def _side(text: str | None) -> str:
    return "missing" if text is None else text if len(text) <= 60 else f"{text[:57]}..."


def day(seconds: float) -> str:
    """The time in UTC, to the minute; "?" if it is not a date."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"
