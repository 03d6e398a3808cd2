"""`seatrial export` and `seatrial query`."""

from __future__ import annotations

import csv
import json
import math
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial.cli.output import print_json, style_of, write_bytes, write_file
from seatrial.errors import UsageError
from seatrial.interface.export import Answer, exported, query
from seatrial.report.export.csv_table import csv_text
from seatrial.report.export.junit import junit_text
from seatrial.report.export.markdown import markdown_text
from seatrial.report.export.openmetrics import openmetrics_text
from seatrial.report.export.parquet_table import parquet_bytes
from seatrial.report.text.terminal import clean

_TEXTS = {"csv": csv_text, "markdown": markdown_text, "junit": junit_text, "openmetrics": openmetrics_text}


def export_command(folder: Path, output_format: str, output: Path | None, *, anonymous: bool) -> None:
    """Write an export to a file or stdout."""
    if output_format == "parquet" and output is None:
        raise UsageError("Parquet is not text", "name a file: -o FILE.parquet")
    found = exported(folder, anonymous=anonymous, verdicts=output_format == "junit")
    if output_format == "parquet":
        assert output is not None  # noqa: S101 - checked above
        write_bytes(output, parquet_bytes(found))
        return
    text = _TEXTS[output_format](found)
    if output is None:
        print(text, end="")
    else:
        write_file(output, text)


def query_command(folder: Path, sql: str, output_format: str) -> None:
    """Print the answer to a query."""
    answer = query(folder, sql)
    if output_format == "json":
        rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
        print_json({"schema": "seatrial.query/1", "columns": list(answer.columns), "rows": rows})
    elif output_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(["" if (value := _plain(cell)) is None else value for cell in row] for row in answer.rows)
    else:
        print(_text(answer))


def _text(answer: Answer) -> str:
    rows = [[clean(name) for name in answer.columns]]
    rows += [[clean(_shown(cell)) for cell in row] for row in answer.rows]
    return style_of(sys.stdout).table(rows, indent="", has_head=True)


def _shown(cell: Any) -> str:
    value = _plain(cell)
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(cell: Any) -> Any:
    """A cell as JSON has it: times in UTC as ISO 8601, no NaN."""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    if isinstance(cell, bool | int | float | str) or cell is None:
        return cell
    if isinstance(cell, list | tuple):
        return [_plain(item) for item in cell]
    if isinstance(cell, dict):
        return {str(name): _plain(item) for name, item in cell.items()}
    try:
        json.dumps(cell)
    except TypeError:
        return str(cell)
    return cell
