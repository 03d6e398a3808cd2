"""A history of figures and a screen of nodes as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from seatrial.model.results.history import Change, FigureHistory
from seatrial.model.spelling import arrow, count, day, settings, show
from seatrial.model.study.screen import Screen
from seatrial.report import histories
from seatrial.report.blocks import Detail
from seatrial.report.screen import words as screen_words
from seatrial.report.text.terminal import PLAIN, Style, clean, plain, sentences, side_text

_MOST_DIFFERENCES = 12


def history_text(found: Sequence[FigureHistory], style: Style, detail: Detail = Detail.USUAL) -> str:
    """Each series with its first and last value, then its changes; in brief, a line for each change, or that there is
    none; in full, also every session and every difference."""
    if detail is Detail.BRIEF:
        lines = [f"{_name(one)}: {text}" for one in found for text in _changes(one)]
        return "\n".join(filter(None, [histories.no_cpu_words(found), *lines]))
    blocks = ["\n".join(_series(one, style, detail)) for one in found]
    first = "\n".join(style.paint(line, "warning") for line in style.wrapped(histories.no_cpu_words(found)))
    return "\n\n".join([*filter(None, [first]), *blocks, histories.FALSE_ALARMS])


def _name(one: FigureHistory) -> str:
    return clean(f"{one.benchmark} {one.figure} {arrow(one.better)} {settings(one.parameters)} on {one.host}")


def _changes(one: FigureHistory) -> list[str]:
    return [histories.change_words(change, one) for change in one.changes] or [histories.no_change_words(one)]


def _series(one: FigureHistory, style: Style, detail: Detail) -> Iterator[str]:
    yield style.paint(_name(one), "heading")
    yield f"  {histories.span_words(one)}"
    if not one.changes:
        yield f"  {histories.no_change_words(one)}"
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
    yield f"  {histories.change_words(change, one)}"
    if not change.differences:
        yield f"    {histories.NOTHING_ELSE}"
        return
    yield f"    {histories.NOT_TESTED}:"
    most = len(change.differences) if detail is Detail.FULL else _MOST_DIFFERENCES
    shown = change.differences[:most]
    rows = [(clean(each.what), side_text(each.baseline), "->", side_text(each.candidate)) for each in shown]
    yield style.table(rows, indent="      ")
    if len(change.differences) > most:
        yield f"      and {len(change.differences) - most} more (--verbose lists all)"


_MOST_ODD = 40
_MOST_FIGURES = 3
_MOST_LISTED = 12


def screen_text(found: Screen, style: Style = PLAIN, detail: Detail = Detail.USUAL) -> str:
    """The odd ones first, with what to do; then classes of nodes, facts that differ, and the reliability."""
    return "\n".join(_lines(found, style, detail))


def _lines(found: Screen, style: Style, detail: Detail) -> Iterator[str]:
    is_full = detail is Detail.FULL
    if first := screen_words.first_sentence(found):
        yield from (style.paint(line, "warning") for line in style.wrapped(plain(f"{first}.")))
    yield style.paint(plain(screen_words.headline(found)), "error" if found.odd else "heading")
    groups = screen_words.grouped(found.odd)
    for group in groups if is_full else groups[:_MOST_ODD]:
        yield from sentences(
            [f"{screen_words.named(group[0])}: {screen_words.by_how_much(group[0])}"], style, "  ", "    "
        )
        if detail is Detail.BRIEF:
            continue
        further = screen_words.also(group)
        shown = further if is_full else further[:_MOST_FIGURES]
        yield from sentences((f"also: {text}" for text in shown), style, "    ", "      ")
        if len(further) > len(shown):
            yield f"    and in {count(len(further) - len(shown), 'more figure')} (--verbose lists all)"
        yield from sentences([f"to do: {group[0].remedy}"], style, "    ", "      ")
    if len(groups) > _MOST_ODD and not is_full:
        yield f"  and {len(groups) - _MOST_ODD} more (--verbose lists all)"
    if detail is Detail.BRIEF:
        return
    yield from sentences(map(screen_words.not_seen_again_sentence, found.not_seen_again), style, "", "  ")
    yield from sentences(map(screen_words.classes_sentence, found.classes), style, "", "  ")
    facts, counters = found.facts_that_differ, found.link_counts
    yield from _listed(
        f"nodes differ in {count(len(facts), 'fact')}", map(screen_words.fact_sentence, facts), style, is_full
    )
    grew = f"{count(len(counters), 'counter')} of links grew meanwhile"
    yield from _listed(grew, map(screen_words.counter_sentence, counters), style, is_full)
    if found.figures and is_full:
        rows: list[tuple[str, ...]] = [("figure", "of", "median", "middle 90 %", "settings")]
        for one in found.figures:
            low, high = (f"{(end - 1.0) * 100:+.1f}" for end in one.spread)
            values = (f"{len(one.items)} {one.kind.value}s", show(one.median, one.unit), f"{low} to {high} %")
            rows.append((screen_words.figure_name(one.benchmark, one.figure), *values, plain(settings(one.parameters))))
        yield ""
        yield style.table(rows, has_head=True)
    yield from sentences((f"not screened: {text}" for text in found.not_screened), style, "", "  ")
    yield ""
    yield from style.wrapped(screen_words.about(found))


def _listed(title: str, texts: Iterable[str], style: Style, is_full: bool) -> Iterator[str]:
    """Texts below a title, and how many more there are; nothing without texts."""
    known = list(texts)
    shown = known if is_full else known[:_MOST_LISTED]
    if known:
        yield ""
        yield style.paint(title, "heading")
        yield from sentences(shown, style, "  ", "    ")
    if len(known) > len(shown):
        yield f"  and {len(known) - len(shown)} more (--verbose lists all)"
