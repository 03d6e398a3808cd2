"""OpenMP in all ranks, merged by place."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.call_site import CallSite
from seatrial.profiler.merge.sites import Resolve
from seatrial.profiler.openmp import ParallelPlace, RankOpenMp
from seatrial.profiler.tables.extension import ParallelRow
from seatrial.profiler.tables.process_table import ProcessTable


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
            found.setdefault(_place(table, row.site), []).append((table, row))
    wanted: dict[str, list[int]] = {}
    for module, offset in found:
        if module:
            wanted.setdefault(module, []).append(offset)
    known = {module: resolve(module, sorted(offsets)) for module, offsets in wanted.items()}
    made = []
    for (module, offset), rows in found.items():
        site = CallSite("", module, offset, 0, 0.0, 0, len({table.rank for table, _ in rows}))
        frames = known.get(module, {}).get(offset, ())
        made.append(_merged(CallSite(site.call, module, offset, 0, 0.0, 0, site.ranks, frames), rows))
    return tuple(sorted(made, key=lambda one: (-one.lost_s, -one.time_s, one.site.module, one.site.offset)))


def _place(table: ProcessTable, site: int) -> tuple[str, int]:
    """(file, offset) of an address; ("", 0) if it is in no mapped file."""
    for module in table.modules:
        if module.begin <= site < module.end:
            return module.path or table.program, site - module.begin + module.offset
    return "", 0


def _merged(site: CallSite, rows: Sequence[tuple[ProcessTable, ParallelRow]]) -> ParallelPlace:
    def summed(value: float, table: ProcessTable) -> float:
        return value / table.ticks_per_s

    return ParallelPlace(
        site=site,
        threads=max(row.most_threads for _, row in rows),
        count=sum(row.count for _, row in rows),
        time_s=sum(summed(row.ticks, table) for table, row in rows),
        thread_s=sum(summed(row.last_ticks, table) for table, row in rows),
        end_wait_s=sum(summed(_end_wait(row), table) for table, row in rows),
        barrier_s=sum(summed(row.barrier_ticks, table) for table, row in rows),
        lost_s=sum(summed(_lost(row), table) for table, row in rows),
    )


def _end_wait(row: ParallelRow) -> int:
    return max(0, row.last_ticks - row.busy_ticks)


def _lost(row: ParallelRow) -> float:
    """Ticks that equal shares of the work would save: the last thread over the mean of its team."""
    threads = row.arrived / row.count
    return _end_wait(row) / threads if threads > 0 else 0.0
