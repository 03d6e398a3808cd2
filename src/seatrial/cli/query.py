"""`seatrial query`."""

from __future__ import annotations

import csv
import difflib
import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.analysis.folder import tell_of_folder
from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.analysis.index.views import VIEWS
from seatrial.cli.command import command
from seatrial.cli.output import Amount, message, print_json, style_of
from seatrial.errors import UsageError, did_you_mean
from seatrial.model.spelling import count
from seatrial.report.text.terminal import clean
from seatrial.store.folder import ResultsFolder


class QueryFormat(StrEnum):
    """Output format of `query`."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


@command("query")
def _query(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the results folder")],
    sql: Annotated[
        str, typer.Argument(metavar="SELECT", help="SQL over figures, samples, experiments, facts, repeats")
    ],
    output_format: Annotated[
        QueryFormat, typer.Option("--format", help="json: a single JSON object on stdout")
    ] = QueryFormat.TEXT,
    *,
    amount: Annotated[Amount, {"quiet": "no names of columns (text, csv)", "verbose": "the number of rows, on stderr"}],
) -> None:
    columns, rows = _answer(folder, sql)
    has_head = not amount.quiet
    if output_format is QueryFormat.JSON:
        found = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
        print_json({"schema": "seatrial.query/1", "columns": columns, "rows": found})
    elif output_format is QueryFormat.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        if has_head:
            writer.writerow(columns)
        writer.writerows(["" if (value := _plain(cell)) is None else value for cell in row] for row in rows)
    elif has_head or rows:
        head = [[clean(name) for name in columns]] if has_head else []
        cells = [[clean(_shown(cell)) for cell in row] for row in rows]
        print(style_of(sys.stdout).table([*head, *cells], indent="", has_head=has_head))
    if amount.verbose:
        message(f"{count(len(rows), 'row')} of {count(len(columns), 'column')}")


def _answer(folder: Path, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The columns and rows of one SELECT over the views of a folder, which reads nothing else and changes nothing.

    Raises UsageError if the SQL is wrong, naming the nearest columns if one is unknown.
    """
    import duckdb

    with opened_index(ResultsFolder.existing(folder)) as connection:
        tell_of_folder(folder, damaged_lines(connection), is_empty=False)
        with _explained():
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("the query is not one SELECT statement", _todo(""))
            result = connection.execute(statements[0])
            return [column[0] for column in result.description or ()], result.fetchall()


@contextmanager
def _explained() -> Iterator[None]:
    """An error of DuckDB as one clear message."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        first = re.sub(r"\s+", " ", text.split("\n\n")[0].split("\nLINE")[0]).strip()
        raise UsageError(f"the query cannot be answered: {first}", _todo(text)) from error


def _todo(text: str) -> str:
    """What to do about an error: the nearest columns, or the views with their columns."""
    columns = sorted({column.name for view in VIEWS for column in view.columns})
    unknown = re.search(r'column "([^"]+)"|with name ([\w.]+) does not exist', text)
    if unknown is None or "Catalog" in text:
        return f'the views are {", ".join(view.name for view in VIEWS)}; "DESCRIBE figures" lists the columns of one'
    name = (unknown[1] or unknown[2]).rpartition(".")[2]
    nearest = difflib.get_close_matches(name, columns, n=3, cutoff=0.5)
    listed = "; ".join(f"{view.name} ({', '.join(column.name for column in view.columns)})" for view in VIEWS)
    return did_you_mean(nearest) if nearest else f"the views are {listed}"


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
