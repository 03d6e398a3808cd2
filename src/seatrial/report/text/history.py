"""A history of figures and a screen of nodes as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.results.history import Change, FigureHistory
from seatrial.model.spelling import arrow, count, settings, show
from seatrial.model.study.screen import Screen
from seatrial.report.histories import (
    FALSE_ALARMS,
    NOT_TESTED,
    NOTHING_ELSE,
    change_words,
    day,
    no_change_words,
    span_words,
)
from seatrial.report.screen.words import (
    about,
    also,
    by_how_much,
    classes_sentence,
    counter_sentence,
    fact_sentence,
    figure_name,
    grouped,
    headline,
    named,
    not_seen_again_sentence,
)
from seatrial.report.text.terminal import PLAIN, Detail, Style, clean

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


_MOST_ODD = 40
_MOST_FIGURES = 3
_MOST_FACTS = 12


def screen_text(found: Screen, style: Style = PLAIN, detail: Detail = Detail.USUAL) -> str:
    """The odd ones first, with what to do; then classes of nodes, facts that differ, and the reliability."""
    return "\n".join(_lines(found, style, detail))


def _lines(found: Screen, style: Style, detail: Detail) -> Iterator[str]:
    yield style.paint(_plain(headline(found)), "error" if found.odd else "heading")
    groups = grouped(found.odd)
    shown = groups if detail is Detail.FULL else groups[:_MOST_ODD]
    for group in shown:
        yield from style.wrapped(_plain(f"{named(group[0])}: {by_how_much(group[0])}"), "  ", "    ")
        if detail is Detail.BRIEF:
            continue
        further = also(group)
        for text in further if detail is Detail.FULL else further[:_MOST_FIGURES]:
            yield from style.wrapped(f"also: {_plain(text)}", "    ", "      ")
        if detail is not Detail.FULL and len(further) > _MOST_FIGURES:
            yield f"    and in {count(len(further) - _MOST_FIGURES, 'more figure')} (--verbose lists all)"
        yield from style.wrapped(f"to do: {_plain(group[0].remedy)}", "    ", "      ")
    if len(groups) > len(shown):
        yield f"  and {len(groups) - len(shown)} more (--verbose lists all)"
    if detail is Detail.BRIEF:
        return
    for again in found.not_seen_again:
        yield from style.wrapped(_plain(not_seen_again_sentence(again)), "", "  ")
    for classes in found.classes:
        yield from style.wrapped(_plain(classes_sentence(classes)), "", "  ")
    if found.facts_that_differ:
        yield ""
        yield style.paint(f"nodes differ in {count(len(found.facts_that_differ), 'fact')}", "heading")
        facts = found.facts_that_differ if detail is Detail.FULL else found.facts_that_differ[:_MOST_FACTS]
        for fact in facts:
            yield from style.wrapped(_plain(fact_sentence(fact)), "  ", "    ")
        if len(facts) < len(found.facts_that_differ):
            yield f"  and {len(found.facts_that_differ) - len(facts)} more (--verbose lists all)"
    if found.link_counts:
        yield ""
        yield style.paint(f"{count(len(found.link_counts), 'counter')} of links grew meanwhile", "heading")
        counters = found.link_counts if detail is Detail.FULL else found.link_counts[:_MOST_FACTS]
        for one in counters:
            yield from style.wrapped(_plain(counter_sentence(one)), "  ", "    ")
        if len(counters) < len(found.link_counts):
            yield f"  and {len(found.link_counts) - len(counters)} more (--verbose lists all)"
    if found.figures and detail is Detail.FULL:
        yield ""
        yield style.table(_figures(found), has_head=True)
    for text in found.not_screened:
        yield from style.wrapped(f"not screened: {_plain(text)}", "", "  ")
    yield ""
    yield from style.wrapped(about(found))


def _figures(found: Screen) -> Iterator[tuple[str, ...]]:
    yield ("figure", "of", "median", "middle 90 %", "settings")
    for one in found.figures:
        low, high = (f"{(end - 1.0) * 100:+.1f}" for end in one.spread)
        yield (
            figure_name(one.benchmark, one.figure),
            f"{len(one.items)} {one.kind.value}s",
            show(one.median, one.unit),
            f"{low} to {high} %",
            _plain(settings(one.parameters)),
        )


def _plain(text: str) -> str:
    return clean(text.replace("\N{NO-BREAK SPACE}", " "))
