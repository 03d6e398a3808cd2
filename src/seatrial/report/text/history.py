"""A history of figures and a screen of nodes as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.results.history import FigureHistory
from seatrial.model.spelling import count
from seatrial.model.study.screen import Screen
from seatrial.report import histories
from seatrial.report.blocks import Detail
from seatrial.report.screen import article, words
from seatrial.report.text.blocks import sections_text
from seatrial.report.text.terminal import PLAIN, Style, joined, plain, sentences

_MOST_FIGURES = 8
"""Figures without a change that are shown one by one."""


def history_text(found: Sequence[FigureHistory], style: Style, detail: Detail = Detail.USUAL) -> str:
    """The figures that changed, and how many did not; in brief, a line for each change, or that there is none; in full,
    also every session and every difference."""
    first = "\n".join(style.paint(line, "warning") for line in style.wrapped(histories.no_cpu_words(found)))
    if detail is Detail.BRIEF:
        lines = (f"{histories.subject(one)}: {text}" for one in found for text in _changes(one))
        return "\n".join([*filter(None, [first]), *map(plain, lines)])
    ordered = histories.latest_first(found)
    shown = ordered
    if detail is Detail.USUAL and len(found) > _MOST_FIGURES:
        shown = [one for one in ordered if one.changes]
    head = style.paint(f"{histories.headline(ordered)}.", "heading") if len(found) > 1 else ""
    return joined([first, head, sections_text(histories.sections(shown), style, detail), histories.FALSE_ALARMS])


def _changes(one: FigureHistory) -> list[str]:
    return [histories.change_words(change, one) for change in one.changes] or [histories.no_change_words(one)]


def screen_text(found: Screen, style: Style = PLAIN, detail: Detail = Detail.USUAL) -> str:
    """The odd ones first, with what to do; then classes of nodes, how many facts differ, and the reliability."""
    first = words.first_sentence(found)
    lines = [style.paint(line, "warning") for line in style.wrapped(plain(f"{first}."))] if first else []
    head = "\n".join([*lines, style.paint(plain(words.headline(found)), "error" if found.odd else "heading")])
    if detail is Detail.BRIEF:
        odd = [f"{words.named(group[0])}: {words.by_how_much(group[0])}" for group in words.grouped(found.odd)]
        return "\n".join([head, *sentences(odd, style, "  ", "    ")])
    shown = sections_text(article.sections(found, has_pictures=False), style, detail)
    return joined(
        ["\n".join(filter(None, [head, shown])), "\n".join(sentences(_notes(found, detail), style, "", "  "))]
    )


_MOST_DIFFERING = 6


def _notes(found: Screen, detail: Detail) -> Iterator[str]:
    yield from map(words.not_seen_again_sentence, found.not_seen_again)
    yield from map(words.classes_sentence, found.classes)
    if detail is not Detail.FULL and found.facts_that_differ:
        yield from words.differing_sentences(found)[:_MOST_DIFFERING]
        yield f"nodes differ in {count(len(found.facts_that_differ), 'fact')} (--verbose lists all)"
    if detail is not Detail.FULL and found.link_counts:
        yield f"{count(len(found.link_counts), 'counter')} of links grew meanwhile (--verbose lists all)"
    yield from (f"not screened: {text}" for text in found.not_screened)
    yield words.about(found)
