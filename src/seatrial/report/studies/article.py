"""An article of the page: a head with the results, and sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.history import Reference
from seatrial.model.spelling import NO_VALUE, arrow, count, few_names, label, settings
from seatrial.model.study.result import Compared
from seatrial.model.study.study import Study, varying
from seatrial.references.loader import all_references
from seatrial.references.words import (
    ANOTHER_MACHINE,
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)
from seatrial.report.charts.distributions import Recorded
from seatrial.report.pages.view import (
    Cell,
    Cells,
    Table,
    Verbatim,
    headings,
    median_cells,
    nearest,
    rendered,
    right,
    style_sheet,
)
from seatrial.report.studies.verdicts import shared
from seatrial.version import __version__

if TYPE_CHECKING:
    from seatrial.report.charts.vega import Chart


class Section(Frozen):
    """One part of an article. `template` is a file in `templates/study/`."""

    name: str
    title: str
    template: str
    context: Mapping[str, Any]


def tables_section(
    name: str,
    title: str,
    about: str = "",
    tables: Iterable[Table | None] = (),
    lines: Sequence[str] = (),
    left_out: int = 0,
) -> Section:
    """A section of a text, tables (of what there is) with the number of rows that they leave out, and lines below."""
    shown = [one for one in tables if one is not None]
    context = {"about": about, "tables": shown, "left_out": max(0, left_out), "lines": lines}
    return Section(name, title, "tables", context)


def chart_section(
    name: str, title: str, about: str, charts: Iterable[Chart | None], lines: Sequence[str] = ()
) -> list[Section]:
    """A section of the charts that could be drawn and lines below them; none without charts."""
    drawn = [chart for chart in charts if chart is not None]
    return [Section(name, title, "charts", {"about": about, "charts": drawn, "lines": lines})] if drawn else []


class Aspect(Frozen):
    """One aspect of how reliable results are. `is_weak`: it limits their value."""

    name: str
    text: str
    is_weak: bool = False


class Article(Frozen):
    """A part of the page: its name and one line for the list at the top, its anchor, and its HTML."""

    name: str
    line: str
    anchor: str
    html: Verbatim


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
    made = [
        {
            "name": section.name,
            "title": section.title,
            "anchor": f"{ident}-{section.name}-section",
            "html": Verbatim(rendered(f"study/{section.template}.html.j2", **section.context)),
        }
        for section in sections
    ]
    level = "h1" if is_alone else "h2"
    html = rendered("study/article.html.j2", head=head, sections=made, ident=ident, level=level)
    return Article(head.name, next(iter(head.lines), ""), f"{ident}-top", Verbatim(html))


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
) -> str:
    """A file of its own: articles, and those of machines (`articles`), made with this version."""
    context = {"title": title, "studies": studies, "articles": articles, "version": version}
    return rendered("page.html.j2", style=style_sheet(), **context)


_MOST_ROWS = 1000
_MOST_UNFOLDED = 20


def experiment_sections(results: Sequence[ExperimentResult], record: Recorded) -> list[Section]:
    """One section: experiments without a result first, then the table of figures."""
    if not results:
        return []
    names = _names(results)
    rows = [_row(names[result.id], result, figure, record) for result in results for figure in result.shown]
    numbers = right("Median", "95 % interval", "Repeats", "Fraction of limit")
    columns = headings("Experiment", "Figure", *numbers, "Record")
    caption = f"Figures of {count(len(results), 'experiment')}"
    context = {
        "held": [_held(results, benchmark) for benchmark in dict.fromkeys(r.experiment.benchmark for r in results)],
        "lost": _lost([result for result in results if not result.shown], names),
        "table": Table.if_any(caption, columns, rows[:_MOST_ROWS]),
        "is_folded": len(rows) > _MOST_UNFOLDED,
        "left_out": max(0, len(rows) - _MOST_ROWS),
    }
    return [Section("experiments", "Experiments", "experiments", context)]


def _names(results: Sequence[ExperimentResult]) -> dict[str, str]:
    """Experiment id -> the benchmark with the settings that distinguish its experiments."""
    settings = grouped((result.experiment.benchmark, result.experiment.parameters) for result in results)
    distinct = {benchmark: varying(own) for benchmark, own in settings.items()}
    several = len({result.experiment.environment for result in results}) > 1
    has_containers = any(result.container for result in results)
    names = {}
    for result in results:
        benchmark, parameters = result.experiment.benchmark, result.experiment.parameters
        words = [benchmark, *(label(name, parameters[name]) for name in distinct[benchmark] if name in parameters)]
        if has_containers:
            words.append(f"in {result.container}" if result.container else "no container")
        elif several and result.experiment.environment:
            words.append(f"environment {result.experiment.environment}")
        names[result.id] = " · ".join(words)
    return names


def _held(results: Sequence[ExperimentResult], benchmark: str) -> str:
    own = [result.experiment.parameters for result in results if result.experiment.benchmark == benchmark]
    held = " · ".join(label(name, value) for name, value in shared(own).items())
    return f"{benchmark}, all with {held}" if held else benchmark


def _lost(lost: Sequence[ExperimentResult], names: Mapping[str, str]) -> Table | None:
    rows: list[Cells] = []
    for result in lost[:_MOST_ROWS]:
        state = result.outcome.state.value
        why = result.outcome.reason or ("no figures" if result.outcome.is_ok else "no reason was recorded")
        rows.append([names[result.id], Cell(state.replace("_", " "), tone=f"outcome {state}"), why])
    return Table.if_any("Without a result", ["Experiment", "Outcome", "Why"], rows)


def _row(name: str, result: ExperimentResult, figure: FigureResult, record: Recorded) -> Cells:
    point = " · ".join(label(*item) for item in figure.point.items())
    link = next((href for repeat in nearest(figure, 3) if (href := record(result.id, repeat))), None)
    return [
        name,
        f"{figure.name}{f' · {point}' if point else ''} {arrow(figure.better)}",
        *median_cells(figure),
        Cell.number(figure.n_repeats),
        Cell.share(figure.fraction_of_limit),
        Cell("record", href=link) if link else NO_VALUE,
    ]


_RULE = (
    "What others measured for the same question on other machines, without intervals: compare directions and sizes "
    "with the verdicts, not the values themselves."
)


_MOST_LINES = 4
"""Of one source on a terminal."""


class Source(Frozen):
    """The values of one source, in the order of the study."""

    name: str
    references: Sequence[Reference]


def published_sources(study: Study) -> Sequence[Source]:
    """The published values of a study by source; ids that are not known here (a results folder of another site) are
    left out."""
    known = {reference.id: reference for reference in all_references()}
    sources: dict[str, list[Reference]] = {}
    for reference in filter(None, map(known.get, study.references)):
        name = ": ".join(filter(None, (source_text(reference), machine_of(reference))))
        sources.setdefault(name, []).append(reference)
    return [Source(name, those) for name, those in sources.items()]


def published_sections(study: Study) -> list[Section]:
    """One section with a table for each source; none if the study names no value."""
    tables = [_table(source) for source in published_sources(study)]
    return [tables_section("published", "Published values", _RULE, tables)] if tables else []


def published_lines(study: Study) -> list[tuple[str, str]]:
    """(What stands before it and below which it is wrapped, text): a line for each source and for its first values."""
    lines = []
    for source in published_sources(study):
        lines.append(("published: ", f"{source.name} ({ANOTHER_MACHINE})"))
        for reference in source.references[:_MOST_LINES]:
            value = f"{reference.benchmark} {reference.figure} {value_text(reference)} {arrow(reference.better)}"
            about = "; ".join(filter(None, (_with(reference), f"reference {reference.id}")))
            lines.append(("  ", f"{value}: {about}"))
        if len(source.references) > _MOST_LINES:
            lines.append(("  ", f"and {len(source.references) - _MOST_LINES} more, on the page"))
    return lines


def _table(source: Source) -> Table:
    rows: list[Cells] = []
    for reference in source.references:
        value = Cell(f"{value_text(reference)} {arrow(reference.better)}", reference.value)
        remark = "; ".join(filter(None, (reference.remark, contradiction_text(reference))))
        tone = "remark-cell" if reference.contradicts else ""
        what = f"{reference.benchmark} {reference.figure}"
        rows.append([what, value, _with(reference), Cell(remark, tone=tone), reference.id])
    return Table.of(source.name, ["What", *right("Published"), "With", "Remark", "Reference"], rows)


def _with(reference: Reference) -> str:
    return "; ".join(filter(None, (configuration_text(reference), settings(reference.parameters))))
