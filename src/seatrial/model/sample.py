"""Samples, and the columns that they are stored as.

A sample is one timed measurement within a repeat. Records store samples by column (`pack`), because a million small
objects are slow to read, and a constant column is stored as one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from seatrial.errors import ProtocolError
from seatrial.model.parameter import Value


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
