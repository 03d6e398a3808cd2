"""The table of all figures, one row each, with a bar from 0 to the limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from seatrial.analysis.rules.expectation import Judgement
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Basis
from seatrial.model.results.figure_result import FigureResult
from seatrial.model.spelling import NO_VALUE, arrow, arrow_meaning, digits_to_tell, show, show_ends
from seatrial.report.blocks import Svg
from seatrial.report.intervals import (
    Remark,
    RemarkKind,
    derivation,
    no_interval_of,
    remarks,
    share_words,
    shared_remarks,
    widening_words,
)
from seatrial.report.pages.bars import ReferenceLine, ReferenceMarks, bar
from seatrial.report.pages.view import BenchmarkView, Row
from seatrial.report.panels.charts import Panel

_MOST_DIGITS = 5
_IN_SIGHT = 12
_LEAST_OF_A_SWEEP = 3
_NOT_WORTH_FOLDING = 20
"""Up to this many rows, all are visible: hiding a few rows gains nothing."""
_MARKS = ("*", "†", "‡")
_WORDS = {Judgement.DEFECT: "low", Judgement.UNSTEADY: "unsteady"}


class FigureLine(Frozen):
    """One row of the table, formatted. `limit_mark` refers to the derivation below the benchmark, `marks` to its notes
    on several figures; `judgement` is "low" or "unsteady", `remark` qualifies this figure alone."""

    row: Row
    figure: FigureResult | None
    bar: Svg | None = None
    median: str = ""
    interval: str = ""
    arrow: str = ""
    arrow_meaning: str = ""
    share: str = ""
    limit: str = ""
    basis: str = ""
    limit_mark: str = ""
    derivation: str = ""
    judgement: str = ""
    remark: str = ""
    marks: str = ""


Block = Sequence[FigureLine]
"""The rows of one experiment, which share one cell with its settings."""


class FigureGroup(Frozen):
    """The rows of one benchmark. `derivations` are the distinct limits with the letters that rows refer to,
    `references` the published values with their numbers below the bars, `notes` the remarks that most rows share, with
    their marks ("": on all of them)."""

    benchmark: BenchmarkView
    shown: Sequence[Block]
    folded: Sequence[Block]
    number_folded: int
    derivations: Sequence[tuple[str, str, str]]
    works: Sequence[str]
    references: Sequence[ReferenceLine] = ()
    notes: Sequence[tuple[str, str]] = ()


def _group(benchmark: BenchmarkView) -> FigureGroup:
    marks: dict[tuple[str, str], str] = {}
    largest: dict[str, float] = {}
    digits: dict[str, int] = {}
    for _, figure in benchmark.measured:
        high = figure.ci95[1] if figure.ci95 is not None else figure.median
        largest[figure.unit] = max(largest.get(figure.unit, 0.0), high, figure.median)
        enough = min(digits_to_tell(figure.ci95 or ()), _MOST_DIGITS)
        digits[figure.unit] = max(digits.get(figure.unit, 0), enough)
        if figure.limit is not None:
            key = (figure.limit.basis.value, derivation(figure.limit, figure.attainable))
            marks.setdefault(key, _letter(len(marks)))
    references = ReferenceMarks()
    shared = shared_remarks([_remarks(row, figure) for row, figure in benchmark.measured], fewest=1)
    notes = {
        kind: ("" if text.startswith("All") else mark, text)
        for (kind, text), mark in zip(shared.items(), _MARKS, strict=False)
    }
    lines = [_line(row, largest, digits, marks, references, notes) for row in benchmark.rows]
    chosen = _in_sight(lines)
    blocks: dict[bool, dict[str, list[FigureLine]]] = {True: {}, False: {}}
    for number, line in enumerate(lines):
        blocks[number in chosen].setdefault(line.row.result.id, []).append(line)
    works = dict.fromkeys(f"{figure.name}: {figure.work}" for _, figure in benchmark.measured if figure.work)
    return FigureGroup(
        benchmark,
        list(blocks[True].values()),
        list(blocks[False].values()),
        len(lines) - len(chosen),
        [(mark, basis, text) for (basis, text), mark in marks.items()],
        list(works),
        references.lines,
        list(notes.values()),
    )


def _remarks(row: Row, figure: FigureResult) -> list[Remark]:
    """All that qualifies a figure, its judgement first."""
    unsteady = [Remark(RemarkKind.UNSTEADY)] if row.judgement is Judgement.UNSTEADY else []
    return [*unsteady, *remarks(figure)]


def _line(
    row: Row,
    largest: Mapping[str, float],
    digits: Mapping[str, int],
    marks: Mapping[tuple[str, str], str],
    references: ReferenceMarks,
    notes: Mapping[RemarkKind, tuple[str, str]],
) -> FigureLine:
    figure = row.figure
    if figure is None:
        return FigureLine(row, None)
    enough = digits[figure.unit]
    limit = figure.limit
    known = limit is not None and limit.value is not None
    why = "" if limit is None else derivation(limit, figure.attainable)
    noted = [one.kind for one in _remarks(row, figure) if one.kind in notes]
    is_why_noted = RemarkKind.FEW in noted or RemarkKind.CORRELATED in noted
    why_none = NO_VALUE if is_why_noted else no_interval_of(figure)
    return FigureLine(
        row=row,
        figure=figure,
        bar=bar(figure, largest[figure.unit], references.ticks(row, figure), is_judged=row.result.no_cpu is None),
        median=show(figure.median, figure.unit, enough) + (f" ({figure.customary})" if figure.customary else ""),
        interval=show_ends(*figure.ci95, figure.median, figure.unit, enough) if figure.ci95 is not None else why_none,
        arrow=arrow(figure.better),
        arrow_meaning=arrow_meaning(figure.better),
        share=share_words(row.result, figure) or NO_VALUE,
        limit=show(limit.value, limit.unit, enough) if limit is not None and known else "unknown" if limit else "none",
        basis=limit.basis.value if limit is not None and limit.basis is not Basis.UNKNOWN else "",
        limit_mark=marks[limit.basis.value, why] if limit is not None else "",
        derivation=why,
        judgement="" if RemarkKind.UNSTEADY in noted else _WORDS.get(row.judgement, ""),
        remark=widening_words(figure, noted),
        marks="".join(notes[kind][0] for kind in noted),
    )


def _in_sight(lines: Sequence[FigureLine]) -> set[int]:
    """The rows that are not folded: all of a short table; else defects first, then an even selection of the rest.

    With few figures, all sweeps are thinned in the same way, so that they show the same sizes; with more figures, the
    best of each sweep is visible.
    """
    if len(lines) <= _NOT_WORTH_FOLDING:
        return set(range(len(lines)))
    defects = [n for n, line in enumerate(lines) if line.row.judgement is Judgement.DEFECT]
    unsteady = [n for n, line in enumerate(lines) if line.row.judgement is Judgement.UNSTEADY]
    chosen = set([*defects, *unsteady][:_IN_SIGHT])
    rest = [n for n in range(len(lines)) if n not in chosen]
    if len(defects) < _IN_SIGHT < len(defects) + len(unsteady):  # too many to show all of them
        chosen, rest = set(defects), unsteady
    sweeps: dict[tuple[str, str], list[int]] = {}
    for n in rest:
        row = lines[n].row
        sweeps.setdefault((row.result.id, row.figure.name if row.figure else ""), []).append(n)
    room = _IN_SIGHT - len(chosen)
    if room // _LEAST_OF_A_SWEEP < len(sweeps) <= room:
        return chosen | {_best(lines, group) for group in sweeps.values()}
    groups = list(sweeps.values()) if len(sweeps) <= room // _LEAST_OF_A_SWEEP else [rest]
    for group in groups:
        chosen |= set(_evenly(group, room // len(groups)))
    return chosen


def _best(lines: Sequence[FigureLine], group: Sequence[int]) -> int:
    """The row of the best figure; the first if there is none."""

    def rank(number: int) -> float:
        figure = lines[number].row.figure
        if figure is None:
            return -math.inf
        return figure.median if figure.better is Better.HIGHER else -figure.median

    return max(group, key=rank)


def _evenly(items: Sequence[int], count: int) -> list[int]:
    """`count` evenly spaced items, including the first and the last."""
    if count >= len(items) or count < 2:
        return list(items[:count])
    return [items[round(k * (len(items) - 1) / (count - 1))] for k in range(count)]


def _letter(number: int) -> str:
    """a, b, ... z, aa, ab, ..."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("a") + digit) + text
    return text


FIGURES_PANEL = Panel(
    "figures", "Figures and their limits", lambda view: {"groups": [_group(one) for one in view.benchmarks]}
)
