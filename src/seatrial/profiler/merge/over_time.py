"""The share of MPI over time, and input and output: all threads, ranks and nodes on one time axis."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seatrial.profiler.cpu import SliceDifferences
from seatrial.profiler.profile import Lane, OverTime
from seatrial.profiler.profile_io import IoSeries, IoTotals, NodeIo, ProfileIo, RankIo
from seatrial.profiler.tables.header import BINS_OVER_TIME
from seatrial.profiler.tables.io_samples import IoSamples, RankSamples
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
    outside = np.clip(width - _mpi_in_bins(tables, start, edges), 0.0, width)
    all_inside_s = float(np.maximum(0.0, width - outside.sum(axis=0)).sum())
    return SliceDifferences(width, float((outside.max(axis=0) - outside).sum()), all_inside_s)


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


_SERIES = tuple(IoTotals.__struct_fields__.index(name) for name in IoSeries.__struct_fields__)
"""The columns of counters that are shown over time."""
_SAME_START_S = 1e-6
"""The times in a table and in samples are the same number of nanoseconds, rounded to floating point."""


def io_of(tables: Sequence[ProcessTable], samples: Sequence[IoSamples]) -> ProfileIo | None:
    """What the ranks of one world and their nodes read and wrote; None if it was not recorded.

    A rank's counters are read in MPI_Init, sampled by the collector, and read in MPI_Finalize; between two samples they
    are assumed to grow evenly. The clocks of all hosts are assumed to agree.
    """
    by_rank: dict[tuple[str, int], list[tuple[IoSamples, RankSamples]]] = {}
    for one in samples:
        for rank in one.ranks:
            by_rank.setdefault((one.host, rank.pid), []).append((one, rank))
    points = [_points(table, by_rank) for table in tables]
    if not any(len(at) or error for at, _, error in points):
        return None
    ran = [table for table in tables if table.wall_s > 0] or list(tables)
    start = min(table.loaded_at_s for table in ran)
    end = max(table.loaded_at_s + table.wall_s for table in ran) - start
    hosts = {table.host for table in tables}
    known = [one for one in samples if one.host in hosts and ((one.at_s >= start) & (one.at_s <= start + end)).any()]
    period_s = max((one.period_s for one in known), default=0.0)
    width = max(end / MOST_BINS, period_s) if period_s else 0.0
    bins = max(1, int(np.ceil(end / width - 1e-9))) if width else 0
    edges = start + np.linspace(0.0, bins * width, bins + 1)
    return ProfileIo(
        width_s=width,
        bins=bins,
        ranks=tuple(_rank(table, *point, edges) for table, point in zip(tables, points, strict=True)),
        nodes=tuple(_nodes(known, edges)) if bins else (),
    )


Points = tuple["Real", "Real", int]
"""Times (n,), counters (n, 7), and the errno if they could not be read."""


def _points(table: ProcessTable, by_rank: Mapping[tuple[str, int], Sequence[tuple[IoSamples, RankSamples]]]) -> Points:
    at: list[Real] = []
    counters: list[Real] = []
    error = table.io_error
    for sample in (table.io_first, table.io_last):
        if sample is not None:
            at.append(np.array([sample.at_s]))
            counters.append(np.array([sample[1:]], np.float64))
    for one, rank in by_rank.get((table.host, table.pid), ()):
        if abs(rank.loaded_at_s - table.loaded_at_s) > _SAME_START_S:
            continue
        error = error or rank.error
        is_known = ~np.isnan(rank.counters).any(axis=1)
        at.append(one.at_s[is_known])
        counters.append(rank.counters[is_known])
    if not at:
        return np.zeros(0), np.zeros((0, 7)), error
    times, rows = np.concatenate(at), np.concatenate(counters)
    order = np.argsort(times, kind="stable")
    return times[order], np.maximum.accumulate(rows[order], axis=0), error


def _rank(table: ProcessTable, at: Real, counters: Real, error: int, edges: Real) -> RankIo:
    rank = table.rank or 0
    if len(at) < 2:
        why = os.strerror(error) if error else "no sample was taken"
        return RankIo(rank, table.host, None, error=why)
    grown = dict(zip(IoTotals.__struct_fields__, map(int, counters[-1] - counters[0]), strict=False))
    first, loaded = table.io_first, table.io_loaded
    if first and loaded:
        grown |= {"start_read_B": first.read_B - loaded.read_B, "start_written_B": first.written_B - loaded.written_B}
    totals = IoTotals(**grown, is_to_end=table.io_last is not None)
    if len(edges) < 2:
        return RankIo(rank, table.host, totals)
    at = np.minimum(at, edges[-1])  # MPI_Finalize comes after the last bin, and its I/O belongs to it
    return RankIo(rank, table.host, totals, IoSeries(*(_in_bins(at, counters[:, k], edges) for k in _SERIES)))


def _in_bins(at: Real, counter: Real, edges: Real) -> array[float]:
    return array("d", np.diff(np.interp(edges, at, counter)).tolist())


def _nodes(samples: Sequence[IoSamples], edges: Real) -> list[NodeIo]:
    """Several collectors may have run on a node one after another: its counters continue."""
    made = []
    for host in sorted({one.host for one in samples}):
        own = [one for one in samples if one.host == host]
        at = np.concatenate([one.at_s for one in own])
        counters = np.concatenate([one.node for one in own])
        order = np.argsort(at, kind="stable")
        made.append(NodeIo(host, *(_of_node(at[order], counters[order, k], edges) for k in range(4))))
    return made


def _of_node(at: Real, counter: Real, edges: Real) -> array[float] | None:
    is_known = ~np.isnan(counter)
    if is_known.sum() < 2:
        return None
    return _in_bins(at[is_known], np.maximum.accumulate(counter[is_known]), edges)
