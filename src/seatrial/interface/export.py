"""Export the figures of a results folder, and SQL over its records."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seatrial.analysis.folder import contents_in
from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.analysis.index.rows import exported_rows, identifiers
from seatrial.analysis.index.views import VIEWS
from seatrial.analysis.study_results import study_results
from seatrial.errors import UsageError, did_you_mean
from seatrial.model.exported import Exported, ExportedVerdict
from seatrial.model.frozen import Frozen
from seatrial.model.study_result import StudyResult
from seatrial.report.export.anonymous import Anonymizer
from seatrial.report.studies.verdicts import verdict_rows
from seatrial.store.folder import ResultsFolder

if TYPE_CHECKING:
    import duckdb

_log = logging.getLogger(__name__)


class Answer(Frozen):
    """The rows of a query, by column."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def exported(folder: Path, *, anonymous: bool = False, verdicts: bool = False) -> Exported:
    """What an export of a folder contains; with `verdicts`, also those of its studies. Raises UsageError if there is
    no results folder or it is empty, StoreError."""
    opened = ResultsFolder.existing(folder)
    with opened_index(opened) as connection:
        _warn(connection)
        rows = exported_rows(connection)
        known = identifiers(connection) if anonymous else {}
    if not rows:
        raise UsageError(f"{folder} contains no finished repeat", "measure first: seatrial run")
    named: list[ExportedVerdict] = []
    if verdicts and opened.keys("studies"):
        named = [one for study in study_results(contents_in(folder)) for one in _verdicts(study)]
    found = Exported(rows, tuple(named))
    return Anonymizer(known).exported(found) if anonymous else found


def query(folder: Path, sql: str) -> Answer:
    """The answer to one SELECT over the views of a folder, which reads nothing else and changes nothing.

    Raises UsageError if the SQL is wrong, naming the nearest columns if one is unknown.
    """
    import duckdb

    opened = ResultsFolder.existing(folder)
    with opened_index(opened) as connection:
        _warn(connection)
        with _explained():
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("the query is not one SELECT statement", _todo(""))
            result = connection.execute(statements[0])
            return Answer(tuple(column[0] for column in result.description or ()), result.fetchall())


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
    return did_you_mean(nearest) if nearest else _views()


def _views() -> str:
    listed = "; ".join(f"{view.name} ({', '.join(column.name for column in view.columns)})" for view in VIEWS)
    return f"the views are {listed}"


def _warn(connection: duckdb.DuckDBPyConnection) -> None:
    for line in damaged_lines(connection):
        _log.warning("ignored: %s", line)


def _verdicts(study: StudyResult) -> list[ExportedVerdict]:
    return [ExportedVerdict(study.study.name, *row) for compared in study.compared for row in verdict_rows(compared)]
