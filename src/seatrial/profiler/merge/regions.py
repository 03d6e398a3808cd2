"""The regions of all ranks, and OpenMP in them, merged."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from msgspec.structs import astuple, replace

from seatrial.profiler.cause import CallSite, Resolve
from seatrial.profiler.merge.bound import HALF_PERFORMANCE_B, WaitKind, is_call_rate, is_poll, wait_kind
from seatrial.profiler.merge.rows import Rows, grouped
from seatrial.profiler.profile import Bound, RankWaits, SizeTotals
from seatrial.profiler.regions import Operation, ParallelPlace, RankOpenMp, RankRegion, Region, RegionFaults
from seatrial.profiler.tables.extension import MOST_REGIONS, ParallelRow, RegionRow
from seatrial.profiler.tables.header import bin_floor
from seatrial.profiler.tables.process_table import Module, ProcessTable

if TYPE_CHECKING:
    import numpy.typing as npt

_RECEIVE, _SEND, _COLLECTIVE, _WINDOW, _UNCLEAR = range(5)
_CLEARLY, _CLEARLY_LARGE = 0.5, 0.75
"""Waiting, if it is so much of the time of calls with small and with large messages; else it may be contention."""
_COLUMN = {WaitKind.RECEIVE: _RECEIVE, WaitKind.SEND: _SEND, WaitKind.COLLECTIVE: _COLLECTIVE, WaitKind.WINDOW: _WINDOW}
_STARTS_RECEIVE = re.compile(r"MPI_(Im?recv|Recv_init|Iprobe|Improbe|Isendrecv\w*)(_c)?")
_STARTS_SEND = re.compile(r"MPI_(I[sbr]?send|[SBR]?send_init|Send_init|Isendrecv\w*)(_c)?")
_STARTS_COLLECTIVE = re.compile(
    r"MPI_(I(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|allreduce|reduce\w*|exscan|scan|neighbor_\w+)"
    r"|(Barrier|Bcast|Gatherv?|Scatterv?|Allgatherv?|Alltoall[vw]?|Allreduce|Reduce\w*|Exscan|Scan|Neighbor_\w+)_init)"
    r"(_c)?"
)


def rank_waits(rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str], processes: int) -> list[RankWaits]:
    """What each process spent in calls beyond the prompt ones of the same function and size; where waiting was
    measured, its share of all such calls.

    A wait for requests counts as one for a message if it received bytes, or if the process only starts receives; else
    for the receiver if the process starts sends, and for all ranks if it starts collectives only.
    """
    waits = np.zeros((_UNCLEAR + 1, processes))
    if not len(rows.call):
        return [RankWaits()] * processes
    number = {name: place for place, name in enumerate(names, 1)}
    known = {(number[one.call], one.size_B): one for one in sizes}
    receives, sends, collects = (
        _that_call(rows, names, which, processes) for which in (_STARTS_RECEIVE, _STARTS_SEND, _STARTS_COLLECTIVE)
    )
    of_empty = np.where(collects, _COLLECTIVE, np.where(receives & ~sends, _RECEIVE, _SEND))
    of_poll = np.where(receives, _RECEIVE, np.where(collects, _COLLECTIVE, _SEND))
    groups = grouped(rows)
    for first, end in zip(groups.starts[:-1].tolist(), groups.starts[1:].tolist(), strict=True):
        name = names[int(groups.call[first]) - 1]
        kind = WaitKind.COLLECTIVE if name == "MPI_Finalize" else wait_kind(name)
        one = known.get((int(groups.call[first]), bin_floor(int(groups.bin[first]))))
        if kind is None or one is None or (is_poll(name) and one.bound is not Bound.WAITING):
            continue
        if is_call_rate(one.count, one.time_s) and not is_poll(name):
            continue
        if one.waiting_s == 0:
            continue
        process, operated_s = groups.process[first:end], groups.operated_s[first:end]
        time_s = np.maximum(0.0, groups.time_s[first:end] - operated_s)
        if one.measured is None:
            prompt_s = float(time_s.min()) if name == "MPI_Finalize" else one.prompt_s
            waited = np.maximum(0.0, time_s - groups.count[first:end] * prompt_s)
        else:
            waited = np.minimum(time_s, (time_s + operated_s) * one.measured.share)
        column = np.full(len(process), _COLUMN.get(kind, _RECEIVE))
        clearly = _CLEARLY if one.size_B < HALF_PERFORMANCE_B else _CLEARLY_LARGE
        if one.measured is None and one.waiting_s < clearly * (one.time_s - one.operated_s) and name != "MPI_Finalize":
            column = np.full(len(process), _UNCLEAR)
        elif kind is WaitKind.POLL:
            column = of_poll[process]
        elif kind is WaitKind.REQUESTS and one.largest_B == 0:
            column = of_empty[process]
        np.add.at(waits, (column, process), waited)
    return [RankWaits(*map(float, column)) for column in waits.T]


def without_skew(waits: Sequence[RankWaits], tables: Sequence[ProcessTable]) -> list[RankWaits]:
    """The same without waiting for ranks of the same host that left MPI_Init later, which is startup: each rank
    waits for the last one once, where it waits most."""
    last_s: dict[str, float] = {}
    begun = [None if one.initialized_s is None else one.loaded_at_s + one.initialized_s for one in tables]
    for table, at_s in zip(tables, begun, strict=True):
        if at_s is not None:
            last_s[table.host] = max(last_s.get(table.host, at_s), at_s)
    left: list[RankWaits] = []
    for one, table, at_s in zip(waits, tables, begun, strict=True):
        kinds = {kind: getattr(one, kind) for kind in ("receive_s", "send_s", "collective_s", "window_s")}
        most = max(kinds, key=kinds.__getitem__)
        skew_s = 0.0 if at_s is None else last_s[table.host] - at_s
        left.append(replace(one, **{most: max(0.0, kinds[most] - skew_s)}))
    return left


def without_operations(waits: Sequence[RankWaits], operated_s: Sequence[float]) -> list[RankWaits]:
    """The same without so many seconds (n,) in operations of the program: those applied while requests complete."""
    left: list[RankWaits] = []
    for one, own_s in zip(waits, operated_s, strict=True):
        part = max(0.0, 1.0 - own_s / one.all_s) if one.all_s > 0 else 0.0
        left.append(RankWaits(*(part * value for value in astuple(one))))
    return left


def _that_call(rows: Rows, names: Sequence[str], which: re.Pattern[str], processes: int) -> npt.NDArray[np.bool_]:
    """(processes,): whether each calls one of these functions."""
    chosen = [place for place, name in enumerate(names, 1) if which.fullmatch(name)]
    found = np.zeros(processes, bool)
    found[rows.process[np.isin(rows.call, chosen)]] = True
    return found


_NUMBERS = MOST_REGIONS + 1


def merged_regions(
    tables: Sequence[ProcessTable], rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str]
) -> tuple[Region, ...]:
    """The regions by wall time, longest first."""
    if not any(table.extension is not None and table.extension.regions.rows for table in tables):
        return ()
    waits = _waits(rows, sizes, names, len(tables))
    found: dict[tuple[str, ...], list[RankRegion]] = {}
    for place, table in enumerate(tables):
        regions = () if table.extension is None else table.extension.regions.rows
        own = [float(waits[place, number]) for number in range(1, len(regions) + 1)]
        for number in reversed(range(len(regions))):  # inner regions come later than those around them
            parent = regions[number].parent
            if parent is not None:
                own[parent] += own[number]
        paths = _paths(regions)
        for path, row, waiting_s in zip(paths, regions, own, strict=True):
            in_rank = RankRegion(
                rank=table.rank or 0,
                count=row.begun,
                wall_s=row.ticks / table.ticks_per_s,
                mpi_s=min(row.mpi_ticks, row.ticks) / table.ticks_per_s,
                cpu_s=row.cpu_ns / 1e9,
                waiting_s=waiting_s,
                unended=row.begun - row.ended,
            )
            found.setdefault(path, []).append(in_rank)
    made = [Region(path, tuple(ranks)) for path, ranks in found.items()]
    return tuple(sorted(made, key=lambda one: (-one.wall_s, one.path)))


def _waits(rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str], processes: int) -> npt.NDArray[np.float64]:
    """(processes, region numbers): seconds waited in the calls of each innermost region; 0 is outside all."""
    key = rows.process * _NUMBERS + rows.region
    order = np.argsort(key, kind="stable")
    columns = {name: getattr(rows, name)[order] for name in Rows.__struct_fields__}
    by_region = replace(Rows(**columns), process=key[order])
    waits = rank_waits(by_region, sizes, names, processes * _NUMBERS)
    return np.array([one.all_s for one in waits]).reshape(processes, _NUMBERS)


def _paths(regions: Sequence[RegionRow]) -> list[tuple[str, ...]]:
    made: list[tuple[str, ...]] = []
    for row in regions:
        made.append((*(made[row.parent] if row.parent is not None else ()), row.name))
    return made


def region_faults(tables: Sequence[ProcessTable]) -> RegionFaults:
    """What is wrong with the regions of all ranks."""
    regions = [table.extension.regions for table in tables if table.extension is not None]
    counts = {name: sum(getattr(one, name) for one in regions) for name in ("lost", "unbegun", "crossed", "early")}
    return RegionFaults(**counts, stopped_s=sum(table.stopped_s for table in tables))


def rank_openmp(table: ProcessTable) -> RankOpenMp | None:
    """OpenMP in one rank, None if it was not requested."""
    openmp = None if table.extension is None else table.extension.openmp
    if openmp is None:
        return None
    rate = table.ticks_per_s
    return RankOpenMp(
        is_seen=openmp.runtimes > 0,
        threads=max((row.most_threads for row in openmp.rows), default=0),
        parallel_s=openmp.outer_ticks / rate,
        thread_s=sum(row.last_ticks for row in openmp.rows) / rate,
        end_wait_s=sum(_end_wait(row) for row in openmp.rows) / rate,
        barrier_s=sum(row.barrier_ticks for row in openmp.rows) / rate,
        lost=openmp.lost,
    )


def parallel_places(tables: Sequence[ProcessTable], resolve: Resolve) -> tuple[ParallelPlace, ...]:
    """The call sites of parallel regions, by the time that threads wait there."""
    openmp = [(table, None if table.extension is None else table.extension.openmp) for table in tables]
    rows = [(table, row.site, row) for table, own in openmp if own is not None for row in own.rows]
    made = [_merged(site, own) for site, own in _by_site(rows, resolve)]
    return tuple(sorted(made, key=lambda one: (-one.lost_s, -one.time_s, one.site.module, one.site.offset)))


def operations(tables: Sequence[ProcessTable], resolve: Resolve) -> tuple[Operation, ...]:
    """The reduction operations of the program by their time, each function once."""
    known = [(table, table.extension.operations.rows) for table in tables if table.extension is not None]
    # Symbols are looked up by return addresses, which are behind the call.
    rows = [(table, row.function and row.function + 1, row) for table, own in known for row in own]
    made = [
        Operation(
            site=replace(site, offset=max(0, site.offset - 1)),
            made=sum(row.made for _, row in own),
            count=sum(row.calls for _, row in own),
            time_s=sum(row.ticks / table.ticks_per_s for table, row in own),
        )
        for site, own in _by_site(rows, resolve)
    ]
    return tuple(sorted(made, key=lambda one: (-one.time_s, one.site.module, one.site.offset)))


_Row = TypeVar("_Row")


def _by_site(
    rows: Sequence[tuple[ProcessTable, int, _Row]], resolve: Resolve
) -> list[tuple[CallSite, list[tuple[ProcessTable, _Row]]]]:
    """(table, address, row) by file and offset, which agree across ranks."""
    found: dict[tuple[str, int], list[tuple[ProcessTable, _Row]]] = {}
    for table, address, row in rows:
        around = (one for one in table.modules if one.begin <= address < one.end)
        module = next(around, Module(address, address, 0, ""))  # in no mapped file
        path = module.path or (table.program if module.end > module.begin else "")
        found.setdefault((path, address - module.begin + module.offset), []).append((table, row))
    wanted: dict[str, list[int]] = {}
    for path, offset in found:
        if path:
            wanted.setdefault(path, []).append(offset)
    known = {path: resolve(path, sorted(offsets)) for path, offsets in wanted.items()}
    return [
        (CallSite("", path, offset, 0, 0.0, 0, len({t.rank for t, _ in own}), known.get(path, {}).get(offset, ())), own)
        for (path, offset), own in found.items()
    ]


def _merged(site: CallSite, rows: Sequence[tuple[ProcessTable, ParallelRow]]) -> ParallelPlace:
    def summed_s(ticks_of: Callable[[ParallelRow], float]) -> float:
        return sum(ticks_of(row) / table.ticks_per_s for table, row in rows)

    return ParallelPlace(
        site=site,
        threads=max(row.most_threads for _, row in rows),
        count=sum(row.count for _, row in rows),
        time_s=summed_s(attrgetter("ticks")),
        thread_s=summed_s(attrgetter("last_ticks")),
        end_wait_s=summed_s(_end_wait),
        barrier_s=summed_s(attrgetter("barrier_ticks")),
        lost_s=summed_s(_lost),
    )


def _end_wait(row: ParallelRow) -> int:
    return max(0, row.last_ticks - row.busy_ticks)


def _lost(row: ParallelRow) -> float:
    """Ticks that equal shares of the work would save: the last thread over the mean of its team."""
    threads = row.arrived / row.count
    return _end_wait(row) / threads if threads > 0 else 0.0
