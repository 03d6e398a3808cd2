"""Histories on the page: a figure over the sessions of months, with its changes of level. Those that changed come
first, the many are folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.history import FALSE_ALARM_RATE
from seatrial.model.results.history import Change, FigureHistory
from seatrial.model.results.no_cpu import no_cpu_sentence
from seatrial.model.spelling import NO_VALUE, arrow, arrow_meaning, count, day, display_scale, settings, show
from seatrial.report.blocks import (
    Block,
    Cell,
    Cells,
    Chart,
    Detail,
    Fold,
    Heading,
    Lines,
    Section,
    Table,
    headings,
    right,
)
from seatrial.report.charts.distributions import number_format, padded_domain
from seatrial.report.charts.repeats import spaced
from seatrial.report.charts.vega import chart, layer, quantity, text_layers
from seatrial.report.studies.article import Article, Head, article, whole_page

FALSE_ALARMS = f"In a history without a change, one is named in at most {FALSE_ALARM_RATE:.0%} of cases."
NOT_TESTED = "recorded to differ between the sessions before and after (whether it is the reason is not tested)"
NOTHING_ELSE = "nothing else that was recorded changed then"


def no_cpu_words(found: Sequence[FigureHistory]) -> str:
    """The sessions in which programs had no CPU, with a full stop; "" if there are none."""
    sessions = {session.at: session.no_cpu for one in found for session in one.sessions}
    missing = [one for one in sessions.values() if one is not None]
    then = "a change of level there may be this load"
    sentence = no_cpu_sentence(missing, then, len(sessions), "session")
    return f"{_sentence(sentence)}." if sentence else ""


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


_WIDTH = 760
_HEIGHT = 170
_LEAST_HEIGHT = 0.02
"""The axis spans at least 2 %: a smaller change does not matter."""
_MOST_SESSIONS = 300
_MOST_NUMBERED = 20
_NUMBER = {"baseline": "top", "align": "right", "dx": -3, "color": "var(--ink)"}


def history_chart(one: FigureHistory, ident: str) -> Chart:
    """The medians of the sessions over time, the level between changes, and a band where each change happened."""
    caption = f"A dot is the median of a session; {arrow_meaning(one.better)} {arrow(one.better)}."
    if one.changes:
        caption += (
            " Lines are medians between changes. A change happened between the last session before it and the first "
            "one after it, where the band is."
        )
    drawn = drawn_sessions(one)
    if len(drawn) < len(one.sessions):
        caption += (
            f" Of {len(one.sessions)} sessions, {len(drawn)} are drawn and listed: evenly spaced ones, the smallest, "
            "the largest, and those at a change."
        )
    words = ". ".join([span_words(one), *(change_words(change, one) for change in one.changes)])
    said = f"{words}. {'' if one.changes else no_change_words(one)}"
    title = f"{one.figure} over time"
    return chart(_spec(one, drawn), f"{ident}-history", title, caption, _table(one, drawn), said)


def drawn_sessions(one: FigureHistory) -> list[int]:
    """The sessions that are drawn: all, or evenly spaced ones with the extremes and those beside a change."""
    places = spaced([session.median for session in one.sessions], _MOST_SESSIONS)
    return sorted(places | {place for change in one.changes for place in (change.index - 1, change.index)})


def _spec(one: FigureHistory, drawn: list[int]) -> dict[str, Any]:
    scale, unit = display_scale([session.median for session in one.sessions], one.unit)
    points = [{"x": one.sessions[n].at * 1e3, "y": one.sessions[n].median / scale} for n in drawn]
    values = [point["y"] for point in points]
    x: dict[str, Any] = {"field": "x", "type": "temporal", "title": None, "scale": {"type": "utc"}}
    x["axis"] = {"grid": False, "labelOverlap": True, "tickCount": 8}
    domain = padded_domain(min(values), max(values), _LEAST_HEIGHT)
    axis = {"tickCount": 4, "format": number_format(domain), "minExtent": 46}
    title = f"{unit or 'ratio'} {arrow(one.better)}"
    y = quantity("y", title, scale={"domain": domain, "nice": False, "zero": False}, axis=axis)
    across = {"x": x, "x2": {"field": "x2"}}
    changes = [
        {"x": change.last_before * 1e3, "x2": change.first_after * 1e3, "text": str(number)}
        for number, change in enumerate(one.changes, start=1)
    ]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "layer": [
            # The rim keeps a change visible whose sessions are minutes apart in a history of months.
            layer("rect", across, changes, color="var(--band)", stroke="var(--band)", strokeWidth=3),
            layer("rule", {**across, "y": y}, _levels(one, scale), color="var(--ink)", strokeWidth=1.2),
            layer("point", {"x": x, "y": y}, points, filled=True, size=26, opacity=1, color="var(--accent)"),
            *text_layers(changes[:_MOST_NUMBERED], _NUMBER, x, {"value": 2}),
        ],
    }


def _levels(one: FigureHistory, scale: float) -> list[dict[str, float]]:
    """The medians between changes, from the first session of a part to its last one."""
    if not one.changes:
        return []
    starts = [one.sessions[0].at, *(change.first_after for change in one.changes)]
    ends = [*(change.last_before for change in one.changes), one.sessions[-1].at]
    heights = [one.changes[0].before, *(change.after for change in one.changes)]
    return [
        {"x": start * 1e3, "x2": end * 1e3, "y": height / scale}
        for start, end, height in zip(starts, ends, heights, strict=True)
    ]


def _table(one: FigureHistory, drawn: list[int]) -> Table:
    after = {change.index: number for number, change in enumerate(one.changes, start=1)}
    rows: list[Cells] = []
    for n in drawn:
        session = one.sessions[n]
        place = [str(after.get(n, NO_VALUE))] * bool(after)
        rows.append([day(session.at), Cell.amount(session.median, one.unit, 4), Cell.number(session.n_repeats), *place])
    columns = headings("Started (UTC)", *right("Median", "Repeats", *["First after change"] * bool(after)))
    return Table.of(f"Sessions of {one.figure}", columns, rows)


_MOST_UNFOLDED = 12
_MOST_DRAWN = 60
_MOST_LISTED = 2000
_MOST_DIFFERENCES = 40


def history_article(found: Sequence[FigureHistory], name: str, *, is_alone: bool = True) -> Article:
    """The histories under a name. `is_alone`: nothing else is on the page."""
    ordered = latest_first(found)
    lines = [*filter(None, [no_cpu_words(found).removesuffix(".")]), headline(ordered)]
    head = Head("History", name, lines, about=_about(ordered))
    return article("h", head, sections(ordered), is_alone=is_alone)


def latest_first(found: Sequence[FigureHistory]) -> list[FigureHistory]:
    """Those that changed first, the latest change before the others."""
    return sorted(found, key=lambda one: -max((change.first_after for change in one.changes), default=float("-inf")))


def sections(ordered: Sequence[FigureHistory]) -> list[Section]:
    """Each figure over time, then a table of all; on a terminal, those that did not change only in the table."""
    blocks: list[Block] = []
    for number, one in enumerate(ordered[:_MOST_DRAWN], start=1):
        part = _part(one, f"h{number}")
        is_open = number <= _MOST_UNFOLDED
        blocks += part if is_open else [Fold(f"{subject(one)}: {_found(one)}", part[1:])]
    made = [Section("history", "Over time", blocks=blocks, detail=Detail.USUAL)]
    if len(ordered) > 1:
        left_out = len(ordered) - _MOST_LISTED
        drawn = [f"The first {_MOST_DRAWN} are drawn above."] if len(ordered) > _MOST_DRAWN else []
        lines = [f"{left_out} more are left out; `seatrial history FIGURE` shows one of them."] if left_out > 0 else []
        every = (Lines(drawn), _all(ordered[:_MOST_LISTED]), Lines(lines, look="note"))
        made.append(Section("histories", "All figures", blocks=every))
    return made


def headline(found: Sequence[FigureHistory]) -> str:
    """How many figures changed."""
    if len(found) == 1:
        changes = found[0].changes
        if not changes:
            return _sentence(no_change_words(found[0]))
        last = changes[-1]
        latest = f"{last.ratio - 1.0:+.1%} between {day(last.last_before)} and {day(last.first_after)}"
        return f"{count(len(changes), 'change')}{', the latest' if len(changes) > 1 else ''}: {latest}"
    changed = sum(bool(one.changes) for one in found)
    return f"{changed} of {len(found)} figures changed" if changed else f"No change found in {len(found)} figures"


def _about(found: Sequence[FigureHistory]) -> str:
    text = "A figure with its settings on one host; a new kernel, compiler or library continues its history. "
    text += FALSE_ALARMS
    if len(found) >= 100:
        text += f" Of {len(found)} histories without a change, about {len(found) / 100:.0f} would have one."
    return text


def _found(one: FigureHistory) -> str:
    n = len(one.changes)
    return count(n, "change") if n else no_change_words(one)


def _part(one: FigureHistory, ident: str) -> list[Block]:
    """The figure, its sessions, and each change with what else differed."""
    drawn = history_chart(one, ident)
    numbers = replace(drawn.table, detail=Detail.FULL)
    blocks: list[Block] = [Heading(subject(one), _found(one)), Lines([f"{_sentence(span_words(one))}."], look="note")]
    blocks.append(replace(drawn, is_listed=True, table=numbers))
    for number, change in enumerate(one.changes, start=1):
        blocks += _change(change, number, one)
    return blocks


def subject(one: FigureHistory) -> str:
    """The figure with its settings and its host."""
    return " ".join(filter(None, (one.benchmark, one.figure, settings(one.parameters), f"on {one.host}")))


def _change(change: Change, number: int, one: FigureHistory) -> list[Block]:
    shown = change.differences[:_MOST_DIFFERENCES]
    rows = [(each.what, _side(each.baseline), _side(each.candidate)) for each in shown]
    left_out = len(change.differences) - len(shown)
    note = f"{_sentence(NOT_TESTED)}:" if rows else f"{_sentence(NOTHING_ELSE)}."
    more = [f"And {left_out} more; `seatrial history --format json` lists all."] if left_out > 0 else []
    table = replace(Table.of("", ["What", "Before", "After"], rows), look="differences")
    change_lines = Lines([f"{number}: {change_words(change, one)}."], look="strong")
    return [change_lines, Lines([note], look="note"), *([table] if rows else []), Lines(more, look="note")]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _side(text: str | None) -> Cell:
    return Cell("missing", tone="none") if text is None else Cell(text)


def _all(found: Sequence[FigureHistory]) -> Table:
    rows: list[Cells] = []
    for one in found:
        change = no_change_words(one)
        if one.changes:
            change = f"{day(one.changes[-1].first_after)} ({one.changes[-1].ratio - 1.0:+.1%})"
        ends = [Cell.amount(session.median, one.unit) for session in (one.sessions[0], one.sessions[-1])]
        named = [one.benchmark, one.figure, settings(one.parameters), one.host]
        rows.append([*named, Cell.number(len(one.sessions)), *ends, change])
    columns = headings(
        "Benchmark", "Figure", "Settings", "Host", *right("Sessions", "First", "Last"), "Latest change (UTC)"
    )
    return Table.of("All figures, the latest change first", columns, rows)


def history_page(found: Sequence[FigureHistory], figure: str) -> str:
    """The whole file as text."""
    return whole_page(f"History of {figure}", [history_article(found, figure)]).__html__()
