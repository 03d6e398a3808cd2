"""The regions of all ranks, and OpenMP in them, merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from seatrial.profiler.call_site import CallSite, Resolve
from seatrial.profiler.merge.rank_waits import rank_waits
from seatrial.profiler.merge.rows import Rows
from seatrial.profiler.profile import SizeTotals
from seatrial.profiler.regions import ParallelPlace, RankOpenMp, RankRegion, Region, RegionFaults
from seatrial.profiler.tables.extension import MOST_REGIONS, ParallelRow, RegionRow
from seatrial.profiler.tables.process_table import Module, ProcessTable

if TYPE_CHECKING:
    import numpy.typing as npt

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
    """The places of parallel regions, by the time that threads wait there."""
    found: dict[tuple[str, int], list[tuple[ProcessTable, ParallelRow]]] = {}
    for table in tables:
        openmp = None if table.extension is None else table.extension.openmp
        for row in () if openmp is None else openmp.rows:
            around = (one for one in table.modules if one.begin <= row.site < one.end)
            module = next(around, Module(row.site, row.site, 0, ""))  # in no mapped file
            path = module.path or (table.program if module.end > module.begin else "")
            found.setdefault((path, row.site - module.begin + module.offset), []).append((table, row))
    wanted: dict[str, list[int]] = {}
    for path, offset in found:
        if path:
            wanted.setdefault(path, []).append(offset)
    known = {path: resolve(path, sorted(offsets)) for path, offsets in wanted.items()}
    made = []
    for (path, offset), rows in found.items():
        ranks, frames = len({table.rank for table, _ in rows}), known.get(path, {}).get(offset, ())
        made.append(_merged(CallSite("", path, offset, 0, 0.0, 0, ranks, frames), rows))
    return tuple(sorted(made, key=lambda one: (-one.lost_s, -one.time_s, one.site.module, one.site.offset)))


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
