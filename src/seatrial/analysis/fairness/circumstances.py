"""The circumstances of all repeats of a side: host, load, CPU time of others, and time of day."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from seatrial.analysis.fairness.noticed import Kind, Noticed, clearly_apart, contrast, share_below
from seatrial.analysis.fairness.side import SideFacts
from seatrial.model.spelling import count, show_percent

_LOAD_APART = 0.5
"""Running and waiting processes: half a process takes a quarter of two cores."""
_STEAL_APART = 0.01
_OTHERS_APART = 0.05
_GAP_S = 600.0
"""With too few repeats to detect interleaving, a gap this long rules it out."""
_APART = 0.95


def circumstance_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """Hosts as reported by the programs, load before the repeats, CPU time taken by the hypervisor and by other
    processes, and the time of day.

    Load and CPU time always vary: they count as a difference from 6 repeats on each side, if the medians differ by half
    a process, one percent (hypervisor) or five percent (other processes) of CPU time, and 95 % of all pairs of repeats
    differ in the same direction.
    """
    hosts = [
        Counter(str(record.seen["host"]) for record in side.all_records() if record.seen.get("host"))
        for side in (baseline, candidate)
    ]
    if all(hosts) and set(hosts[0]) != set(hosts[1]):
        yield contrast(Kind.HOST, "", *(", ".join(sorted(names)) for names in hosts))
    loads = [_numbers(side, "load_1m") for side in (baseline, candidate)]
    if clearly_apart(loads[0], loads[1], _LOAD_APART):
        yield contrast(Kind.LOAD, "", *(_spread(values, "{:.1f}".format) for values in loads))
    steals = [_numbers(side, "steal_share") for side in (baseline, candidate)]
    if clearly_apart(steals[0], steals[1], _STEAL_APART):
        yield contrast(Kind.STEAL, "", *(_spread(values, show_percent) for values in steals))
    others = [_numbers(side, "others_share") for side in (baseline, candidate)]
    if clearly_apart(others[0], others[1], _OTHERS_APART):
        yield contrast(Kind.OTHERS, "", *(_spread(values, show_percent) for values in others))
    yield from _times([sorted(record.t0 for record in side.all_records()) for side in (baseline, candidate)])


def _numbers(side: SideFacts, key: str) -> list[float]:
    return [
        float(value)
        for record in side.all_records()
        if isinstance(value := record.seen.get(key), int | float) and not isinstance(value, bool)
    ]


def _spread(values: Sequence[float], format_value: Callable[[float], str]) -> str:
    return f"median {format_value(median(values))}, {format_value(min(values))} to {format_value(max(values))}"


def _times(times: Sequence[Sequence[float]]) -> Iterator[Noticed]:
    """Whether one side was measured after the other: the ratio then includes any drift of the machine in between."""
    if not all(times):
        return
    first, second = times
    gap_s = max(first[0], second[0]) - min(first[-1], second[-1])
    below = share_below(first, second)
    enough = min(len(first), len(second)) >= 3
    if (enough and not 1 - _APART < below < _APART) or gap_s > _GAP_S:
        yield contrast(Kind.TIME, "", *(_when(side) for side in times))


def _when(times: Sequence[float]) -> str:
    start, end = (time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at)) for at in (times[0], times[-1]))
    span = f"{start} to {end[11:] if end[:10] == start[:10] else end} UTC" if start != end else f"{start} UTC"
    return f"{span} ({count(len(times), 'repeat')})"
