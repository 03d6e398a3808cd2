"""Samples, and the columns that they are stored as and computed from.

A sample is one timed measurement within a repeat. Records store samples by column (`pack`), because a million small
objects are slow to read, and a constant column is stored as one number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.parameter import Value


# not frozen: a column of samples shows each of its rows in the same one
class Sample(Struct):
    """One timed measurement: `work` done in `elapsed_s` seconds. It is not changed after it is made.

    `work` maps names to counts (bytes, flops, ops). `point` are the coordinates in a sweep inside the program, such as
    {"size_B": 8}. `extra` are other values that the program measured with it, such as the clock.
    """

    series: str
    i: int
    elapsed_s: float
    work: Mapping[str, float] = {}
    rank: int = 0
    point: Mapping[str, Value] = {}
    extra: Mapping[str, Any] = {}


def point_key(point: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    """A hashable, ordered form of a point."""
    return tuple(sorted(point.items()))


def pack(samples: Iterable[Sample]) -> list[dict[str, Any]]:
    """Columns: one dict for each (series, point, rank) of samples with the same names in `work` and `extra`; every
    number is a list, or one value if all are equal."""
    groups: dict[tuple[object, ...], list[Sample]] = {}
    for sample in samples:
        names = (*sample.work, None, *sample.extra)
        groups.setdefault((sample.series, point_key(sample.point), sample.rank, names), []).append(sample)
    return [
        {
            "series": group[0].series,
            "point": dict(group[0].point),
            "rank": group[0].rank,
            "n": len(group),
            "i": _column([sample.i for sample in group]),
            "elapsed_s": _column([sample.elapsed_s for sample in group]),
            "work": {name: _column([s.work[name] for s in group]) for name in group[0].work},
            "extra": {name: _column([s.extra[name] for s in group]) for name in group[0].extra},
        }
        for group in groups.values()
    ]


def unpack(columns: Sequence[Mapping[str, Any]]) -> list[Sample]:
    """The samples that were packed, group by group. Raises ProtocolError if the lengths of the columns differ."""
    samples: list[Sample] = []
    try:
        for group in columns:
            n = int(group["n"])
            series, point, rank = group["series"], group["point"], group["rank"]
            indices, elapsed = _cells(group["i"], n), _cells(group["elapsed_s"], n)
            work, extra = _by_sample(group["work"], n), _by_sample(group["extra"], n)
            samples += [
                Sample(series, i, elapsed_s, its_work, rank, point, its_extra)
                for i, elapsed_s, its_work, its_extra in zip(indices, elapsed, work, extra, strict=True)
            ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"invalid columns of samples ({error!r})") from error
    return samples


def _column(cells: list[Any]) -> Any:
    """A list of cells, or {"all": cell} if all are equal."""
    return {"all": cells[0]} if len(cells) > 1 and all(cell == cells[0] for cell in cells[1:]) else cells


def _by_sample(columns: Mapping[str, Any], n: int) -> Sequence[Mapping[str, Any]]:
    """Name -> cell of each sample. Samples share the mapping if all columns are constant."""
    if all(isinstance(column, dict) for column in columns.values()):
        return [{name: column["all"] for name, column in columns.items()}] * n
    cells = [_cells(column, n) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]


def _cells(column: Any, n: int) -> Sequence[Any]:
    if isinstance(column, dict):
        return [column["all"]] * n
    if not isinstance(column, list) or len(column) != n:
        raise ValueError(f"expected a column of {n} cells")
    return column


class EqualCells(Protocol):
    """A column whose cells are all equal."""

    @property
    def all(self) -> Any:
        """The value of each cell."""


Column = list[Any] | EqualCells


class SampleColumns(Protocol):
    """`n` samples of one series, point and rank, each field a column, as `pack` groups them.
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
