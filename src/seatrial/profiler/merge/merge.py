"""The tables of all ranks merged into one profile for each MPI_COMM_WORLD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from seatrial.profiler.cause import Resolve, no_symbols
from seatrial.profiler.cpu import NodeLimits
from seatrial.profiler.merge.bound import gaps_share, is_of_files, reference_of
from seatrial.profiler.merge.code import rank_code
from seatrial.profiler.merge.cpu import node_cpus, rank_counters, rank_cpu
from seatrial.profiler.merge.over_time import io_of, over_time, slice_differences
from seatrial.profiler.merge.regions import (
    merged_regions,
    operations,
    parallel_places,
    rank_openmp,
    rank_waits,
    region_faults,
    without_operations,
    without_skew,
)
from seatrial.profiler.merge.rows import Rows, all_rows, call_totals, measured_waiting, size_totals
from seatrial.profiler.merge.sites import call_sites
from seatrial.profiler.merge.worlds import World, pair_table, worlds
from seatrial.profiler.profile import Profile, RankState, RankTotals, SizeTotals, Trust
from seatrial.profiler.tables.extension import OperationRow
from seatrial.profiler.tables.header import Family, ProcessState
from seatrial.profiler.tables.io_samples import IoSamples
from seatrial.profiler.tables.process_table import ProcessTable
from seatrial.profiler.tables.traffic import is_collective

if TYPE_CHECKING:
    import numpy.typing as npt

_FAMILIES = {
    Family.UNKNOWN: "unknown",
    Family.MPICH: "MPICH",
    Family.OPENMPI: "Open MPI",
    Family.STANDARD_ABI: "MPI standard ABI",
}
_STATES = dict(zip(ProcessState, RankState, strict=True))
_MOSTLY = 0.5


def profiles(
    tables: Sequence[ProcessTable],
    names: Sequence[str],
    resolve: Resolve = no_symbols,
    damaged: int = 0,
    samples: Sequence[IoSamples] = (),
    limits: NodeLimits | None = None,
) -> list[Profile]:
    """One profile for each world among the tables, longest total time first; empty if no process initialized MPI.

    `names` are the MPI functions in the order of the table of functions. `resolve` turns addresses into source lines.
    `damaged` is the number of unreadable tables. `samples` are the collectors' samples of ranks and nodes.
    `limits` are those of the only node, if they were measured.
    """
    found = worlds(tables)
    made = [_profile(world, names, resolve, len(found) - 1, damaged, samples, limits) for world in found]
    return sorted(made, key=lambda one: -one.wall_s)


def _profile(
    world: World,
    names: Sequence[str],
    resolve: Resolve,
    others: int,
    damaged: int,
    samples: Sequence[IoSamples],
    limits: NodeLimits | None,
) -> Profile:
    tables = [world[rank] for rank in sorted(world)]
    size = tables[0].size
    rows = all_rows(tables)
    trust = _trust(tables, size)
    matrix, unmatched = pair_table(tables, size)
    hosts = len({table.host for table in tables})
    reference = reference_of(hosts)
    barrier_s = reference.most_s("MPI_Barrier", 0, size)
    if _has_gaps(tables, rows, names):
        reference = reference.piecewise()
    sizes = size_totals(
        rows,
        names,
        measured_waiting(tables, barrier_s),
        reference,
        size,
        has_sizes=trust.has_sizes,
        on_one_host=hosts == 1,
        requests_each=_requests_each(tables),
    )
    ranks = _per_rank(tables, rows, sizes, names, resolve)
    return Profile(
        program=tables[0].script or tables[0].program,
        ranks=size,
        elapsed_s=max(table.wall_s for table in tables),
        wall_s=sum(one.wall_s for one in ranks),
        mpi_s=sum(one.mpi_s for one in ranks),
        overhead_s=sum(_own_s(one.calls, table) for one, table in zip(ranks, tables, strict=True)),
        calls=tuple(call_totals(rows, sizes, names, len(tables))),
        sizes=tuple(sizes),
        matrix=matrix,
        per_rank=tuple(ranks),
        callsites=tuple(call_sites(tables, rows, names, resolve)),
        over_time=over_time(tables),
        trust=replace(trust, unmatched_B=unmatched, damaged=damaged),
        others=others,
        io=io_of(tables, samples),
        nodes=node_cpus(tables),
        regions=merged_regions(tables, rows, sizes, names),
        faults=region_faults(tables),
        parallel=parallel_places(tables, resolve),
        operations=operations(tables, resolve),
        limits=limits if len({table.host for table in tables}) == 1 else None,
        differences=slice_differences(tables),
        noncontiguous_B=sum(table.noncontiguous_B for table in tables),
        untimed_operations=_untimed(tables, rows, names),
    )


def _untimed(tables: Sequence[ProcessTable], rows: Rows, names: Sequence[str]) -> int:
    """Operations that the program made without their time being known: in tables of earlier versions, all."""
    makes = np.array([False, *(name.removesuffix("_c") == "MPI_Op_create" for name in names)])
    made = int(rows.count[makes[rows.call]].sum())
    return max(0, made - sum(row.made for table in tables for row in _operation_rows(table)))


def _operation_rows(table: ProcessTable) -> Sequence[OperationRow]:
    return () if table.extension is None else table.extension.operations.rows


def _requests_each(tables: Sequence[ProcessTable]) -> float:
    uses = [table.extension.kernel for table in tables if table.extension is not None]
    calls = sum(one.any_calls for one in uses)
    return sum(one.any_requests for one in uses) / calls if calls else 0.0


def _has_gaps(tables: Sequence[ProcessTable], rows: Rows, names: Sequence[str]) -> bool:
    """Whether most of the bytes that are sent have datatypes with gaps."""

    def bytes_of(which: Callable[[str], bool]) -> int:
        return int(rows.bytes[np.array([False, *map(which, names)])[rows.call]].sum())

    sent_B = sum(int(table.peers[:, 1].sum()) for table in tables) + bytes_of(is_collective)
    noncontiguous_B = sum(table.noncontiguous_B for table in tables)
    return gaps_share(noncontiguous_B, bytes_of(is_of_files), sent_B) > _MOSTLY


def _own_s(calls: int, table: ProcessTable) -> float:
    """What the profiler took in a rank: for each call and each operation of the program, for samples of CPU time, and
    for reading counters."""
    ticks = 0
    if table.extension is not None:
        ticks = table.extension.samples.own_ticks
        ticks += 0 if table.extension.counters is None else table.extension.counters.split.own_ticks
    applied = sum(row.calls for row in _operation_rows(table))
    return calls * table.own_s + applied * table.reading_s + ticks / table.ticks_per_s


def _per_rank(
    tables: Sequence[ProcessTable], rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str], resolve: Resolve
) -> list[RankTotals]:
    def summed(values: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_] | None = None) -> list[int]:
        made: npt.NDArray[np.int64] = np.zeros(len(tables), np.int64)
        which = slice(None) if chosen is None else chosen
        np.add.at(made, rows.process[which], values[which])
        return [int(value) for value in made]

    collective = np.array([False, *(is_collective(name) for name in names)])
    time_s = np.bincount(rows.process, rows.time_s, len(tables))
    start_s = min(table.loaded_at_s for table in tables)
    waits = without_skew(rank_waits(rows, sizes, names, len(tables)), tables)
    operated_s = [sum(row.ticks for row in _operation_rows(table)) / table.ticks_per_s for table in tables]
    in_calls_s = np.bincount(rows.process, rows.operated_s, len(tables)).tolist()
    waits = without_operations(waits, [max(0.0, a - b) for a, b in zip(operated_s, in_calls_s, strict=True)])
    by_call = _by_call(rows, names, len(tables))
    calls, collective_B = summed(rows.count), summed(rows.bytes, collective[rows.call])
    return [
        RankTotals(
            rank=table.rank or 0,
            host=table.host,
            wall_s=table.wall_s,
            mpi_s=float(time_s[k]),
            calls=calls[k],
            sent_B=int(table.peers[:, 1].sum()),
            received_B=int(table.peers[:, 3].sum()),
            collective_B=collective_B[k],
            threads=len(table.threads),
            state=_STATES[table.state],
            cpu=rank_cpu(table, start_s),
            waits=waits[k],
            system=table.system_uses,
            counters=rank_counters(table),
            openmp=rank_openmp(table),
            by_call=by_call[k],
            code=rank_code(table, resolve),
            operated_s=operated_s[k],
        )
        for k, table in enumerate(tables)
    ]


def _by_call(rows: Rows, names: Sequence[str], processes: int) -> list[dict[str, float]]:
    """Seconds of each function in each process."""
    time_s = np.zeros((processes, len(names)))
    np.add.at(time_s, (rows.process, rows.call - 1), rows.time_s)
    found: list[dict[str, float]] = [{} for _ in range(processes)]
    for process, call in np.argwhere(time_s > 0).tolist():
        found[process][names[call]] = float(time_s[process, call])
    return found


def _trust(tables: Sequence[ProcessTable], size: int) -> Trust:
    present = {table.rank for table in tables}
    families = {table.family for table in tables}
    return Trust(
        missing=tuple(rank for rank in range(size) if rank not in present),
        unfinished=tuple(table.rank or 0 for table in tables if table.state is not ProcessState.FINALIZED),
        without_site=sum(thread.without_site for table in tables for thread in table.threads),
        without_path=sum(table.lost_places for table in tables),
        lost_calls=sum(table.lost_calls for table in tables),
        unknown_length=sum(table.unknown_length for table in tables),
        families=tuple(sorted(_FAMILIES[family] for family in families)),
        libraries=tuple(sorted({" ".join(table.library.split()) for table in tables if table.library})),
        has_sizes=Family.UNKNOWN not in families,
    )
