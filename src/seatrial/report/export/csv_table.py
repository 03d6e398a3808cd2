"""CSV: one row for each figure, as CONTRACT names the columns. `seatrial import csv=FILE` reads it back."""

from __future__ import annotations

import csv
import io

from seatrial.model.results.figure_result import COLUMNS, Exported


def csv_text(exported: Exported) -> str:
    """RFC 4180 with line feeds; an unknown value is an empty cell, numbers have all their digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in exported.rows:
        writer.writerow(
            [
                row.benchmark,
                row.parameters,
                row.environment,
                row.figure,
                row.figure_parameters if row.figure else "",
                row.unit,
                row.better,
                *("" if value is None else repr(value) for value in (row.median, row.ci95_low, row.ci95_high)),
                row.n_repeats if row.figure else "",
                row.outcome,
            ]
        )
    return out.getvalue()
