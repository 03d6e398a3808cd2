"""An article of the page: a head with the results, and sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import count, few_names
from seatrial.model.study.result import Compared
from seatrial.report.blocks import About, Block, Detail, Lines, Section, Table
from seatrial.version import __version__

if TYPE_CHECKING:
    from seatrial.report.blocks import Chart
    from seatrial.report.pages.view import Rendered


def tables_section(
    name: str,
    title: str,
    about: str = "",
    tables: Iterable[Table | None] = (),
    lines: Sequence[str] = (),
    left_out: int = 0,
    detail: Detail | None = Detail.FULL,
) -> Section:
    """A section of a text, tables (of what there is) with the number of rows that they leave out, and lines below."""
    blocks: list[Block] = [About(about)] if about else []
    blocks += [one for one in tables if one is not None]
    if left_out > 0:
        blocks.append(Lines([f"{left_out} more are not shown; the JSON has all."], look="note"))
    return Section(name, title, blocks=[*blocks, Lines(lines)], detail=detail)


def chart_section(
    name: str,
    title: str,
    about: str,
    charts: Iterable[Chart | None],
    lines: Sequence[str] = (),
    detail: Detail | None = Detail.FULL,
) -> list[Section]:
    """A section of the charts that could be drawn and lines below them; none without charts."""
    drawn = [chart for chart in charts if chart is not None]
    blocks: list[Block] = [About(about), *drawn, Lines(lines, look="list")]
    return [Section(name, title, blocks=blocks, detail=detail)] if drawn else []


class Article(Frozen):
    """A part of the page: its name and one line for the list at the top, its anchor, and its HTML."""

    name: str
    line: str
    anchor: str
    html: Rendered


class Head(Frozen):
    """The text above the sections. `lines` are the results, most important first.

    `needed` is what undecided results still need; `alarm` is a possible cause of a result; `about` says how it was
    obtained.
    """

    kicker: str
    name: str
    lines: Sequence[str]
    question: str = ""
    about: str = ""
    alarm: str = ""
    needed: str = ""


def no_record(experiment: str, repeat: int) -> str | None:
    """For pages without raw records."""
    return None


def article(ident: str, head: Head, sections: Sequence[Section], *, is_alone: bool) -> Article:
    """The article; its ids begin with `ident`. `is_alone`: its name is the heading of the whole page."""
    from seatrial.report.pages.view import Rendered  # sections are printed without pages, too

    made = [
        {
            "name": section.name,
            "title": section.title,
            "anchor": f"{ident}-{section.name}-section",
            "html": Rendered(f"study/{section.template}.html.j2", blocks=section.blocks, **section.context),
        }
        for section in sections
    ]
    level = "h1" if is_alone else "h2"
    html = Rendered("study/article.html.j2", head=head, sections=made, ident=ident, level=level)
    return Article(head.name, next(iter(head.lines), ""), f"{ident}-top", html)


def alarm(compared: Sequence[Compared]) -> str:
    """A warning beside the result: unintended differences, which may be its cause."""
    compared = [one for one in compared if one.comparisons or not one.lost]  # without a result, it is of no interest
    number = sum(len(one.unintended) for one in compared)
    if not number:
        return ""
    names = list(dict.fromkeys(difference.what for one in compared for difference in one.unintended))
    return f"{count(number, 'unintended difference')} between the sides: {few_names(names, 3)}"


def outcome_counts(results: Sequence[ExperimentResult]) -> str:
    """The number of experiments per outcome: "11 of 12 experiments succeeded, 1 failed"."""
    states: dict[str, int] = {}
    for result in results:
        states[result.outcome.state.value] = states.get(result.outcome.state.value, 0) + 1
    ok = states.pop("ok", 0)
    rest = "".join(f", {number} {state.replace('_', ' ')}" for state, number in states.items())
    return f"{ok} of {count(len(results), 'experiment')} succeeded{rest}"


def whole_page(
    title: str, studies: Sequence[Article], articles: Sequence[Mapping[str, Any]] = (), version: str = __version__
) -> Rendered:
    """Its own file: articles, and those of machines (`articles`), made with this version."""
    from seatrial.report.pages.view import Rendered, style_sheet

    context = {"title": title, "studies": studies, "articles": articles, "version": version}
    return Rendered("page.html.j2", style=style_sheet(), **context)
