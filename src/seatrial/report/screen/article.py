"""The page of a cluster: what is odd first, then distributions, the map, pairs, the facts that differ, and the jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.jobs.screen import JobRow
from seatrial.model.machine.links import LINK_COUNTERS
from seatrial.model.spelling import NO_VALUE, count, few_names, settings, show
from seatrial.model.study.screen import FigureOverNodes, Odd, OddKind, Screen
from seatrial.model.units import duration
from seatrial.report.blocks import Block, Cell, Cells, Detail, OddOne, OddOnes, Section, Table, headings, right
from seatrial.report.charts.repeats import moment
from seatrial.report.screen import words
from seatrial.report.screen.pictures import distribution, node_map, pair_map
from seatrial.report.studies.article import Article, Head, article, tables_section, whole_page
from seatrial.report.studies.best_of_words import confidence_words

_MOST_ROWS = 200


def job_table(jobs: Sequence[JobRow]) -> Table:
    """A row for each job, in order of submission; of many jobs, those that did not end first, and not all."""
    shown = jobs
    if len(jobs) > _MOST_ROWS:
        shown = sorted(jobs, key=lambda job: job.ran_s is not None)[:_MOST_ROWS]
    rows: list[Cells] = []
    for job in shown:
        hours = None if job.ran_s is None else job.ran_s * job.nodes / 3600
        rows.append(
            [
                job.batch_id or NO_VALUE,
                job.where,
                job.host or NO_VALUE,
                Cell.number(job.nodes),
                moment(job.submitted_s) if job.submitted_s else NO_VALUE,
                _time(job.wait_s),
                _time(job.ran_s),
                NO_VALUE if hours is None else Cell(f"{hours:.3g}", hours),
                job.state,
                job.measured,
            ]
        )
    times = right("Waited", "Ran", "Node-hours")
    columns = headings("Job", "Where", "First node", *right("Nodes"), "Submitted (UTC)", *times, "State", "Measured")
    return Table.of("Jobs", columns, rows)


def job_lines(jobs: Sequence[JobRow]) -> list[str]:
    """The sum of node-hours, and of how many jobs it is unknown."""
    known = [job for job in jobs if job.ran_s is not None]
    hours = sum((job.ran_s or 0.0) * job.nodes / 3600 for job in known)
    unknown = len(jobs) - len(known)
    but = f"; {count(unknown, 'job')} of which start or end is unknown: not included" if unknown else ""
    waits = sorted(job.wait_s for job in jobs if job.wait_s is not None)
    waited = ""
    if waits:
        longest = f", the longest {duration(waits[-1])}" if len(waits) > 1 else ""
        waited = f" They waited {duration(waits[len(waits) // 2])} (median){longest}."
    left_out = len(jobs) - _MOST_ROWS
    more = f" {count(left_out, 'more job', 'more jobs')}: not listed here." if left_out > 0 else ""
    return [f"{hours:.3g} node-hours in {count(len(known), 'job')}{but}.{waited}{more}"]


def _time(time_s: float | None) -> Cell:
    return Cell(NO_VALUE) if time_s is None else Cell(duration(time_s), time_s)


_MOST_FINDINGS = 24
_MOST_LISTED = 2000
_MOST_DRAWN = 60
_MOST_UNFOLDED = 12
_MOST_NOT_SCREENED = 3
_MOST_NODES = 128
"""Up to so many nodes, a table has a row for each."""
_IDENT = "cluster"


def cluster_article(found: Screen, name: str, jobs: Sequence[JobRow]) -> Article:
    """The screen under a name. `jobs` are those that measured it."""
    lines = [
        *filter(None, [words.first_sentence(found)]),
        words.headline(found),
        *(words.classes_sentence(one) for one in found.classes[:4]),
    ]
    lines += [words.not_seen_again_sentence(one) for one in found.not_seen_again[:4]]
    lines += [f"{text}." for text in words.differing_sentences(found)[:4]]
    lines += [_not_screened(found)] if found.not_screened else []
    head = Head("Cluster", name, lines, about=words.about(found))
    return article(_IDENT, head, sections(found, jobs), is_alone=True)


def sections(found: Screen, jobs: Sequence[JobRow] = (), *, has_pictures: bool = True) -> list[Section]:
    """What is odd first; then evidence. Without pictures for a terminal."""
    made = [*_odd_section(found)]
    if has_pictures:
        made += _pictures(found)
    elif found.figures:
        made.append(tables_section("figures", "Figures over nodes", tables=[_figures(found)]))
    if found.facts_that_differ:
        made.append(tables_section("facts", "Facts that differ", tables=[_facts(found)]))
    if found.link_counts:
        made.append(_counters(found))
    if found.figures:
        made.append(_nodes(found))
    if jobs:
        made.append(tables_section("jobs", "Jobs", tables=[job_table(jobs)], lines=job_lines(jobs)))
    return made


def _odd_section(found: Screen) -> Iterator[Section]:
    groups = words.grouped(found.odd)
    if groups:
        rest = [one for group in groups[_MOST_FINDINGS:] for one in group][:_MOST_LISTED]
        blocks: list[Block] = [OddOnes([_finding(group) for group in groups[:_MOST_FINDINGS]])]
        blocks += [replace(_odd_table(rest), is_folded=True)] if rest else []
        yield Section("odd", "What is odd", blocks=blocks, detail=Detail.USUAL)


def _pictures(found: Screen) -> Iterator[Section]:
    if found.figures:
        drawn = [
            distribution(figure, odd, f"{_IDENT}-d{n}")
            for n, (figure, odd) in enumerate(_most_telling_first(found)[:_MOST_DRAWN])
        ]
        context = {
            "shown": drawn[:_MOST_UNFOLDED],
            "folded": drawn[_MOST_UNFOLDED:],
            "not_drawn": len(found.figures) - len(drawn),
            "not_screened": found.not_screened,
        }
        yield Section("figures", "Figures over nodes", "cluster_figures", context)
    yield Section("map", "Nodes by switch", "cluster_picture", {"pictures": [node_map(found, f"{_IDENT}-map")]})
    if found.pairs:
        maps = [pair_map(figure, found, f"{_IDENT}-p{n}") for n, figure in enumerate(found.pairs[:4])]
        yield Section("pairs", "Between nodes", "cluster_picture", {"pictures": maps})


def _figures(found: Screen) -> Table:
    """How far the values of each figure are apart."""
    rows: list[Cells] = []
    for one in found.figures:
        low, high = (f"{(end - 1.0) * 100:+.1f}" for end in one.spread)
        values = (f"{len(one.items)} {one.kind.value}s", Cell.amount(one.median, one.unit), f"{low} to {high} %")
        rows.append([words.figure_name(one.benchmark, one.figure), *values, settings(one.parameters)])
    return Table.of("Figures over nodes", ["Figure", *right("Of", "Median", "Middle 90 %"), "Settings"], rows)


def _not_screened(found: Screen) -> str:
    """What could not be screened, the first of it."""
    shown = "; ".join(found.not_screened[:_MOST_NOT_SCREENED])
    more = len(found.not_screened) - _MOST_NOT_SCREENED
    return f"Not screened: {shown}{f'; and {more} more' if more > 0 else ''}"


def _finding(group: Sequence[Odd]) -> OddOne:
    one = group[0]
    return OddOne(
        kind=one.kind.value,
        by=words.off_by(one),
        of=words.off_what(one),
        title=one.what,
        settings=settings(one.parameters),
        said=f"{words.by_how_much(one)}.",
        also=[f"{text}." for text in words.also(group)],
        remedy=one.remedy,
        is_command=one.remedy.startswith("scontrol "),
    )


def _odd_in(found: Screen, figure: FigureOverNodes) -> list[Odd]:
    """The odd ones of a figure, of its kind."""
    return [
        one
        for one in found.odd
        if (one.benchmark, one.figure, one.kind) == (figure.benchmark, figure.figure, figure.kind)
        and one.parameters == figure.parameters
        and len(one.nodes) == 1
    ]


def _most_telling_first(found: Screen) -> list[tuple[FigureOverNodes, list[Odd]]]:
    """All figures with their odd ones: of each name one point, then the others; first those with odd ones. A sweep of
    many points does not fill the page."""
    each = sorted(((figure, _odd_in(found, figure)) for figure in found.figures), key=lambda one: not one[1])
    first: dict[tuple[str, str], FigureOverNodes] = {}
    for figure, _ in each:
        first.setdefault((figure.benchmark, figure.figure), figure)
    return sorted(each, key=lambda one: one[0] is not first[one[0].benchmark, one[0].figure])


def _odd_table(odd: Sequence[Odd]) -> Table:
    rows: list[Cells] = []
    for one in odd:
        values = [
            Cell.amount(one.value, one.unit),
            Cell.amount(one.usual, one.unit),
            Cell(words.off_by(one), one.ratio),
        ]
        named = [one.kind.value, one.what, words.figure_name(one.benchmark, one.figure)]
        rows.append([*named, *values, confidence_words(one.sureness)])
    numbers = right("Value", "Others", "Difference", "Confidence")
    return Table.of("Further odd ones", ["Kind", "Which", "Figure", *numbers], rows)


def _facts(found: Screen) -> Table:
    rows: list[Cells] = []
    for fact in found.facts_that_differ[:_MOST_LISTED]:
        usual, *others = fact.values
        listed = "; ".join(
            f"{words.value_of_fact(fact.fact, one.value)} on {len(one.nodes)}: {few_names(one.nodes, words.MOST_NAMED)}"
            for one in others[:6]
        )
        more = f"; {len(others) - 6} more values" if len(others) > 6 else ""
        value = words.value_of_fact(fact.fact, usual.value)
        rows.append([fact.fact, value, Cell.number(len(usual.nodes)), listed + more])
    return Table.of("Facts on which nodes differ", ["Fact", "Most have", *right("Nodes"), "Others"], rows)


def _counters(found: Screen) -> Section:
    """The counters of links that grew while the cluster was measured, errors first."""
    rows: list[Cells] = []
    for one in found.link_counts[:_MOST_LISTED]:
        counter = LINK_COUNTERS[one.counter]
        rows.append([one.node, one.port, one.counter, Cell.number(one.grew_by), counter.kind.value, counter.meaning])
    left_out = len(found.link_counts) - len(rows)
    lines = [
        "Links that are in full use discard and wait; errors mean that data arrived damaged, or that a link failed."
    ]
    lines += [f"{count(left_out, 'counter')} more: `--format json` has all."] if left_out else []
    columns = headings("Node", "Port", "Counter", *right("Grew by"), "Kind", "Meaning")
    made = Table.of("Counters that grew while the cluster was measured", columns, rows)
    return tables_section("counters", "Counters of links", tables=[made], lines=lines)


def _nodes(found: Screen) -> Section:
    """A row for each node; of many, for the odd ones only. Figures of devices and switches have no column."""
    figures = [figure for figure in found.figures if figure.kind.value in ("node", "link")][:10]
    odd_nodes = {node for one in found.odd if one.kind is not OddKind.SWITCH for node in one.nodes}
    is_all = len(found.nodes) <= _MOST_NODES
    nodes = [node for node in found.nodes if is_all or node in odd_nodes][:_MOST_LISTED]
    values = [{item.node: value for item, value in zip(one.items, one.medians, strict=True)} for one in figures]
    odd = {(node, one.benchmark, one.figure) for one in found.odd for node in one.nodes[:1]}
    rows: list[Cells] = []
    for node in nodes:
        row: list[Cell | str] = [node, found.switch_of.get(node, NO_VALUE)]
        for figure, own in zip(figures, values, strict=True):
            value = own.get(node)
            tone = "verdict-slower" if (node, figure.benchmark, figure.figure) in odd else ""
            row.append(NO_VALUE if value is None else Cell(show(value, figure.unit), value, tone=tone))
        rows.append(row)
    columns = headings("Node", "Switch", *right(*(words.figure_name(one.benchmark, one.figure) for one in figures)))
    left_out = len(found.nodes) - len(nodes)
    lines = [f"{count(left_out, 'node')} with nothing odd: left out here; `--format json` has all."] if left_out else []
    return tables_section(
        "nodes", "Node by node", tables=[Table.of("Medians of each node", columns, rows)], lines=lines
    )


def cluster_page(found: Screen, jobs: Sequence[JobRow] = ()) -> str:
    """The whole file as text."""
    size = f"of {count(len(found.nodes), 'node')}"
    return whole_page(f"Screen of cluster {size}", [cluster_article(found, f"Cluster {size}", jobs)]).__html__()
