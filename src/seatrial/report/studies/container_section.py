"""What a container or virtual machine changed, in words and as a section of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.benchmarks.container.start import BENCHMARK as START
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import NO_VALUE, count, label, show_percent
from seatrial.model.study.comparison import (
    Comparison,
    ContainerContrast,
    ContainerCost,
    Cost,
    Difference,
    Verdict,
    decisive,
)
from seatrial.model.study.result import Compared
from seatrial.report.blocks import (
    About,
    Block,
    Cell,
    Cells,
    Column,
    Detail,
    Heading,
    Lines,
    Section,
    Table,
    headings,
    right,
)
from seatrial.report.pages.bars import overhead_bar
from seatrial.report.pages.view import interval_text
from seatrial.report.studies.article import tables_section
from seatrial.report.studies.effect import Overhead, effect_words, overheads
from seatrial.report.studies.verdicts import in_order_of_sizes

_NOT_RECORDED = "not recorded"
_MOST_FIGURES = 4
_CHARACTERS = 200
_OF_CONTAINER = "environment container "
_NAMING = ("image", "runtime")

CONTAINER_RULE = (
    "The same program, outside of a container and in one, or in two. A figure that is clearly slower has its possible "
    "causes below: facts that differ between the sides and can slow this figure down. If several fit, the records do "
    "not tell which it is: change one of them and run the study again."
)


def fact_rows(contrast: ContainerContrast) -> list[tuple[str, str, str]]:
    """(fact, baseline, candidate) of what is known to differ or is known of one side only."""
    return [
        (one.name, one.baseline or _NOT_RECORDED, one.candidate or _NOT_RECORDED)
        for one in contrast.facts
        if one.baseline != one.candidate
    ]


def alike_line(contrast: ContainerContrast) -> str:
    """What both sides have in common: "Alike on both sides: ..."; "" if nothing is known to be."""
    known = [(one.name, one.baseline or "") for one in contrast.facts if one.baseline == one.candidate]
    alike = [f"{name} ({text if len(text) <= _CHARACTERS else f'{text[: _CHARACTERS - 1]}…'})" for name, text in known]
    return f"Alike on both sides: {'; '.join(alike)}." if alike else ""


def cost_lines(compared: Compared) -> list[str]:
    """Each cause with the figures that it fits, as sentences; that there is nothing to explain, if no figure is slower.

    Empty without containers.
    """
    contrast = compared.containers
    if contrast is None:
        return []
    if contrast.costs:
        return [cost_sentence(one, compared) for one in contrast.costs]
    main = decisive(compared.comparisons)
    if not main:
        return []
    undecided = sum(one.verdict is Verdict.AMBIGUOUS for one in main)
    rest = f" {undecided} of {count(len(main), 'figure')} {'is' if undecided == 1 else 'are'} undecided."
    rest = rest if undecided else ""
    return [f"No figure is clearly slower on either side, so there is no cost to explain.{rest}"]


def is_stated_by_facts(compared: Compared, difference: Difference) -> bool:
    """Whether the facts of the container already state an intended difference in words."""
    return (
        compared.containers is not None
        and difference.intended
        and difference.what.startswith(_OF_CONTAINER)
        and difference.what.removeprefix(_OF_CONTAINER) not in _NAMING
    )


def cost_sentence(one: ContainerCost, compared: Compared) -> str:
    """A cause, its evidence and the figures that it fits, as one or more sentences."""
    pair = f"baseline: {one.baseline or _NOT_RECORDED}; candidate: {one.candidate or _NOT_RECORDED}"
    text = _SENTENCES[one.cost].format(pair=pair)
    figures = _figures(one.figures, compared.candidate)
    return f"{text} Seen in: {figures}{_spared(one)}."


def _figures(figures: Sequence[Comparison], candidate: str) -> str:
    named = [f"{_name(one)} ({effect_words(one)} with {candidate})" for one in figures[:_MOST_FIGURES]]
    more = f", and {count(len(figures) - _MOST_FIGURES, 'more figure')}" if len(figures) > _MOST_FIGURES else ""
    return ", ".join(named) + more


def _name(one: Comparison) -> str:
    size = one.parameters.get("size_B")
    return f"{one.benchmark} {one.figure}" + ("" if size is None else f" at {label('size_B', size)}")


def _spared(one: ContainerCost) -> str:
    parts = []
    if one.spared:
        names = ", ".join(map(_name, one.spared[:_MOST_FIGURES]))
        parts.append(f"; as it must be with this cause, not slower: {names}")
    if one.share is not None:
        parts.append(f"; the MPI profiles put {show_percent(one.share)} of the difference into the calls themselves")
    return "".join(parts)


_SENTENCES: Mapping[Cost, str] = {
    Cost.CROSS_MEMORY: (
        "Cross-memory attach (CMA) is lost: large messages are copied through shared memory, twice instead of once "
        "({pair}). One user namespace for all ranks (environment.container_mpi=joined or inside) brings it back where "
        "namespaces are the reason."
    ),
    Cost.TRANSPORT: (
        "The MPI library loaded other modules for its messages (only there: {pair}). An image has only the modules "
        "that are installed in it."
    ),
    Cost.MPI_LIBRARY: "The ranks load another MPI library, by build id ({pair}).",
    Cost.USER_FILES: (
        "A process in user space serves the root file system ({pair}): the image's files are read through it. An image "
        "unpacked into a folder, or mounted by the kernel, does without."
    ),
    Cost.NOT_KNOWN: "No recorded fact of the container explains this difference.",
}


_MOST_ROWS = 36
_START, _BARE = "start", "bare_start"


_BARS = (
    "The line is the interval behind the verdict, the dot the estimate; the shaded band is the margin, the stroke in "
    "its middle no extra time. The axis ends at four margins: an arrow goes on beyond it. A rate that is lower by a "
    "factor takes longer by that factor."
)


def container_sections(compared: Sequence[Compared]) -> list[Section]:
    """One section with a part for each pair of sides; none without containers."""
    parts = [one for one in compared if one.containers is not None]
    blocks = [block for one in parts for block in _part(one)]
    title = "What the container changes"
    return [Section("containers", title, blocks=[About(CONTAINER_RULE), *blocks], detail=Detail.USUAL)] if parts else []


def _part(one: Compared) -> list[Block]:
    assert one.containers is not None  # noqa: S101  asked by the caller
    columns = ["Fact", f"Baseline: {one.baseline}", f"Candidate: {one.candidate}"]
    named = in_order_of_sizes([one])
    found = overheads([comparison for comparison, _ in named], [subject for _, subject in named])
    facts = Table.if_any("What differs", columns, fact_rows(one.containers))
    blocks: list[Block] = [Heading(f"What the container changes: {one.candidate} against {one.baseline}")]
    blocks += [] if facts is None else [replace(facts, look="differences", detail=Detail.FULL)]
    blocks.append(Lines([alike] if (alike := alike_line(one.containers)) else [], look="note"))
    if found:
        left_out = len(found) - _MOST_ROWS
        blocks += [_overheads_table(found[:_MOST_ROWS]), About(_BARS)]
        more = [f"{left_out} more figures are in the table of ratios."] if left_out > 0 else []
        blocks.append(Lines(more, look="note"))
    costs = cost_lines(one)
    if costs:
        blocks += [Heading("What costs"), Lines(costs, look="list")]
    return blocks


def _overheads_table(found: Sequence[Overhead]) -> Table:
    rows: list[Cells] = []
    for one in found:
        verdict = Cell(one.verdict, tone=f"verdict-{one.comparison.verdict.value}")
        bar = Cell("", tone="bar-cell", picture=overhead_bar(one))
        rows.append([one.subject, Cell(one.words, one.extra), one.interval_words, one.margin, bar, verdict])
    columns = headings("Figure", *right("Extra time", "Interval", "Margin"))
    columns += headings(Column("Interval against the margin", short=None), "Verdict")
    caption = "Extra time for the same work, candidate against baseline"
    return replace(Table.of(caption, columns, rows), look="overheads", detail=Detail.FULL)


def start_sections(results: Sequence[ExperimentResult]) -> list[Section]:
    """What a start of each container costs, with a warm and a cold cache, alone and several at once; none if it was
    not measured."""
    rows = [row for one in results if one.experiment.benchmark == START.name and (row := _start_row(one)) is not None]
    columns = headings("Image files", *right("At once"), "Container")
    columns += right("Start", "95 % interval", "Bare start", "Repeats")
    about = (
        "From the call that starts the runtime to the first instruction of a program inside, of the last container if "
        "several start at once; a bare start is the same program without a container. Warm: the files of the image are "
        "in memory; cold: they were dropped from it before each start."
    )
    made = Table.if_any("Time until a program runs", columns, rows)
    return [tables_section("starts", "What a start costs", about, [made])] if made is not None else []


def _start_row(one: ExperimentResult) -> Cells | None:
    figures = {figure.name: figure for figure in one.figures}
    start, bare = figures.get(_START), figures.get(_BARE)
    if start is None:
        return None
    parameters = one.experiment.parameters
    at_once = parameters.get("at_once", 1)
    return [
        str(parameters.get("cache", "warm")),
        Cell(str(at_once), float(at_once) if isinstance(at_once, int) else None),
        one.container,
        Cell.amount(start.median, start.unit),
        NO_VALUE if start.ci95 is None else interval_text(start),
        NO_VALUE if bare is None else Cell.amount(bare.median, bare.unit),
        Cell.number(start.n_repeats),
    ]
