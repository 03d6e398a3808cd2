"""All charts that the figures of each benchmark allow; which ones there are is the business of `report.charts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.report.charts import CHARTS
from seatrial.report.panels.panel import Panel
from seatrial.report.view import TrialView


def _context(view: TrialView) -> Mapping[str, Any] | None:
    charts = [chart for benchmark in view.benchmarks for maker in CHARTS for chart in maker(view, benchmark)]
    return {"charts": charts} if charts else None


CHARTS_PANEL = Panel("charts", "The repeats behind the figures", _context)
