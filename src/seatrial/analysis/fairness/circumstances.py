"""The circumstances of all repeats of a side together: when they ran, and beside what."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from seatrial.analysis.fairness.noticed import Kind, Noticed, clearly_apart, contrast, share_below
from seatrial.analysis.fairness.side import SideFacts
from seatrial.model.spelling import count, show_percent

_LOAD_APART = 0.5
"""Processes that wait for a CPU, or have one: half of one takes a quarter of what two cores give."""
_STEAL_APART = 0.01
_GAP_S = 600.0
"""Two repeats alone cannot be called interleaved or not; so far apart they are not."""
_APART = 0.95


def circumstance_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """Hosts as the programs told them, load before the repeats, CPU time that the hypervisor took, and the time of day.

    Load and steal are never twice the same: they count as a difference from 6 repeats on each side, where the medians
    are half a process, or one per cent of CPU time, apart and 95 % of all pairs of repeats differ the same way.
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
    yield from _times([sorted(record.t0 for record in side.all_records()) for side in (baseline, candidate)])


def _numbers(side: SideFacts, key: str) -> list[float]:
    return [
        float(value)
        for record in side.all_records()
        if isinstance(value := record.seen.get(key), int | float) and not isinstance(value, bool)
    ]


def _spread(values: Sequence[float], spell: Callable[[float], str]) -> str:
    return f"median {spell(median(values))}, {spell(min(values))} to {spell(max(values))}"


def _times(times: Sequence[Sequence[float]]) -> Iterator[Noticed]:
    """Whether one side was measured after the other: what the machine did meanwhile is then part of the ratio."""
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
