"""`seatrial query`."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import typer

from seatrial.analysis.folder import tell_of_folder
from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.analysis.index.question import Answer, Row, asked
from seatrial.cli.command import command
from seatrial.cli.output import Amount, message, style_of, write_data
from seatrial.cli.process import is_unread
from seatrial.model.spelling import count
from seatrial.report.text.terminal import clean, cut
from seatrial.store.folder import ResultsFolder


class QueryFormat(StrEnum):
    """Output format of `query`."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


_MOST_ROWS = 10_000
"""Rows of a table: its widths are known only when all of its rows are in memory."""
_LONGEST_CELL = 2000


@command("query")
def _query(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")],
    sql: Annotated[
        str, typer.Argument(metavar="SELECT", help="SQL over figures, samples, experiments, facts, repeats")
    ],
    output_format: Annotated[
        QueryFormat, typer.Option("--format", help="json: a single JSON object on stdout")
    ] = QueryFormat.TEXT,
    rows: Annotated[
        int | None,
        typer.Option("--rows", metavar="N", help="print at most N rows (default: 10000 as text, all otherwise)", min=1),
    ] = None,
    *,
    amount: Annotated[Amount, {"quiet": "no names of columns (text, csv)", "verbose": "the number of rows, on stderr"}],
) -> None:
    opened = ResultsFolder.existing(folder)
    with opened_index(opened) as connection:
        tell_of_folder(folder, damaged_lines(connection), is_empty=False)
    most = rows if rows is not None else _MOST_ROWS if output_format is QueryFormat.TEXT else None
    with asked(opened, sql) as answer:
        printed = _Printed(answer, most)
        _PRINT[output_format](answer.columns, printed, not amount.quiet)
    if printed.are_cut:
        message(f"only the first {count(printed.n, 'row')}: --rows N prints more, --format csv all")
    if amount.verbose:
        message(f"{count(printed.n, 'row')} of {count(len(answer.columns), 'column')}")


class _Printed:
    """The rows of an answer, at most so many, while somebody reads what is printed."""

    def __init__(self, answer: Answer, most: int | None) -> None:
        self.n, self.are_cut = 0, False
        self._answer, self._most = answer, most

    def __iter__(self) -> Iterator[Row]:
        for part in self._answer.parts:
            if is_unread():
                return
            for row in part:
                if self.n == self._most:
                    self.are_cut = True
                    return
                self.n += 1
                yield row


def _print_json(columns: Sequence[str], rows: Iterable[Row], _: bool) -> None:
    """One object, laid out as every other, with a row at a time in memory."""
    head = json.dumps({"schema": "seatrial.query/1", "columns": columns, "rows": []}, indent=1)
    start = head.removesuffix("]\n}")
    is_first = True
    for row in rows:
        text = json.dumps(dict(zip(columns, map(_plain, row), strict=True)), indent=1, allow_nan=False)
        sys.stdout.write(f"{start if is_first else ','}\n{indent(text, '  ')}")
        is_first = False
    print(head if is_first else "\n ]\n}")


class _Data:
    """What `csv` writes to."""

    def write(self, text: str) -> None:
        """Write a line."""
        write_data(text)


def _print_csv(columns: Sequence[str], rows: Iterable[Row], has_head: bool) -> None:
    writer = csv.writer(_Data(), lineterminator="\n")
    if has_head:
        writer.writerow(columns)
    writer.writerows(["" if (value := _plain(cell)) is None else value for cell in row] for row in rows)


def _print_text(columns: Sequence[str], rows: Iterable[Row], has_head: bool) -> None:
    head = [[clean(name) for name in columns]] if has_head else []
    cells = [[cut(clean(_shown(cell)), _LONGEST_CELL) for cell in row] for row in rows]
    if head or cells:
        print(style_of(sys.stdout).table([*head, *cells], indent="", has_head=has_head))


_PRINT: dict[QueryFormat, Callable[[Sequence[str], Iterable[Row], bool], None]] = {
    QueryFormat.TEXT: _print_text,
    QueryFormat.JSON: _print_json,
    QueryFormat.CSV: _print_csv,
}


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
