"""Hardware counters of the ranks."""

from __future__ import annotations

from seatrial.profiler.counters import RankCounters
from seatrial.profiler.tables.extension import Counter, CounterKind
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
    flops = known.get(CounterKind.FP_ALL)
    if flops is None and len(fp) == len(_WIDTHS):
        flops = sum(width * count for width, count in fp.items())
    shares = [one.running_ns / one.enabled_ns for one in counters.list if one.error == 0 and one.running_ns > 0]
    return RankCounters(
        wall_s=table.cpu_use.wall_s,
        cycles=known.get(CounterKind.CYCLES),
        instructions=known.get(CounterKind.INSTRUCTIONS),
        cache_misses=known.get(CounterKind.CACHE_MISSES),
        memory_lines=known.get(CounterKind.LINES_FROM_MEMORY),
        fp_instructions=fp,
        flops=flops,
        least_share=min(shares, default=0.0),
        errors=tuple(sorted({one.error for one in counters.list if one.error})),
        paranoid=counters.paranoid,
        has_unit=counters.has_unit,
    )


def _scaled(one: Counter) -> float:
    """The count over the whole time, if the event counted for a part of it (perf_event_open(2), time_running)."""
    return one.value * (one.enabled_ns / one.running_ns)
