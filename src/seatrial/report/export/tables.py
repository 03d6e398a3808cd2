"""Tables with one row for each figure, as CONTRACT names the columns: CSV, which `seatrial import csv=FILE` reads back,
and Parquet with types; parameters stay JSON text."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path

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


_NUMBERS = {"median": "DOUBLE", "ci95_low": "DOUBLE", "ci95_high": "DOUBLE", "n_repeats": "BIGINT"}


def parquet_bytes(exported: Exported) -> bytes:
    """The file. An unknown value is null."""
    import duckdb
    import numpy as np

    columns: dict[str, object] = {}
    chosen = []
    for name in COLUMNS:
        cells = [getattr(row, name) for row in exported.rows]
        is_empty = [
            cell is None or (name in _OF_FIGURES and not row.figure)
            for cell, row in zip(cells, exported.rows, strict=True)
        ]
        columns[f"no_{name}"] = np.asarray(is_empty, bool)
        if name in _NUMBERS:
            columns[name] = np.asarray([0 if cell is None else cell for cell in cells], float)
        else:
            texts = np.empty(len(cells), object)
            texts[:] = cells
            columns[name] = texts if cells else np.asarray([], np.str_)
        kind = _NUMBERS.get(name, "VARCHAR")
        chosen.append(f'CASE WHEN no_{name} THEN NULL ELSE "{name}" END::{kind} AS "{name}"')
    with tempfile.TemporaryDirectory(prefix="seatrial-export-") as folder, duckdb.connect() as connection:
        path = Path(folder) / "export.parquet"
        connection.register("exported", columns)
        target = str(path).replace("'", "''")
        selected = ", ".join(chosen)
        connection.execute(f"COPY (SELECT {selected} FROM exported) TO '{target}' (FORMAT parquet)")  # noqa: S608 - our names
        return path.read_bytes()


_OF_FIGURES = frozenset(COLUMNS[3:11])
