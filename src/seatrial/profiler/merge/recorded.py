"""What a record keeps of each rank of a profiled repeat, so that two repeats can be compared by the rules for profiles:
columns for its JSON, and the profile made from them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.profiler.cpu import NOT_COUNTED
from seatrial.profiler.merge.cpu import node_cpus, rank_cpu
from seatrial.profiler.profile import NodeCpu, Profile, RankCpu, RankState, RankTotals, empty_profile
from seatrial.profiler.tables.header import ProcessState, bin_floor
from seatrial.profiler.tables.process_table import ProcessTable

MOST_RANKS = 1024
"""A record of more ranks has no columns: they take 100 bytes for each rank."""
_CPU = {
    "cpu_wall_s": "wall_s",
    **{name: name for name in ("cpu_s", "delay_s", "throttled_share", "throttled_s", "quota")},
}
"""Column -> field of RankCpu."""


def rank_columns(tables: Sequence[ProcessTable]) -> dict[str, Any]:
    """`{per_rank, masks, nodes}`, in order of the ranks; `{}` beyond MOST_RANKS. Times in seconds.

    `per_rank` has one column for each quantity, null where the kernel did not report it: `rank`, `node` (position in
    `nodes`), `computing_s` (outside MPI), what `RankCpu` has, and `mask` (position in `masks`). `nodes` are as
    `NodeCpu`, those whose ranks all have CPU time.
    """
    own = sorted((table for table in tables if table.rank is not None), key=lambda table: table.rank or 0)
    if not own or len(own) > MOST_RANKS:
        return {}
    nodes = node_cpus(own)
    places = {node.host: place for place, node in enumerate(nodes)}
    masks: dict[tuple[int, ...], int] = {}
    columns: dict[str, list[Any]] = {name: [] for name in ("rank", "node", "computing_s", *_CPU, "mask")}
    for table in own:
        cpu = rank_cpu(table)
        columns["rank"].append(table.rank)
        columns["node"].append(places.get(table.host))
        mpi_s = sum(int(thread.slots["ticks"].sum()) for thread in table.threads) / table.ticks_per_s
        columns["computing_s"].append(max(0.0, table.wall_s - mpi_s))
        for name, of in _CPU.items():
            columns[name].append(None if cpu is None else getattr(cpu, of))
        columns["mask"].append(None if cpu is None or not cpu.mask else masks.setdefault(cpu.mask, len(masks)))
    return {
        "per_rank": columns,
        "masks": [list(mask) for mask in masks],
        "nodes": [to_builtins(node) for node in nodes],
    }


def recorded_profile(summary: Mapping[str, Any]) -> Profile | None:
    """A profile with the ranks and nodes of a summary, and nothing else; None without columns, or if their lengths
    differ: a record may be damaged. Its types have been checked (`model/results/record_shape.py`)."""
    columns = summary.get("per_rank")
    if not columns or len({len(column) for column in columns.values()}) != 1 or not columns["rank"]:
        return None
    fields = NodeCpu.__struct_fields__
    nodes = [NodeCpu(**{name: node[name] for name in fields if name in node}) for node in summary.get("nodes", ())]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    ranks = [_rank(row, nodes, summary.get("masks", ())) for row in rows]
    wall_s = float(summary["wall_s"])
    return replace(
        empty_profile(""),
        ranks=len(ranks),
        elapsed_s=wall_s / len(ranks),
        wall_s=wall_s,
        mpi_s=float(summary["mpi_s"]),
        per_rank=tuple(ranks),
        nodes=tuple(node for node in nodes if node.wall_s > 0),
    )


def _rank(row: Mapping[str, Any], nodes: Sequence[NodeCpu], masks: Sequence[Sequence[int]]) -> RankTotals:
    node, mask = row["node"], row["mask"]
    host = nodes[node].host if node is not None and node < len(nodes) else ""
    cpu = None
    if row["cpu_wall_s"]:
        cpu = RankCpu(
            **{of: row[name] for name, of in _CPU.items()},
            **NOT_COUNTED,
            mask=tuple(masks[mask]) if mask is not None and mask < len(masks) else (),
        )
    return RankTotals(row["rank"], host, row["computing_s"], 0.0, 0, 0, 0, 0, 1, RankState.FINALIZED, cpu)


_Sums = dict[tuple[str, int | None], list[float]]
MOST_ROWS = 200
"""Rows of calls and sizes kept in a record; the rest is summed into one row for each call, without a size."""


def mpi_summary(tables: Sequence[ProcessTable], names: Sequence[str]) -> dict[str, Any]:
    """`{ranks, tables, complete, wall_s, mpi_s, overhead_s, calls, least_s}`: times in seconds, summed over ranks; and
    what `rank_columns` has.

    `calls` are rows `[call, size_B, count, bytes, time_s]`, longest time first; `size_B` is the smallest size of the
    bin, None for the remainder of a call beyond MOST_ROWS. `least_s` has the shortest call of any rank for each row.
    `names` are the MPI functions by number.
    """
    found: _Sums = {}
    for table, thread in ((one, thread) for one in tables for thread in one.threads):
        columns = (thread.slots[name].tolist() for name in ("call", "bin", "count", "bytes", "ticks", "least_ticks"))
        for call, size_bin, count, total_B, ticks, least in zip(*columns, strict=True):
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
        "complete": bool(begun)
        and all(table.state is ProcessState.FINALIZED and not table.lost_calls for table in tables),
        "wall_s": sum(table.wall_s for table in tables),
        "mpi_s": sum(row[2] for row in found.values()),
        "overhead_s": max((table.own_s for table in tables), default=0.0) * calls,
        "calls": [[call, size, int(row[0]), int(row[1]), row[2]] for (call, size), row in kept.items()],
        "least_s": [row[3] for row in kept.values()],
        **rank_columns(tables),
    }


def _add(rows: _Sums, key: tuple[str, int | None], count: float, total_B: float, s: float, least_s: float) -> None:
    row = rows.setdefault(key, [0, 0, 0.0, least_s])
    row[0] += count
    row[1] += total_B
    row[2] += s
    row[3] = min(row[3], least_s)
