"""The section of a comparison about containers: the facts that differ, the overhead beside its margin, what costs, and
what a start costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.benchmarks.container.start import BENCHMARK as START
from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.study_result import Compared
from seatrial.report.pages.overhead_bars import overhead_bar
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.studies.container_words import CONTAINER_RULE, alike_line, cost_lines, fact_rows
from seatrial.report.studies.overhead import overheads
from seatrial.report.studies.section import Section
from seatrial.report.studies.verdicts import in_order_of_sizes
from seatrial.report.units import NO_VALUE, show, show_range

_MOST_ROWS = 36
_START, _BARE = "start", "bare_start"


def container_sections(compared: Sequence[Compared]) -> list[Section]:
    """One section with a part for each pair of sides; none without containers."""
    parts = [_part(one) for one in compared if one.containers is not None]
    if not parts:
        return []
    return [
        Section("containers", "What the container changes", "containers", {"about": CONTAINER_RULE, "parts": parts})
    ]


def _part(one: Compared) -> Mapping[str, object]:
    assert one.containers is not None  # noqa: S101  asked by the caller
    columns = [Column("Fact"), Column(f"Baseline: {one.baseline}"), Column(f"Candidate: {one.candidate}")]
    rows = [[Cell(text) for text in row] for row in fact_rows(one.containers)]
    named = in_order_of_sizes([one])
    found = overheads([comparison for comparison, _ in named], [subject for _, subject in named])
    return {
        "title": f"{one.candidate} against {one.baseline}",
        "facts": Table("What differs", columns, rows) if rows else None,
        "alike": alike_line(one.containers),
        "overheads": [{"one": each, "bar": overhead_bar(each)} for each in found[:_MOST_ROWS]],
        "left_out": max(0, len(found) - _MOST_ROWS),
        "costs": cost_lines(one),
    }


def start_sections(results: Sequence[ExperimentResult]) -> list[Section]:
    """What a start of each container costs, with a warm and a cold cache, alone and several at once; none if it was
    not measured."""
    rows = [row for one in results if one.experiment.benchmark == START.name and (row := _start_row(one)) is not None]
    if not rows:
        return []
    columns = [
        Column("Image files"),
        Column("At once", numeric=True),
        Column("Container"),
        Column("Start", numeric=True),
        Column("95 % interval", numeric=True),
        Column("Bare start", numeric=True),
        Column("Repeats", numeric=True),
    ]
    about = (
        "From the call that starts the runtime to the first instruction of a program inside, of the last container if "
        "several start at once; a bare start is the same program without a container. Warm: the files of the image are "
        "in memory; cold: they were dropped from it before each start."
    )
    table = Table("Time until a program runs", columns, rows)
    return [Section("starts", "What a start costs", "starts", {"about": about, "table": table})]


def _start_row(one: ExperimentResult) -> list[Cell] | None:
    figures = {figure.name: figure for figure in one.figures}
    start = figures.get(_START)
    if start is None:
        return None
    parameters = one.experiment.parameters
    at_once = parameters.get("at_once", 1)
    return [
        Cell(str(parameters.get("cache", "warm"))),
        Cell(str(at_once), float(at_once) if isinstance(at_once, int) else None),
        Cell(one.container),
        Cell(show(start.median, start.unit), start.median),
        Cell(NO_VALUE if start.ci95 is None else show_range(*start.ci95, start.unit, beside=start.median)),
        _bare(figures.get(_BARE)),
        Cell(str(start.n_repeats), start.n_repeats),
    ]


def _bare(figure: FigureResult | None) -> Cell:
    return Cell(NO_VALUE) if figure is None else Cell(show(figure.median, figure.unit), figure.median)
