"""Hardware counters of the ranks."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.profiler.counters import MpiCounters, RankCounters
from seatrial.profiler.tables.extension import Counter, CounterKind, Counters, InMpi
from seatrial.profiler.tables.process_table import ProcessTable

_WIDTHS = {
    CounterKind.FP_1: 1,
    CounterKind.FP_2: 2,
    CounterKind.FP_4: 4,
    CounterKind.FP_8: 8,
    CounterKind.FP_16: 16,
}


def rank_counters(table: ProcessTable) -> RankCounters | None:
    """The counters of a rank, None if they were not requested, or the rank did not reach the end of MPI."""
    counters = None if table.extension is None else table.extension.counters
    if counters is None or table.cpu_use is None:
        return None
    known = {one.kind: _scaled(one) for one in counters.list if one.error == 0 and one.running_ns > 0}
    fp = {width: known[kind] for kind, width in _WIDTHS.items() if kind in known}
    shares = [one.running_ns / one.enabled_ns for one in counters.list if one.error == 0 and one.running_ns > 0]
    return RankCounters(
        wall_s=table.cpu_use.wall_s,
        cycles=known.get(CounterKind.CYCLES),
        instructions=known.get(CounterKind.INSTRUCTIONS),
        cache_misses=known.get(CounterKind.CACHE_MISSES),
        memory_lines=known.get(CounterKind.LINES_FROM_MEMORY),
        fp_instructions=fp,
        flops=_flops(known),
        least_share=min(shares, default=0.0),
        errors=tuple(sorted({one.error for one in counters.list if one.error})),
        paranoid=counters.paranoid,
        has_unit=counters.has_unit,
        in_mpi=_in_mpi(table, counters),
    )


def _flops(known: Mapping[CounterKind, float]) -> float | None:
    if CounterKind.FP_ALL in known:
        return known[CounterKind.FP_ALL]
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
        cycles=known.get(CounterKind.CYCLES),
        instructions=known.get(CounterKind.INSTRUCTIONS),
        cache_misses=known.get(CounterKind.CACHE_MISSES),
        memory_lines=known.get(CounterKind.LINES_FROM_MEMORY),
        flops=_flops(known),
    )


def _scaled(one: Counter | InMpi) -> float:
    """The count over the whole time, if the event counted for a part of it (perf_event_open(2), time_running)."""
    return one.value * (one.enabled_ns / one.running_ns)
