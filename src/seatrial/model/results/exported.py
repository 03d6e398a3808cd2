"""What `export` writes: a row for each figure, and the verdicts of studies."""

from __future__ import annotations

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
PARAMETER = "parameter."
"""Begins the name of a column that has one parameter, in a CSV export and in rows."""
REMARKS = "remarks"
"""The column with what qualifies a figure."""


class ExportedRow(Frozen):
    """One figure of an experiment, or an experiment without figures (`figure` is ""). Parameters are JSON objects.

    `remarks` qualify the figure, or say why there is none; "" if they were not asked for, too.
    `last_t0` is the start of its last repeat in seconds since the epoch, `wall_s` the time of all its repeats.
    """

    experiment: str
    benchmark: str
    parameters: str
    environment: str
    machine: str
    outcome: str
    reason: str = ""
    evidence: str = ""
    figure: str = ""
    figure_parameters: str = "{}"
    unit: str = ""
    better: str = ""
    median: float | None = None
    ci95_low: float | None = None
    ci95_high: float | None = None
    n_repeats: int = 0
    fraction_of_limit: float | None = None
    last_t0: float = 0.0
    wall_s: float = 0.0
    remarks: str = ""


class ExportedVerdict(Frozen):
    """One comparison of a study in words, or why something was not compared."""

    study: str
    what: str
    verdict: str
    detail: str


class Exported(Frozen):
    """What is exported: rows in order, and verdicts."""

    rows: tuple[ExportedRow, ...]
    verdicts: tuple[ExportedVerdict, ...] = ()
