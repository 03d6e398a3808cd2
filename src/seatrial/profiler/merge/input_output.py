"""Input and output of the ranks and nodes on the time axis of the profile."""

from __future__ import annotations

import os
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from seatrial.profiler.merge.over_time import MOST_BINS
from seatrial.profiler.profile_io import IoSeries, IoTotals, NodeIo, ProfileIo, RankIo
from seatrial.profiler.tables.io_samples import IoSamples, RankSamples
from seatrial.profiler.tables.process_table import ProcessTable

if TYPE_CHECKING:
    import numpy.typing as npt

    Real = npt.NDArray[np.float64]

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
