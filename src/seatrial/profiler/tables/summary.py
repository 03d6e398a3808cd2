"""What the tables of one repeat come to, as its record keeps it: seconds by call and size, over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.profiler.tables.process_table import ProcessTable, State, bin_floor

MOST_ROWS = 200
"""Calls and sizes that a record keeps one by one; the rest stand in one row of each call, without a size."""


def mpi_summary(tables: Sequence[ProcessTable], names: Sequence[str]) -> dict[str, Any]:
    """`{ranks, tables, complete, wall_s, mpi_s, overhead_s, calls}`: times are seconds, summed over ranks.

    `calls` are rows `[call, size_B, count, bytes, time_s]`, those with most time first; `size_B` is the least size of
    the bin, None for what is left of a call beyond MOST_ROWS. `names` are the MPI functions by number.
    """
    found: dict[tuple[str, int | None], list[float]] = {}
    for table in tables:
        for thread in table.threads:
            rows = thread.slots
            for call, size_bin, count, given, ticks in zip(
                rows["call"].tolist(),
                rows["bin"].tolist(),
                rows["count"].tolist(),
                rows["bytes"].tolist(),
                rows["ticks"].tolist(),
                strict=True,
            ):
                _add(found, (names[call - 1], bin_floor(size_bin)), count, given, ticks / table.ticks_per_s)
    ordered = sorted(found.items(), key=lambda item: -item[1][2])
    kept = dict(ordered[:MOST_ROWS])
    for (call, _), (count, given, time_s) in ordered[MOST_ROWS:]:
        _add(kept, (call, None), count, given, time_s)
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
    }


def _add(
    rows: dict[tuple[str, int | None], list[float]],
    key: tuple[str, int | None],
    count: int | float,
    given: float,
    s: float,
) -> None:
    row = rows.setdefault(key, [0, 0, 0.0])
    row[0] += count
    row[1] += given
    row[2] += s
