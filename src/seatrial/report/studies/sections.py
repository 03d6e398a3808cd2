"""The sections of a study on the page: the content of each, and its template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.answer import reaches_of
from seatrial.analysis.grouped import grouped
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, ScreenResult
from seatrial.model.results.history import Reference
from seatrial.model.spelling import NO_VALUE, arrow, count, label, settings
from seatrial.model.study.comparison import Difference
from seatrial.model.study.result import BestOfResult, Compared, ScalingResult
from seatrial.model.study.study import Study, varying
from seatrial.references.loader import all_references
from seatrial.references.words import (
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)
from seatrial.report.blocks import (
    About,
    Aspects,
    Block,
    Cell,
    Cells,
    Chart,
    Detail,
    Heading,
    Lines,
    Section,
    Table,
    VerdictLine,
    Verdicts,
    headings,
    right,
)
from seatrial.report.charts.best_map import best_map
from seatrial.report.charts.distributions import Recorded, distributions, drawn_pairs, drift_words, in_order
from seatrial.report.charts.forest import forest
from seatrial.report.charts.scaling import efficiency_chart, fit_chart, scaling_chart, scaling_table
from seatrial.report.charts.trade_off import Given, environments_given, trade_offs
from seatrial.report.intervals import share_words
from seatrial.report.pages.view import median_cells, nearest
from seatrial.report.studies import best_of_words, change_words, scaling_words
from seatrial.report.studies.answer_words import reach_sentence
from seatrial.report.studies.article import chart_section, tables_section
from seatrial.report.studies.container_section import container_sections, is_stated_by_facts
from seatrial.report.studies.design import design_lines, fairness_headline, said_once, spoken, unintended_first
from seatrial.report.studies.verdicts import (
    comparison_table,
    headline,
    in_order_of_sizes,
    ratio_note,
    relative_table,
    shared,
)
from seatrial.stats.restated import without_restated

_MOST_ROWS = 1000
_MOST_EXPERIMENTS_UNFOLDED = 20
_MOST_SCALING_CHARTS = 12

_RATIOS = (
    "The candidate relative to the baseline, for each figure. The verdict is whether the thick line is inside or "
    "outside the shaded band. A thick line that crosses an edge of the band is undecided: where it is wider "
    "than the band, the noise is too large; where it is narrow, the difference is at the edge of the margin."
)
_SPREAD = (
    "The values behind the medians. Look for two clusters on one side (a median between them represents neither), long "
    "tails, and overlap between the sides."
)
_TIME = (
    "The same repeats in the order of measurement. Look whether both sides move together (the machine drifted, and "
    "blocks compensate for it) or only one does, and whether the first repeats differ from the others."
)

_IN_BRACKETS = (
    "The interval behind the verdict is in brackets, in percent, or as a factor, like the number before it: the "
    "candidate over the baseline, as measured, whether higher or lower is better."
)
_ARROWS = (
    "p is for the hypothesis that the ratio is within the margin, adjusted for all comparisons (Holm). ↑ higher is "
    "better, ↓ lower is better."
)
_LEFT_OUT = "What the comparison was to include, and why it does not. It is in no table and no verdict."


def comparison_sections(compared: Sequence[Compared], ident: str, record: Recorded) -> list[Section]:
    """Fairness, verdicts, containers, ratios, distributions, order of time; the last three only if there is anything
    to draw.

    Empty if nothing was compared.
    """
    if not compared:
        return []
    comparisons = [comparison for comparison, _ in in_order_of_sizes(compared)]
    names = [name for _, name in in_order_of_sizes(compared)]
    left_out = list(dict.fromkeys(text for one in compared for text in one.lost))
    sections: list[Section] = []
    if left_out:
        blocks = (About(_LEFT_OUT), Lines(left_out, "not compared", "list"))
        sections.append(Section("left-out", "Not compared", blocks=blocks, detail=Detail.USUAL))
    if comparisons or (not left_out and any(one.differences for one in compared)):
        sections.append(_shown("fairness", "Is it a fair comparison?", _fairness(compared)))
    if not comparisons:
        return [*sections, *container_sections(compared), *_where(compared)]
    beside = relative_table(comparisons)
    tables = () if beside is None else (beside,)
    sections.append(_shown("verdicts", "Verdicts", _verdicts(compared), *tables, About(_IN_BRACKETS)))
    sections += container_sections(compared)
    number = "The comparison" if len(comparisons) == 1 else f"{len(comparisons)} comparisons"
    named = list(zip(names, comparisons, strict=True))
    numbers = comparison_table(named, f"{number}: medians and ratios of the raw figures")
    numbers = replace(numbers, look="ratios by-comparison")
    held = " · ".join(label(*item) for item in shared([one.parameters for one in comparisons]).items())
    same = [f"Same in all comparisons: {held}."] if held else []
    charts = [replace(one, is_bare=True) for one in forest(comparisons, names, ident)]
    note = Lines(list(filter(None, [ratio_note(comparisons)])), look="note")
    ratios: tuple[Block, ...] = (About(_RATIOS), Lines(same, look="note"), *charts, numbers, note, About(_ARROWS))
    sections.append(Section("ratios", "Ratios with their intervals", blocks=ratios))
    sections += _where(compared)
    spread = distributions(comparisons, names, ident)
    drifts = [f"{one.subject}: {drift_words(one.comparison)}." for one in drawn_pairs(comparisons, names)]
    sections += chart_section("distributions", "Distributions", _SPREAD, [spread])
    return sections + chart_section("order", "Over time", _TIME, [in_order(comparisons, names, ident, record)], drifts)


def _where(compared: Sequence[Compared]) -> list[Section]:
    """The breakdowns of a difference; empty if no probe recorded them."""
    blocks: list[Block] = []
    for one in change_words.breakdowns_of(compared):
        lines = [*change_words.change_lines(one), *change_words.breakdown_lines(one)]
        blocks += [Heading(change_words.breakdown_title(one), change_words.breakdown_sentence(one)), Lines(lines)]
        if (table := change_words.breakdown_table(one)) is not None:
            blocks.append(replace(table, detail=Detail.FULL))
    rule = About(change_words.BREAKDOWN_RULE)
    return [_shown("where", "Where the difference comes from", *blocks, rule)] if blocks else []


def _shown(name: str, title: str, *blocks: Block) -> Section:
    """A section that a terminal always shows."""
    return Section(name, title, blocks=blocks, detail=Detail.USUAL)


def _fairness(compared: Sequence[Compared]) -> Aspects:
    pairs = [pair for pair in unintended_first(compared) if not is_stated_by_facts(*pair)]
    several = len(compared) > 1
    unintended = [_with_folded(*pair) for pair in pairs if pair[1].is_unintended_cause]
    asked = [pair for pair in pairs if pair[1].intended and not pair[1].follows_from]
    followed = [pair for pair in pairs if pair[1].intended and pair[1].follows_from]
    tables = (
        _differences("Unintended differences", unintended, several, tone="alarm"),
        _differences("Intended: what the comparison is about", asked, several, Detail.FULL),
        _differences("Consequences of the intended differences", followed, several, Detail.FULL, is_folded=True),
    )
    shown = [table for table in tables if table is not None]
    return Aspects(fairness_headline(compared), design_lines(compared), bool(unintended), shown)


def _with_folded(one: Compared, root: Difference) -> tuple[Compared, Difference]:
    """The difference with the names of those that follow from it, which are part of the same change."""
    names = [each.what for each in one.differences if each.follows_from == root.what and not each.intended]
    if not names:
        return one, root
    return one, replace(root, what=f"{root.what} (with it: {', '.join(names)})")


def _differences(
    caption: str,
    pairs: Sequence[tuple[Compared, Difference]],
    several: bool,
    detail: Detail = Detail.USUAL,
    tone: str = "",
    *,
    is_folded: bool = False,
) -> Table | None:
    """One row per difference; the headings name the sides if there are only two. None without differences."""
    if not pairs:
        return None
    follows = any(difference.follows_from for _, difference in pairs)
    sides = ["Baseline", "Candidate", "Comparison"]
    if not several:
        sides = [f"Baseline: {pairs[0][0].baseline}", f"Candidate: {pairs[0][0].candidate}"]
    rows: list[Cells] = []
    for one, difference in pairs:
        both = [_side(side, tone) for side in (difference.baseline, difference.candidate)]
        more = [one.candidate] * several + [difference.follows_from] * follows
        rows.append([Cell(difference.what, tone=tone), *both, *more])
    made = Table.of(caption, ["What", *sides, *["Follows from"] * follows], rows)
    return replace(made, look="differences", detail=detail, is_folded=is_folded)


def _side(text: str | None, tone: str) -> Cell:
    return Cell("absent", tone=tone or "none") if text is None else Cell(text, tone=tone)


def _verdicts(compared: Sequence[Compared]) -> Verdicts:
    made = [
        VerdictLine(one.comparison.verdict.value, one.subject, one.word, one.sentence, one.hint, one.note)
        for one in spoken(compared)
    ]
    return Verdicts(made, headline(compared) if len(made) > 1 else "")


def scaling_sections(results: Sequence[ScalingResult], ident: str) -> list[Section]:
    """One section for all scaling results: a part for each figure. Only the first ones have charts."""
    if not results:
        return []
    blocks: list[Block] = []
    said: set[str] = set()
    restated = without_restated(
        [
            (
                (one.benchmark, one.along, *one.parameters.items()),
                (one.unit, one.better),
                [point.value or 0.0 for point in one.points],
            )
            for one in results
        ]
    )
    for number, result in enumerate(results, start=1):
        own = f"{ident}-{number}"
        (reach,) = reaches_of([result])
        makers: tuple[Callable[[ScalingResult, str], Chart | None], ...] = (scaling_chart, efficiency_chart, fit_chart)
        first = restated.get(number - 1)
        has_charts = first is None and number <= _MOST_SCALING_CHARTS
        drawn = [maker(result, own) for maker in makers] if has_charts else []
        lines = [
            scaling_words.scaling_design(result),
            scaling_words.crossing_words(result),
            *(scaling_words.fit_words(result, fit) for fit in result.fits),
        ]
        lines += [scaling_words.no_fit_words(result), result.note if result.fits else ""]
        if first is not None:
            lines = [f"It restates {results[first].figure}, which has the charts."]
        found = reach_sentence(reach) if len(results) > 1 else ""
        charts = [replace(chart, is_bare=n == 0) for n, chart in enumerate(filter(None, drawn))]
        table = replace(scaling_table(result), look="ratios")
        heading = Heading(f"{result.benchmark} {result.figure}", found)
        blocks += [heading, Lines([" ".join(said_once(lines, said))]), *charts, table]
    return [Section("scaling", "Scaling", blocks=blocks)]


def best_of_sections(results: Sequence[BestOfResult], ident: str) -> list[Section]:
    """One section for all sweeps: the winner, its lead, a map of two axes, all contenders."""
    said: set[str] = set()
    blocks: list[Block] = []
    for number, result in enumerate(results, start=1):
        found = best_of_words.best_of_headline(result) if len(results) > 1 else ""
        chart = best_map(result, f"{ident}-{number}") if number <= _MOST_SCALING_CHARTS else None
        lines = Lines([" ".join(said_once(best_of_words.best_of_lines(result), said))])
        blocks += [Heading(best_of_words.best_of_figure(result), found), lines]
        blocks += [] if chart is None else [replace(chart, is_bare=True)]
        blocks.append(best_of_words.contenders_table(result))
    return [Section("best-of", "Best of the sweep", blocks=blocks)] if blocks else []


_MOST_TRADES = 4
_TRADE = (
    "What a faster setting costs. Look for a point on the front that is nearly as fast as the fastest, and costs less."
)


def trade_off_sections(results: Sequence[ExperimentResult], ident: str, given: Given) -> list[Section]:
    """Speed against energy; empty if the energy of fewer than three experiments is known."""
    charts = list(trade_offs(results, ident, given))
    return chart_section("energy", "Speed against energy", _TRADE, charts[:_MOST_TRADES], _more(charts))


def _more(charts: Sequence[Chart]) -> list[str]:
    left_out = len(charts) - _MOST_TRADES
    return [f"{count(left_out, 'more figure')} not drawn: their numbers are below."] if left_out > 0 else []


def outlier_section(screen: ScreenResult) -> Section:
    """The outliers of a screen, and how reliable it is."""
    table = best_of_words.outlier_table(screen.outliers)
    found = Lines(["No outliers found."]) if table is None else table
    return _shown("outliers", "Outliers", found, Lines(best_of_words.outlier_lines(screen)))


def experiment_sections(results: Sequence[ExperimentResult], record: Recorded, given: Given) -> list[Section]:
    """One section: experiments without a result first, then the table of figures."""
    if not results:
        return []
    names = _names(results, given)
    rows = [_row(names[result.id], result, figure, record) for result in results for figure in result.shown]
    numbers = right("Median", "95 % interval", "Repeats", "Fraction of limit")
    columns = headings("Experiment", "Figure", *numbers, "Record")
    caption = f"Figures of {count(len(results), 'experiment')}"
    held = [f"{_held(results, name)}." for name in dict.fromkeys(one.experiment.benchmark for one in results)]
    blocks: list[Block] = [Lines(held, look="note")]
    if (lost := _lost([result for result in results if not result.shown], names)) is not None:
        blocks.append(lost)
    if rows:
        table = Table.of(caption, columns, rows[:_MOST_ROWS])
        blocks.append(replace(table, is_folded=len(rows) > _MOST_EXPERIMENTS_UNFOLDED))
    if len(rows) > _MOST_ROWS:
        text = f"{len(rows) - _MOST_ROWS} more rows are not shown; the results folder has the records of all."
        blocks.append(Lines([text], look="note"))
    return [Section("experiments", "Experiments", blocks=blocks)]


def _names(results: Sequence[ExperimentResult], given: Given) -> dict[str, str]:
    """Experiment id -> the benchmark with the settings that distinguish its experiments; those of environments as the
    study gives them."""
    settings = grouped((result.experiment.benchmark, result.experiment.parameters) for result in results)
    distinct = {benchmark: varying(own) for benchmark, own in settings.items()}
    several = len({result.experiment.environment for result in results}) > 1
    has_containers = any(result.container for result in results)
    names, given_of = {}, environments_given(results, given)
    for result in results:
        benchmark, parameters = result.experiment.benchmark, result.experiment.parameters
        words = [benchmark, *(label(name, parameters[name]) for name in distinct[benchmark] if name in parameters)]
        if has_containers:
            words.append(f"in {result.container}" if result.container else "no container")
        elif of_environment := given_of[result.id]:
            words += [label(name, value) for name, value in of_environment.items()]
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
        Cell.share(figure.fraction_of_limit) if result.no_cpu is None else share_words(result, figure) or NO_VALUE,
        Cell("record", href=link) if link else NO_VALUE,
    ]


_RULE = (
    "What others measured for the same question on other machines, without intervals: compare directions and sizes "
    "with the verdicts, not the values themselves."
)


class PublishedSource(Frozen):
    """The values of one source, in the order of the study."""

    name: str
    references: Sequence[Reference]


def published_sources(study: Study) -> Sequence[PublishedSource]:
    """The published values of a study by source; ids that are not known here (a results folder of another site) are
    left out."""
    known = {reference.id: reference for reference in all_references()}
    sources: dict[str, list[Reference]] = {}
    for reference in filter(None, map(known.get, study.references)):
        name = ": ".join(filter(None, (source_text(reference), machine_of(reference))))
        sources.setdefault(name, []).append(reference)
    return [PublishedSource(name, those) for name, those in sources.items()]


def published_sections(study: Study) -> list[Section]:
    """One section with a table for each source; none if the study names no value."""
    tables = [_table(source) for source in published_sources(study)]
    return [tables_section("published", "Published values", _RULE, tables)] if tables else []


def _table(source: PublishedSource) -> Table:
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
