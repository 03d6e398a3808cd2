"""Figures that a table states, without the repeats behind them, and the columns of such a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.frozen import Frozen

COLUMNS = (
    "benchmark",
    "parameters",
    "environment",
    "figure",
    "figure_parameters",
    "unit",
    "better",
    "median",
    "ci95_low",
    "ci95_high",
    "n_repeats",
    "outcome",
)
"""The header of a CSV export (CONTRACT.md)."""

STATED = "stated_figures"
"""The key of `StatedFigure` documents in what a record `seen`."""


class StatedFigure(Frozen):
    """One figure of a table: median and 95 % interval in `unit`, over `n_repeats` that are not known one by one."""

    name: str
    parameters: Mapping[str, Any]
    unit: str
    better: str
    median: float
    ci95: tuple[float, float] | None
    n_repeats: int

    def document(self) -> dict[str, Any]:
        """As kept in a record."""
        return {
            "name": self.name,
            "parameters": dict(self.parameters),
            "unit": self.unit,
            "better": self.better,
            "median": self.median,
            "ci95": None if self.ci95 is None else list(self.ci95),
            "n_repeats": self.n_repeats,
        }
