"""The share of MPI over time: the bins of all threads on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from seatrial.profiler.cpu import SliceDifferences
from seatrial.profiler.profile import Lane, OverTime
from seatrial.profiler.tables.header import BINS_OVER_TIME
from seatrial.profiler.tables.process_table import ProcessTable

if TYPE_CHECKING:
    import numpy.typing as npt

    Real = npt.NDArray[np.float64]

MOST_BINS = 120
MOST_LANES = 48
_ENOUGH_OF_A_BIN = 0.5  # Below this part of a bin, a rank has no share in that bin.


def over_time(tables: Sequence[ProcessTable]) -> OverTime | None:
    """The share of MPI over time; None if no rank has any run time. The clocks of all hosts are assumed to agree."""
    ran = [table for table in tables if table.wall_s > 0 and table.threads]
    if not ran:
        return None
    start = np.array([table.loaded_at_s for table in ran])
    start -= start.min()
    end = start + np.array([table.wall_s for table in ran])
    widest = max(thread.bin_ticks / table.ticks_per_s for table in ran for thread in table.threads)
    width = max(float(end.max()) / MOST_BINS, widest)
    number = max(1, int(np.ceil(float(end.max()) / width - 1e-9)))
    edges = np.linspace(0.0, number * width, number + 1)
    inside = np.clip(np.minimum(end[:, None], edges[1:]) - np.maximum(start[:, None], edges[:-1]), 0.0, None)
    mpi = _mpi_in_bins(ran, start, edges)
    share = np.full(inside.shape, np.nan)
    # A thread's bin may extend beyond the rank's last call: limit the share to the number of threads.
    threads = np.array([max(1, len(table.threads)) for table in ran])[:, None]
    np.divide(mpi, inside, out=share, where=inside >= _ENOUGH_OF_A_BIN * width)
    share = np.minimum(share, threads)
    return OverTime(
        width_s=width,
        mpi_s=tuple(mpi.sum(axis=0).tolist()),
        wall_s=tuple(inside.sum(axis=0).tolist()),
        least=_ends(share, np.fmin),
        most=_ends(share, np.fmax),
        lanes=_lanes(ran, mpi, inside),
    )


def slice_differences(tables: Sequence[ProcessTable]) -> SliceDifferences | None:
    """How ranks differ in slices as short as they were recorded, from when all had left MPI_Init until the first one
    ended; None if that is less than two slices, or if several threads of a rank call MPI."""
    if len(tables) < 2 or any(len(table.threads) != 1 or table.initialized_s is None for table in tables):
        return None
    start = np.array([table.loaded_at_s for table in tables])
    start -= start.min()
    width = max(table.threads[0].bin_ticks / table.ticks_per_s for table in tables)
    begin = max(float(at) + (table.initialized_s or 0.0) for at, table in zip(start, tables, strict=True))
    end = min(float(at) + table.wall_s for at, table in zip(start, tables, strict=True))
    slices = int((end - begin) / width) if width > 0 else 0
    if not 2 <= slices <= BINS_OVER_TIME:
        return None
    edges: Real = np.linspace(begin, begin + slices * width, slices + 1)
    mpi = _mpi_in_bins(tables, start, edges)
    outside = np.clip(width - mpi, 0.0, width)
    return SliceDifferences(width, float((outside.max(axis=0) - outside).sum()))


def _mpi_in_bins(tables: Sequence[ProcessTable], start: Real, edges: Real) -> Real:
    """(ranks, bins): seconds in MPI, summed over the threads of a rank.

    The time of a thread's bin is spread evenly over its width, which preserves the sum.
    """
    place = [k for k, table in enumerate(tables) for _ in table.threads]
    threads = [(table, thread) for table in tables for thread in table.threads]
    widths = np.array([max(thread.bin_ticks, 1) / table.ticks_per_s for table, thread in threads])
    spent = np.array([thread.mpi_ticks / table.ticks_per_s for table, thread in threads])
    _carry_back(spent, widths)
    total: Real = np.zeros((len(threads), BINS_OVER_TIME + 1))
    np.cumsum(spent, axis=1, out=total[:, 1:])
    at = np.arange(BINS_OVER_TIME + 1)
    made: Real = np.zeros((len(tables), len(edges) - 1))
    for row, rank in enumerate(place):
        made[rank] += np.diff(np.interp((edges - start[rank]) / widths[row], at, total[row]))
    return made


def _carry_back(spent: Real, widths: Real) -> None:
    """A call is counted in the bin where it ends: time beyond the width of the bin was spent in those before it."""
    for k in range(BINS_OVER_TIME - 1, 0, -1):
        excess = np.maximum(0.0, spent[:, k] - widths)
        if excess.any():
            spent[:, k] -= excess
            spent[:, k - 1] += excess


def _ends(share: Real, pick: np.ufunc) -> tuple[float | None, ...]:
    ends = pick.reduce(share, axis=0)
    return tuple(None if np.isnan(value) else float(value) for value in ends)


def _lanes(tables: Sequence[ProcessTable], mpi: Real, inside: Real) -> tuple[Lane, ...]:
    """Ranks in order, in groups of neighbours so that at most MOST_LANES result."""
    order = sorted(range(len(tables)), key=lambda k: tables[k].rank or 0)
    step = -(-len(order) // MOST_LANES)
    lanes = []
    for begin in range(0, len(order), step):
        group = order[begin : begin + step]
        ranks = [tables[k].rank or 0 for k in group]
        spent, ran = mpi[group].sum(axis=0).tolist(), inside[group].sum(axis=0).tolist()
        shares = tuple(min(1.0, s / r) if r > 0 else None for s, r in zip(spent, ran, strict=True))
        lanes.append(Lane(ranks[0], ranks[-1], shares))
    return tuple(lanes)
