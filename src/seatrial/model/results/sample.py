"""Samples, and the columns that they are stored as and computed from.

A sample is one timed measurement within a repeat. Records store samples by column (`pack`), because a million small
objects are slow to read, and a constant column is stored as one number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta, Struct

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import LARGEST

NO_TIME = "it does not fit into the budget"
"""How the reason of a skipped experiment begins that could run here, but was left out because time ran out."""


class State(StrEnum):
    """The closed set of outcomes."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


class Stage(StrEnum):
    """Where something failed."""

    BUILD = "build"
    LAUNCH = "launch"
    RUN = "run"
    RECORD = "record"


class Outcome(Frozen):
    """A state with its reason in one sentence.

    `evidence` is the end of what the program printed; `check` names the check that failed (invalid), `stage` where it
    failed (failed). The reason begins with them.
    """

    state: State
    reason: str = ""
    evidence: str = ""
    stage: Stage | None = None
    check: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether figures may be published."""
        return self.state is State.OK

    @classmethod
    def ok(cls) -> Outcome:
        """It ran and every check held."""
        return cls(State.OK)

    @classmethod
    def skipped(cls, reason: str) -> Outcome:
        """It was deliberately not run: this machine is too small for it, or it makes no sense here."""
        return cls(State.SKIPPED, reason)

    @classmethod
    def unsupported(cls, need: str, detail: str) -> Outcome:
        """A requirement is missing; `need` is one word for it, `detail` says how to get it."""
        return cls(State.UNSUPPORTED, f"{need}: {detail}")

    @classmethod
    def invalid(cls, check: str, seen: str) -> Outcome:
        """It ran, but a check failed: raw samples are kept, no figure is published."""
        return cls(State.INVALID, f"{check}: {seen}", check=check)

    @classmethod
    def failed(cls, stage: Stage, seen: str, evidence: str = "") -> Outcome:
        """It could not be built, started or recorded, or it crashed."""
        return cls(State.FAILED, f"{stage}: {seen}", evidence, stage=stage)

    @classmethod
    def timed_out(cls, limit_s: float, evidence: str = "") -> Outcome:
        """It exceeded the time limit and was ended, with its children."""
        return cls(State.TIMED_OUT, f"ended after {limit_s:g} s, with its children", evidence)


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
    try:
        return [sample for group in columns for sample in samples_of(_columns_of(group))]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProtocolError(f"invalid columns of samples ({error!r})") from error


def _columns_of(group: Mapping[str, Any]) -> SampleColumns:
    n = int(group["n"])
    work, extra = ({name: _unpacked(column, n) for name, column in group[of].items()} for of in ("work", "extra"))
    indices, elapsed_s = cells(_unpacked(group["i"], n), n), _unpacked(group["elapsed_s"], n)
    return SampleColumns(group["series"], group["point"], group["rank"], n, indices, elapsed_s, work, extra)


def _unpacked(column: Any, n: int) -> Any:
    if isinstance(column, dict):
        return EqualCells(column["all"])
    if not isinstance(column, list) or len(column) != n:
        raise ValueError(f"expected a column of {n} cells")
    return column


def _column(cells: list[Any]) -> Any:
    """A list of cells, or {"all": cell} if all are equal."""
    return {"all": cells[0]} if len(cells) > 1 and all(cell == cells[0] for cell in cells[1:]) else cells


_Int = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Whole = Annotated[int, Meta(ge=-(2**53), le=2**53)]
_Number = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Cell = (
    str | bool | _Int | _Number | list[str | bool | _Int | _Number | list[str | bool | _Int | _Number | None] | None]
)


class EqualNumbers(Struct, gc=False, forbid_unknown_fields=True):
    """A column of equal numbers."""

    all: _Int | _Number | None


class EqualCells(Struct, gc=False, forbid_unknown_fields=True):
    """A column of equal values."""

    all: _Cell | None


Column = list[Any] | EqualNumbers | EqualCells


class SampleColumns(Struct, gc=False, forbid_unknown_fields=True):
    """`n` samples of one series, point and rank, each field a column, as `pack` groups them.
    Columns have `n` cells or are equal cells."""

    series: str
    point: dict[str, str | bool | _Int | _Number]
    rank: _Whole
    n: _Count
    i: list[_Whole]
    elapsed_s: list[_Int | _Number | None] | EqualNumbers
    work: dict[str, list[_Int | _Number | None] | EqualNumbers]
    extra: dict[str, list[_Cell | None] | EqualCells]


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
