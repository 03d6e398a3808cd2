"""What was not measured, and why: benchmarks that cannot run here, and skipped experiments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.outcome import State
from seatrial.report.pages.tables import Cell, Column, Table
from seatrial.report.pages.view import TrialView
from seatrial.report.panels.panel import Panel


def _context(view: TrialView) -> Mapping[str, Any] | None:
    rows = [
        [Cell(entry.benchmark), Cell(entry.question), Cell("unsupported"), Cell(entry.need)]
        for entry in view.trial.not_measured
    ]
    for benchmark in view.benchmarks:
        for row in benchmark.rows:
            state = row.result.outcome.state
            if state in (State.SKIPPED, State.UNSUPPORTED):
                name = f"{benchmark.name} ({row.settings})" if row.settings else benchmark.name
                reason = row.result.outcome.reason or "no reason recorded"
                rows.append([Cell(name), Cell(benchmark.question), Cell(state.value), Cell(reason)])
    if not rows:
        return None
    columns = [
        Column("Benchmark"),
        Column("Question"),
        Column("State"),
        Column("Reason"),
    ]
    return {"table": Table("Not measured", columns, rows)}


UNMEASURED_PANEL = Panel("unmeasured", "Not measured, and why", _context)
