"""SQL that a user wrote, over the views of a results folder: streamed, in bounded memory, ended at once by a signal.

DuckDB runs one statement for as long as it takes, and Python handles signals only between its own instructions. So a
statement and each part of its rows run in a thread, and what ends the wait for it interrupts DuckDB.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from seatrial.analysis.index.index import opened_index
from seatrial.analysis.index.views import VIEWS
from seatrial.errors import ResourceError, UsageError, did_you_mean
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import as_utf8
from seatrial.store.folder import ResultsFolder

if TYPE_CHECKING:
    import duckdb

_T = TypeVar("_T")
_MEMORY, _DISK = "100MB", "4GB"
"""The most that DuckDB holds of the tables of a statement, and the most that it writes to disk beyond that."""
_ROWS = 2000
"""Rows that are fetched at once."""

Row = tuple[Any, ...]


class Answer(Frozen):
    """The names of the columns, and the rows in parts, which are computed while they are read. Reading them raises
    UsageError where a value cannot be computed, and ResourceError."""

    columns: tuple[str, ...]
    parts: Iterator[list[Row]]


@contextmanager
def asked(folder: ResultsFolder, sql: str) -> Iterator[Answer]:
    """The answer of one SELECT over the views, which reads nothing else and changes nothing.

    Raises UsageError if the SQL is wrong, naming the nearest columns if one is unknown; ResourceError, StoreError.
    """
    import duckdb

    with opened_index(folder, memory=_MEMORY, disk=_DISK) as connection, _interrupting(connection) as run:
        with _explained():
            if as_utf8(sql) != sql:
                raise UsageError("the query is not UTF-8", "write it in UTF-8")
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("the query is not one SELECT statement", _todo(""))
            result = run(lambda: connection.execute(statements[0]))
        first = _part(run, result)  # most of what can go wrong does so before the first row
        yield Answer(tuple(column[0] for column in result.description or ()), _parts(run, result, first))


_Run = Callable[[Callable[[], _T]], _T]


@contextmanager
def _interrupting(connection: duckdb.DuckDBPyConnection) -> Iterator[Callable[[Callable[[], _T]], _T]]:
    """Calls a function in a thread; DuckDB is interrupted if the wait for it ends otherwise, as by a signal."""
    with ThreadPoolExecutor(1) as thread:
        try:
            yield lambda work: thread.submit(work).result()
        except BaseException:
            connection.interrupt()
            raise


def _part(run: _Run[list[Row]], result: duckdb.DuckDBPyConnection) -> list[Row]:
    with _explained():
        return run(lambda: result.fetchmany(_ROWS))


def _parts(run: _Run[list[Row]], result: duckdb.DuckDBPyConnection, part: list[Row]) -> Iterator[list[Row]]:
    while part:
        yield part
        part = _part(run, result)


@contextmanager
def _explained() -> Iterator[None]:
    """An error of DuckDB as one clear message."""
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"the query needs more than {_MEMORY} of memory and {_DISK} of disk",
            "choose fewer rows and columns, or export to Parquet and query that with DuckDB",
        ) from error
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
