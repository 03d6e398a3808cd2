"""The article of histories: figures that changed first, then the others; the many are folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from seatrial.model.history import Change, FigureHistory
from seatrial.report.charts.history import history_chart
from seatrial.report.histories.words import FALSE_ALARMS, NOT_TESTED, NOTHING_ELSE, change_words, day, no_change_words
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.studies.article import Article, Head, article
from seatrial.report.studies.section import Section
from seatrial.report.units import count, settings, show

if TYPE_CHECKING:
    from jinja2 import Environment

_MOST_UNFOLDED = 12
_MOST_DRAWN = 60
_MOST_LISTED = 2000
_MOST_DIFFERENCES = 40


def history_article(
    environment: Environment, found: Sequence[FigureHistory], name: str, *, is_alone: bool = True
) -> Article:
    """The histories under a name. `is_alone`: nothing else is on the page."""
    ordered = sorted(found, key=lambda one: -max((change.first_after for change in one.changes), default=float("-inf")))
    parts = [_part(one, f"h{n}") for n, one in enumerate(ordered[:_MOST_DRAWN], start=1)]
    sections = [
        Section(
            "history",
            "Over time",
            "history",
            {"shown": parts[:_MOST_UNFOLDED], "folded": parts[_MOST_UNFOLDED:]},
        )
    ]
    if len(ordered) > 1:
        left_out = len(ordered) - _MOST_LISTED
        lines = [f"{left_out} more are left out; `seatrial history FIGURE` shows one of them."] if left_out > 0 else []
        context = {"table": _all(ordered[:_MOST_LISTED]), "lines": lines, "drawn": len(parts), "found": len(ordered)}
        sections.append(Section("histories", "All figures", "histories", context))
    head = Head("History", name, [headline(ordered)], about=_about(ordered))
    return article(environment, "h", head, sections, is_alone=is_alone)


def headline(found: Sequence[FigureHistory]) -> str:
    """How many figures changed."""
    if len(found) == 1:
        changes = found[0].changes
        if not changes:
            return _sentence(no_change_words(found[0]))
        return f"{count(len(changes), 'change')}{', the latest' if len(changes) > 1 else ''}: {_latest(changes[-1])}"
    changed = sum(bool(one.changes) for one in found)
    return f"{changed} of {len(found)} figures changed" if changed else f"No change found in {len(found)} figures"


def _latest(change: Change) -> str:
    return f"{change.ratio - 1.0:+.1%} between {day(change.last_before)} and {day(change.first_after)}"


def _about(found: Sequence[FigureHistory]) -> str:
    text = "A figure with its settings on one host; a new kernel, compiler or library continues its history. "
    return f"{text}{FALSE_ALARMS}" + (
        f" Of {len(found)} histories without a change, about {len(found) / 100:.0f} would have one."
        if len(found) >= 100
        else ""
    )


def _part(one: FigureHistory, ident: str) -> dict[str, Any]:
    n = len(one.changes)
    return {
        "subject": subject(one),
        "headline": count(n, "change") if n else no_change_words(one),
        "chart": history_chart(one, ident),
        "changes": [_change(change, number, one) for number, change in enumerate(one.changes, start=1)],
    }


def subject(one: FigureHistory) -> str:
    """The figure with its settings and its host."""
    return " ".join(filter(None, (one.benchmark, one.figure, settings(one.parameters), f"on {one.host}")))


def _change(change: Change, number: int, one: FigureHistory) -> dict[str, Any]:
    shown = change.differences[:_MOST_DIFFERENCES]
    rows = [[Cell(each.what), _side(each.baseline), _side(each.candidate)] for each in shown]
    left_out = len(change.differences) - len(shown)
    note = f"{_sentence(NOT_TESTED)}:" if rows else f"{_sentence(NOTHING_ELSE)}."
    return {
        "line": f"{number}: {change_words(change, one)}.",
        "note": note,
        "table": Table("", [Column("What"), Column("Before"), Column("After")], rows) if rows else None,
        "more": f"And {left_out} more; `seatrial history --format json` lists all." if left_out > 0 else "",
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _side(text: str | None) -> Cell:
    return Cell("missing", tone="none") if text is None else Cell(text)


def _all(found: Sequence[FigureHistory]) -> Table:
    columns = [Column("Benchmark"), Column("Figure"), Column("Settings"), Column("Host")]
    columns += [Column(name, numeric=True) for name in ("Sessions", "First", "Last")]
    columns += [Column("Latest change (UTC)")]
    rows = []
    for one in found:
        first, last = one.sessions[0], one.sessions[-1]
        latest = one.changes[-1] if one.changes else None
        rows.append(
            [
                Cell(one.benchmark),
                Cell(one.figure),
                Cell(settings(one.parameters)),
                Cell(one.host),
                Cell(str(len(one.sessions)), len(one.sessions)),
                Cell(show(first.median, one.unit), first.median),
                Cell(show(last.median, one.unit), last.median),
                Cell(f"{day(latest.first_after)} ({latest.ratio - 1.0:+.1%})" if latest else no_change_words(one)),
            ]
        )
    return Table("All figures, the latest change first", columns, rows)
