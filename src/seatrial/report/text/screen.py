"""A screen of a cluster as text."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.model.screen import Screen
from seatrial.report.cluster.words import (
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
from seatrial.report.text.detail import Detail
from seatrial.report.text.terminal import PLAIN, Style, clean
from seatrial.report.units import count, settings, show

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
