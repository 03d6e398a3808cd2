"""The samples of a repeat as columns: figures are computed from them without an object for each sample."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from seatrial.model.parameter import Value
from seatrial.model.sample import Sample


class EqualCells(Protocol):
    """A column whose cells are all equal."""

    @property
    def all(self) -> Any:
        """The value of each cell."""


Column = list[Any] | EqualCells


class SampleColumns(Protocol):
    """`n` samples of one series, point and rank, each field a column, as `seatrial.model.sample.pack` groups them.
    Columns have `n` cells or are equal cells."""

    @property
    def series(self) -> str:
        """The series of all of them."""

    @property
    def point(self) -> Mapping[str, Value]:
        """The point of all of them."""

    @property
    def rank(self) -> int:
        """The rank of all of them."""

    @property
    def n(self) -> int:
        """How many there are."""

    @property
    def i(self) -> Sequence[int]:
        """The number of each."""

    @property
    def elapsed_s(self) -> Column:
        """The time of each, in seconds."""

    @property
    def work(self) -> Mapping[str, Column]:
        """Name -> count of each."""

    @property
    def extra(self) -> Mapping[str, Column]:
        """Name -> what else was measured with each."""


class ColumnedSamples(Sequence[Sample]):
    """Samples that can be had by column, too."""

    __slots__ = ()

    @abstractmethod
    def columns(self) -> Sequence[SampleColumns]:
        """The samples as `pack` groups them; no group is empty."""


def cells(column: Column, n: int) -> list[Any]:
    """The cells of a column of n samples."""
    return column if isinstance(column, list) else [column.all] * n


def least(column: Column) -> Any:
    """The least cell of a column of one sample or more."""
    return min(column) if isinstance(column, list) else column.all


def values_of(value: Callable[[Sample], float], columns: SampleColumns) -> list[float]:
    """The value of each sample. It is computed from one object that changes from sample to sample."""
    found: list[float] = []
    work: Mapping[str, Any] = {
        name: column.all for name, column in columns.work.items() if not isinstance(column, list)
    }
    if len(work) < len(columns.work):
        work = _Row(columns.work, found)
    sample = Sample(columns.series, 0, 0.0, work, columns.rank, columns.point, _Row(columns.extra, found))
    for sample.i, sample.elapsed_s in zip(columns.i, cells(columns.elapsed_s, columns.n), strict=True):
        found.append(value(sample))
    return found


def samples_of(columns: SampleColumns) -> list[Sample]:
    """The samples as objects. They share a mapping whose values are all equal."""
    n, series, point, rank = columns.n, columns.series, columns.point, columns.rank
    each = zip(
        columns.i, cells(columns.elapsed_s, n), _mappings(columns.work, n), _mappings(columns.extra, n), strict=True
    )
    return [Sample(series, i, elapsed_s, work, rank, point, extra) for i, elapsed_s, work, extra in each]


def _mappings(columns: Mapping[str, Column], n: int) -> list[Mapping[str, Any]]:
    """Name -> cell, of each sample."""
    if n == 1 or not any(isinstance(column, list) for column in columns.values()):
        return [{name: cells(column, 1)[0] for name, column in columns.items()}] * n
    rows = zip(*[cells(column, n) for column in columns.values()], strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


class _Row(Mapping[str, Any]):
    """The row of columns whose value is computed next: as many values were `found`."""

    __slots__ = ("_columns", "_found")

    def __init__(self, columns: Mapping[str, Column], found: Sequence[float]) -> None:
        self._columns = columns
        self._found = found

    def __getitem__(self, name: str) -> Any:
        column = self._columns[name]
        return column[len(self._found)] if isinstance(column, list) else column.all

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def get(self, name: str, default: Any = None) -> Any:
        """The cell of that name, or the default."""
        return self[name] if name in self._columns else default
