"""`seatrial export` and `seatrial query`."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial.cli.output import hide_warnings, message, print_json, style_of, write_bytes, write_file
from seatrial.errors import UsageError
from seatrial.interface.export import Answer, exported, query
from seatrial.model.exported import Exported
from seatrial.report.export.csv_table import csv_text
from seatrial.report.export.junit import junit_text
from seatrial.report.export.markdown import markdown_text
from seatrial.report.export.openmetrics import openmetrics_text
from seatrial.report.export.parquet_table import parquet_bytes
from seatrial.report.text.detail import Detail
from seatrial.report.text.terminal import clean
from seatrial.report.units import count

_TEXTS = {"csv": csv_text, "markdown": markdown_text, "junit": junit_text, "openmetrics": openmetrics_text}


def export_command(
    folder: Path, output_format: str, output: Path | None, *, anonymous: bool, detail: Detail = Detail.USUAL
) -> None:
    """Write an export to a file or stdout; in brief, without warnings; in full, also print on stderr what it has."""
    if detail is Detail.BRIEF:
        hide_warnings()
    if output_format == "parquet" and output is None:
        raise UsageError("Parquet is not text", "name a file: -o FILE.parquet")
    found = exported(folder, anonymous=anonymous, verdicts=output_format == "junit")
    if output_format == "parquet":
        assert output is not None  # noqa: S101 - checked above
        write_bytes(output, parquet_bytes(found))
    elif output is None:
        print(_TEXTS[output_format](found), end="")
    else:
        write_file(output, _TEXTS[output_format](found))
    if detail is Detail.FULL:
        message(_contents(found))


def _contents(found: Exported) -> str:
    """How many experiments an export has by outcome, and how many figures and verdicts."""
    outcomes = Counter({row.experiment: row.outcome for row in found.rows}.values())
    figures = sum(bool(row.figure) for row in found.rows)
    texts = [f"{number} {outcome}" for outcome, number in outcomes.most_common()]
    experiments = f"{count(outcomes.total(), 'experiment')} ({', '.join(texts)})"
    verdicts = [count(len(found.verdicts), "verdict")] if found.verdicts else []
    return f"exported: {', '.join([experiments, count(figures, 'figure'), *verdicts])}"


def query_command(folder: Path, sql: str, output_format: str, detail: Detail = Detail.USUAL) -> None:
    """Print the answer to a query; in brief, without the names of the columns; in full, also the number of rows."""
    answer = query(folder, sql)
    if output_format == "json":
        rows = [dict(zip(answer.columns, map(_plain, row), strict=True)) for row in answer.rows]
        print_json({"schema": "seatrial.query/1", "columns": list(answer.columns), "rows": rows})
    elif output_format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        if detail is not Detail.BRIEF:
            writer.writerow(answer.columns)
        writer.writerows(["" if (value := _plain(cell)) is None else value for cell in row] for row in answer.rows)
    else:
        has_head = detail is not Detail.BRIEF
        if has_head or answer.rows:
            print(_text(answer, has_head=has_head))
    if detail is Detail.FULL:
        message(f"{count(len(answer.rows), 'row')} of {count(len(answer.columns), 'column')}")


def _text(answer: Answer, *, has_head: bool) -> str:
    rows = [[clean(name) for name in answer.columns]] if has_head else []
    rows += [[clean(_shown(cell)) for cell in row] for row in answer.rows]
    return style_of(sys.stdout).table(rows, indent="", has_head=has_head)


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
