"""What qualifies an exported figure: that its programs had no CPU, the load beside it, why it has no interval."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.analysis.experiment_figures import why_no_interval
from seatrial.analysis.index.chunk import json_text
from seatrial.model.results.exported import Exported, ExportedRow
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.no_cpu import NOT_JUDGED
from seatrial.report.intervals import widening_words


def with_remarks(exported: Exported, results: Sequence[ExperimentResult]) -> Exported:
    """The same rows with remarks, from the results of the same folder."""
    known: dict[tuple[str, str, str], str] = {}
    for result in results:
        for figure in result.figures:
            parameters = json_text({**result.experiment.parameters, **figure.point})
            known[result.id, figure.name, parameters] = _of_figure(result, figure)
    rows = (replace(row, remarks=known.get(_key(row), row.reason)) for row in exported.rows)
    return replace(exported, rows=tuple(rows))


def _key(row: ExportedRow) -> tuple[str, str, str]:
    return row.experiment, row.figure, row.figure_parameters


def _of_figure(result: ExperimentResult, figure: FigureResult) -> str:
    """The remarks on one figure, the most important first."""
    first = f"beside other load: {result.beside}" if result.beside else ""
    if result.no_cpu is not None:
        first = f"no CPU {result.no_cpu.span} ({result.no_cpu.why}): {NOT_JUDGED}"
    why = why_no_interval(figure)
    return "; ".join(filter(None, (first, why, "" if why and figure.dependence else widening_words(figure))))
