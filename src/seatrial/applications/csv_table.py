"""CSV as `seatrial export --format csv` writes it: one row for each figure, or for an experiment without figures.

The rows of one experiment follow one another. Its figures have a median and an interval, and no repeats.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.applications.reading import figures
from seatrial.applications.reading.text import read_text
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value, value_from_json
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_json
from seatrial.model.results.exported import COLUMNS, PARAMETER, REMARKS
from seatrial.model.results.figure_result import StatedFigure
from seatrial.model.results.imported import ImportedFile, StatedExperiment
from seatrial.model.results.sample import Outcome, State
from seatrial.model.units import UNITS, is_unit

_TOOL = "seatrial export"
_LONGEST_CELL = 1 << 20
_MOST_ROWS = 5_000_000


class _Row(Frozen):
    """A row with the number of its line; parameters as JSON text."""

    line: int
    cells: Mapping[str, str]

    def error(self, why: str) -> ParseError:
        """The row cannot be read."""
        return ParseError(_TOOL, self.line, ",".join(self.cells.values())[:200], why)

    @property
    def experiment(self) -> tuple[str, str, str, str]:
        """What rows of one experiment share."""
        cells = self.cells
        return cells["benchmark"], cells["parameters"], cells["environment"], cells["outcome"]


def read(data: bytes) -> ImportedFile:
    """The experiments of a table. Raises ParseError for a row that is incomplete or impossible."""
    found: list[StatedExperiment] = []
    numbers: dict[tuple[str, str, str], int] = {}
    rows: list[_Row] = []

    def finish() -> None:
        if rows:
            key = rows[0].experiment[:3]
            found.append(_experiment(rows, numbers.get(key, 0)))
            numbers[key] = numbers.get(key, 0) + 1
            rows.clear()

    seen: set[tuple[str, str]] = set()
    for row in _rows(read_text(data, _TOOL)):
        figure = (row.cells["figure"], row.cells["figure_parameters"])
        if rows and (row.experiment != rows[0].experiment or figure in seen):
            finish()
            seen.clear()
        seen.add(figure)
        rows.append(row)
    finish()
    if not found:
        raise ParseError(_TOOL, None, "", "the table has no rows")
    return ImportedFile(_TOOL, "", (), stated=tuple(found))


def _rows(text: str) -> Iterator[_Row]:
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        head = next(reader, None)
        own, more = tuple(head or ())[: len(COLUMNS)], tuple(head or ())[len(COLUMNS) :]
        if head is None or own != COLUMNS or not all(name.startswith(PARAMETER) or name == REMARKS for name in more):
            raise ParseError(_TOOL, 1, ",".join(head or ())[:200], f"the header is not {','.join(COLUMNS)}")
        for n, cells in enumerate(reader):
            if not cells:
                continue
            if n > _MOST_ROWS:
                raise ParseError(_TOOL, reader.line_num, "", f"more than {_MOST_ROWS} rows")
            if len(cells) != len(head):
                raise ParseError(_TOOL, reader.line_num, ",".join(cells)[:200], f"{len(cells)} cells, not {len(head)}")
            yield _Row(reader.line_num, dict(zip(COLUMNS, cells, strict=False)))  # the rest repeats or qualifies
    except csv.Error as error:
        raise ParseError(_TOOL, reader.line_num, "", f"invalid CSV: {error}") from error
    finally:
        csv.field_size_limit(before)


def _experiment(rows: list[_Row], number: int) -> StatedExperiment:
    first = rows[0]
    benchmark, outcome = first.cells["benchmark"], first.cells["outcome"]
    if not benchmark or not benchmark.isprintable() or len(benchmark) > 200:
        raise first.error("the benchmark has no valid name")
    if outcome not in set(State):
        raise first.error(f"the outcome {outcome[:40]!r} is not one of {', '.join(State)}")
    state = State(outcome)
    figures = tuple(_figure(row) for row in rows if row.cells["figure"])
    if (state is State.OK) != bool(figures) or len(figures) not in (0, len(rows)):
        raise first.error("an experiment has figures if it is ok, and only then")
    said = Outcome.ok() if state is State.OK else Outcome(state, f"{state.value}: as the table states")
    return StatedExperiment(
        benchmark, _parameters(first, "parameters"), first.cells["environment"], number, said, figures
    )


def _figure(row: _Row) -> StatedFigure:
    cells = row.cells
    if not is_unit(cells["unit"]):
        raise row.error(f"{cells['unit'][:20]!r} is not a unit such as {', '.join(UNITS)} or LUP/s")
    if cells["better"] not in set(Better):
        raise row.error(f"better is {cells['better'][:20]!r}, not higher or lower")
    middle, low, high = (_number(row, name) for name in ("median", "ci95_low", "ci95_high"))
    if middle is None:
        raise row.error("the median is missing")
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise row.error("the interval is incomplete, or its ends are exchanged")
    n = cells["n_repeats"]
    if not (n.isascii() and n.isdecimal() and 1 <= int(n) <= 2**53):
        raise row.error(f"n_repeats is {n[:20]!r}, not a number of repeats")
    interval = None if low is None or high is None else (low, high)
    parameters = {
        name: list(v) if isinstance(v, tuple) else v for name, v in _parameters(row, "figure_parameters").items()
    }
    return StatedFigure(cells["figure"], parameters, cells["unit"], cells["better"], middle, interval, int(n))


def _number(row: _Row, name: str) -> float | None:
    text = row.cells[name]
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or "_" in text:
        raise row.error(f"{name} is {text[:30]!r}, not a number")
    return value


def _parameters(row: _Row, name: str) -> dict[str, Value]:
    try:
        found: Any = parse_json(row.cells[name].encode())
        if not isinstance(found, dict):
            raise ValueError("not an object")
        return {key: value_from_json(value) for key, value in found.items()}
    except (ValueError, TypeError) as error:
        raise row.error(f"{name} is not a JSON object of values: {error}") from error


READER = figures.Reader("csv", read)
