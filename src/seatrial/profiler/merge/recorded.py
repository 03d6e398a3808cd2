"""What a record keeps of each rank of a profiled repeat, so that two repeats can be compared by the rules for profiles:
columns for its JSON, and the profile made from them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from seatrial.profiler.merge.cpu import node_cpus, rank_cpu
from seatrial.profiler.merge.merge import empty_profile
from seatrial.profiler.profile import NodeCpu, Profile, RankCpu, RankState, RankTotals
from seatrial.profiler.tables.process_table import ProcessTable

MOST_RANKS = 1024
"""A record of more ranks has no columns: they take 100 bytes for each rank."""
_CPU = {
    "cpu_wall_s": "wall_s",
    "cpu_s": "cpu_s",
    "delay_s": "delay_s",
    "throttled_share": "throttled_share",
    "throttled_s": "throttled_s",
    "quota": "quota",
}
"""Column -> field of RankCpu."""


def rank_columns(tables: Sequence[ProcessTable]) -> dict[str, Any]:
    """`{per_rank, masks, nodes}`, in order of the ranks; `{}` beyond MOST_RANKS. Times in seconds.

    `per_rank` has one column for each quantity, null where the kernel did not report it: `rank`, `node` (place in
    `nodes`), `computing_s` (outside MPI), what `RankCpu` has, and `mask` (place in `masks`). `nodes` are as `NodeCpu`,
    those whose ranks all have CPU time.
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
        columns["computing_s"].append(max(0.0, table.wall_s - _mpi_s(table)))
        for name, of in _CPU.items():
            columns[name].append(None if cpu is None else getattr(cpu, of))
        columns["mask"].append(None if cpu is None or not cpu.mask else masks.setdefault(cpu.mask, len(masks)))
    return {
        "per_rank": columns,
        "masks": [list(mask) for mask in masks],
        "nodes": [to_builtins(node) for node in nodes],
    }


def _mpi_s(table: ProcessTable) -> float:
    return sum(int(thread.slots["ticks"].sum()) for thread in table.threads) / table.ticks_per_s


def recorded_profile(summary: Mapping[str, Any]) -> Profile | None:
    """A profile with the ranks and nodes of a summary, and nothing else; None without columns, or if their lengths
    differ: a record may be damaged. Its types have been checked (`model/results/record_shape.py`)."""
    columns = summary.get("per_rank")
    if not columns or len({len(column) for column in columns.values()}) != 1 or not columns["rank"]:
        return None
    nodes = [NodeCpu(**{name: node[name] for name in NodeCpu.__struct_fields__}) for node in summary.get("nodes", ())]
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
            voluntary=None,
            involuntary=None,
            minor_faults=None,
            major_faults=None,
            most_resident_B=None,
            mask=tuple(masks[mask]) if mask is not None and mask < len(masks) else (),
        )
    return RankTotals(row["rank"], host, row["computing_s"], 0.0, 0, 0, 0, 0, 1, RankState.FINALIZED, cpu)
