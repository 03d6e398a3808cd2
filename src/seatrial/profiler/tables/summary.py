"""The MPI summary kept in the record of a repeat: seconds by call and size, over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.profiler.merge.recorded import rank_columns
from seatrial.profiler.tables.header import State
from seatrial.profiler.tables.process_table import ProcessTable, bin_floor

MOST_ROWS = 200
"""Rows of calls and sizes kept in a record; the rest is summed into one row for each call, without a size."""


def mpi_summary(tables: Sequence[ProcessTable], names: Sequence[str]) -> dict[str, Any]:
    """`{ranks, tables, complete, wall_s, mpi_s, overhead_s, calls, least_s}`: times in seconds, summed over ranks; and
    what `rank_columns` has.

    `calls` are rows `[call, size_B, count, bytes, time_s]`, longest time first; `size_B` is the smallest size of the
    bin, None for the remainder of a call beyond MOST_ROWS. `least_s` has the shortest call of any rank for each row.
    `names` are the MPI functions by number.
    """
    found: dict[tuple[str, int | None], list[float]] = {}
    for table in tables:
        for thread in table.threads:
            rows = thread.slots
            for call, size_bin, count, total_B, ticks, least in zip(
                rows["call"].tolist(),
                rows["bin"].tolist(),
                rows["count"].tolist(),
                rows["bytes"].tolist(),
                rows["ticks"].tolist(),
                rows["least_ticks"].tolist(),
                strict=True,
            ):
                key = (names[call - 1], bin_floor(size_bin))
                _add(found, key, count, total_B, ticks / table.ticks_per_s, least / table.ticks_per_s)
    ordered = sorted(found.items(), key=lambda item: -item[1][2])
    kept = dict(ordered[:MOST_ROWS])
    for (call, _), (count, total_B, time_s, least_s) in ordered[MOST_ROWS:]:
        _add(kept, (call, None), count, total_B, time_s, least_s)
    begun = [table for table in tables if table.rank is not None]
    calls = sum(row[0] for row in found.values())
    return {
        "ranks": max((table.size for table in tables), default=0),
        "tables": len(tables),
        "complete": bool(begun) and all(table.state is State.FINALIZED and not table.lost_calls for table in tables),
        "wall_s": sum(table.wall_s for table in tables),
        "mpi_s": sum(row[2] for row in found.values()),
        "overhead_s": max((table.own_s for table in tables), default=0.0) * calls,
        "calls": [[call, size, int(row[0]), int(row[1]), row[2]] for (call, size), row in kept.items()],
        "least_s": [row[3] for row in kept.values()],
        **rank_columns(tables),
    }


def _add(
    rows: dict[tuple[str, int | None], list[float]],
    key: tuple[str, int | None],
    count: int | float,
    total_B: float,
    s: float,
    least_s: float,
) -> None:
    row = rows.setdefault(key, [0, 0, 0.0, least_s])
    row[0] += count
    row[1] += total_B
    row[2] += s
    row[3] = min(row[3], least_s)
