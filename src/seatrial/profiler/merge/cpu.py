"""CPU time and hardware counters of the ranks and of their nodes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import nan

from seatrial.profiler.cpu import NOT_COUNTED, CpuSlices, MpiCounters, RankCounters
from seatrial.profiler.profile import NodeCpu, RankCpu
from seatrial.profiler.tables.extension import Counter, Counters, CpuCounterKind, InMpi
from seatrial.profiler.tables.header import SampledCpu
from seatrial.profiler.tables.process_table import ProcessTable


def rank_cpu(table: ProcessTable, start_s: float | None = None) -> RankCpu | None:
    """What the kernel counted for a rank: up to its last sample, if it did not reach the end of MPI; None if there is
    none. With slices of time if `start_s` is given: when the first rank was loaded, in seconds since the epoch."""
    use, right = _use(table), table.cpu_right
    if use is None or use.wall_s <= 0:
        return None
    kernel = None if table.extension is None else table.extension.kernel
    return RankCpu(
        **use.counted(),
        mask=() if right is None else right.mask,
        quota=None if right is None else right.quota,
        slices=None if start_s is None else _slices(table, start_s),
        system_s=None if kernel is None else _seconds(kernel.system_ns),
        children_s=None if kernel is None else _seconds(kernel.children_ns),
        loops=0 if kernel is None else kernel.loops,
        loop_s=kernel.loop_ns / kernel.loops / 1e9 if kernel is not None and kernel.loops else None,
        least_loop_s=0.0 if kernel is None else kernel.least_loop_ns / 1e9,
    )


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9


def _use(table: ProcessTable) -> SampledCpu | None:
    """Without switches, page faults and throttling if the rank was killed: its samples over time do not have them."""
    samples = () if table.extension is None else table.extension.samples.list
    if table.cpu_use is not None or len(samples) < 2:
        return table.cpu_use
    first, last = samples[0], samples[-1]
    return SampledCpu(
        wall_s=(last.at - first.at) / table.ticks_per_s,
        cpu_s=_growth_s(first.cpu_ns, last.cpu_ns),
        delay_s=_growth_s(first.delay_ns, last.delay_ns),
        throttled_s=None,
        throttled_share=None,
        **NOT_COUNTED,
        node_busy_s=_growth_s(first.busy_ns, last.busy_ns),
        node_steal_s=_growth_s(first.steal_ns, last.steal_ns),
    )


def _growth_s(before: int | None, after: int | None) -> float | None:
    return None if before is None or after is None or after < before else (after - before) / 1e9


def _slices(table: ProcessTable, start_s: float) -> CpuSlices | None:
    """None if there are less than two samples with CPU time."""
    samples = () if table.extension is None else table.extension.samples.list
    known = [one for one in samples if one.cpu_ns is not None and one.delay_ns is not None]
    if len(known) < 2:
        return None
    loaded_s = table.loaded_at_s - start_s
    at_s = array("d", [loaded_s + one.at / table.ticks_per_s for one in known])
    _, *counted = zip(*known, strict=True)
    return CpuSlices(at_s, *map(_grown, counted))


def _grown(values: Iterable[int | None]) -> array[float]:
    """Seconds since the first of these ns. Run delay shrinks when a thread ends: that is not growth."""
    column = array("d", [0.0])
    for before, after in pairwise(values):
        column.append(nan if before is None or after is None else column[-1] + max(0, after - before) / 1e9)
    return column


def node_cpus(tables: Sequence[ProcessTable]) -> tuple[NodeCpu, ...]:
    """The nodes whose ranks all have CPU time, in order of their first rank.

    A node's counters are those of its rank that ran longest.
    """
    by_host: dict[str, list[ProcessTable]] = {}
    for table in tables:
        by_host.setdefault(table.host, []).append(table)
    found = []
    for host, own in by_host.items():
        uses = [_use(table) for table in own]
        rights = [table.cpu_right for table in own if table.cpu_right is not None]
        known = [use for use in uses if use is not None and use.cpu_s is not None]
        if len(known) < len(own) or not rights:
            continue
        longest = max(known, key=lambda use: use.wall_s)
        if longest.node_busy_s is None or longest.node_steal_s is None or longest.wall_s <= 0:
            continue
        found.append(
            NodeCpu(
                host=host,
                online=max(right.online for right in rights),
                wall_s=longest.wall_s,
                busy_s=longest.node_busy_s,
                steal_s=longest.node_steal_s,
                ranks_s=sum(use.cpu_s for use in known if use.cpu_s is not None),
                children_s=sum(_children_s(table) for table in own),
            )
        )
    return tuple(found)


def _children_s(table: ProcessTable) -> float:
    return 0.0 if table.extension is None else (table.extension.kernel.children_ns or 0) / 1e9


_WIDTHS = {CpuCounterKind[f"FP_{width}"]: width for width in (1, 2, 4, 8, 16)}
_FIELDS = {
    "cycles": CpuCounterKind.CYCLES,
    "instructions": CpuCounterKind.INSTRUCTIONS,
    "cache_misses": CpuCounterKind.CACHE_MISSES,
    "memory_lines": CpuCounterKind.LINES_FROM_MEMORY,
}


def rank_counters(table: ProcessTable) -> RankCounters | None:
    """The counters of a rank, None if they were not requested, or the rank did not reach the end of MPI."""
    counters = None if table.extension is None else table.extension.counters
    if counters is None or table.cpu_use is None:
        return None
    ran = [one for one in counters.list if one.error == 0 and one.running_ns > 0]
    known = {one.kind: _scaled(one) for one in ran}
    return RankCounters(
        wall_s=table.cpu_use.wall_s,
        **{name: known.get(kind) for name, kind in _FIELDS.items()},
        fp_instructions={width: known[kind] for kind, width in _WIDTHS.items() if kind in known},
        flops=_flops(known),
        least_share=min((one.running_ns / one.enabled_ns for one in ran), default=0.0),
        errors=tuple(sorted({one.error for one in counters.list if one.error})),
        paranoid=counters.paranoid,
        has_unit=counters.has_unit,
        in_mpi=_in_mpi(table, counters),
    )


def _flops(known: Mapping[CpuCounterKind, float]) -> float | None:
    if CpuCounterKind.FP_ALL in known:
        return known[CpuCounterKind.FP_ALL]
    widths = {width: known[kind] for kind, width in _WIDTHS.items() if kind in known}
    return sum(width * count for width, count in widths.items()) if len(widths) == len(_WIDTHS) else None


def _in_mpi(table: ProcessTable, counters: Counters) -> MpiCounters | None:
    """None if several threads call MPI, since one is counted, and if no call was."""
    split = counters.split
    if len(table.threads) > 1 or not split.counted_ticks:
        return None
    share = split.counted_ticks / split.ticks
    known = {
        counter.kind: _scaled(one) / share
        for counter, one in zip(counters.list, split.in_mpi, strict=True)
        if counter.error == 0 and one.running_ns > 0
    }
    return MpiCounters(
        mpi_s=split.ticks / table.ticks_per_s,
        counted_share=share,
        **{name: known.get(kind) for name, kind in _FIELDS.items()},
        flops=_flops(known),
    )


def _scaled(one: Counter | InMpi) -> float:
    """The count over the whole time, if the event counted for a part of it (perf_event_open(2), time_running)."""
    return one.value * (one.enabled_ns / one.running_ns)
