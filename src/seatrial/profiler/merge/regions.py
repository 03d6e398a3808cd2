"""The regions of all ranks, merged by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.profiler.merge.rank_waits import rank_waits
from seatrial.profiler.merge.rows import Rows
from seatrial.profiler.profile import SizeTotals
from seatrial.profiler.regions import RankRegion, Region, RegionFaults
from seatrial.profiler.tables.extension import MOST_REGIONS, RegionRow
from seatrial.profiler.tables.process_table import ProcessTable

if TYPE_CHECKING:
    import numpy as np
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
            found.setdefault(path, []).append(_of_rank(table, row, waiting_s))
    made = [Region(path, tuple(ranks)) for path, ranks in found.items()]
    return tuple(sorted(made, key=lambda one: (-one.wall_s, one.path)))


def _waits(rows: Rows, sizes: Sequence[SizeTotals], names: Sequence[str], processes: int) -> npt.NDArray[np.float64]:
    """(processes, region numbers): seconds waited in the calls of each innermost region; 0 is outside all."""
    import numpy as np

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


def _of_rank(table: ProcessTable, row: RegionRow, waiting_s: float) -> RankRegion:
    return RankRegion(
        rank=table.rank or 0,
        count=row.begun,
        wall_s=row.ticks / table.ticks_per_s,
        mpi_s=min(row.mpi_ticks, row.ticks) / table.ticks_per_s,
        cpu_s=row.cpu_ns / 1e9,
        waiting_s=waiting_s,
        unended=row.begun - row.ended,
    )


def region_faults(tables: Sequence[ProcessTable]) -> RegionFaults:
    """What is wrong with the regions of all ranks."""
    regions = [table.extension.regions for table in tables if table.extension is not None]
    return RegionFaults(
        lost=sum(one.lost for one in regions),
        unbegun=sum(one.unbegun for one in regions),
        crossed=sum(one.crossed for one in regions),
        early=sum(one.early for one in regions),
        stopped_s=sum(table.stopped_s for table in tables),
    )
