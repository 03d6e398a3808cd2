"""Histories of figures in words, for the terminal and the page."""

from __future__ import annotations

from datetime import UTC, datetime

from seatrial.analysis.history import FALSE_ALARM_RATE
from seatrial.model.history import Change, FigureHistory
from seatrial.model.spelling import count, show

FALSE_ALARMS = f"In a history without a change, one is named in at most {FALSE_ALARM_RATE:.0%} of cases."
NOT_TESTED = "recorded to differ between the sessions before and after (whether it is the reason is not tested)"
NOTHING_ELSE = "nothing else that was recorded changed then"


def day(seconds: float) -> str:
    """The time in UTC, to the minute; "?" if it is not a date."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def change_words(change: Change, one: FigureHistory) -> str:
    """When a figure changed, by how much, and how sure that is."""
    return (
        f"between {day(change.last_before)} and {day(change.first_after)}: from {show(change.before, one.unit)} to "
        f"{show(change.after, one.unit)} ({change.ratio - 1.0:+.1%}), sureness {change.sureness:.2%}"
    )


def span_words(one: FigureHistory) -> str:
    """How long a history is, with its first and last value."""
    first, last = one.sessions[0], one.sessions[-1]
    return (
        f"{count(len(one.sessions), 'session')}, {day(first.at)} to {day(last.at)}: "
        f"first {show(first.median, one.unit)}, last {show(last.median, one.unit)}"
    )


def no_change_words(one: FigureHistory) -> str:
    """Why a history has no change: none was found, or it is too short."""
    return one.why_not or "no change found"
