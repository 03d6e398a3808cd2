"""The circumstances of all repeats of a side: host, load, CPU time of others, and time of day."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.fairness.side import (
    Kind,
    Noticed,
    SideFacts,
    clearly_apart,
    clearly_unlike,
    contrast,
    counted,
    share_below,
    tally,
)
from seatrial.diagnosis.disturbance.signals import Signals, signals
from seatrial.model.spelling import count, show_percent

_LOAD_APART = 0.5
"""Running and waiting processes: half a process takes a quarter of two cores."""
_STEAL_APART = 0.01
_OTHERS_APART = 0.05
_WAITING_APART = 0.05
_GAP_S = 600.0
"""With too few repeats to detect interleaving, a gap this long rules it out."""
_APART = 0.95


def circumstance_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """Hosts as reported by the programs, load before the repeats, CPU time taken by the hypervisor and by other
    processes, and the time of day.

    Load and CPU time always vary: they count as a difference from 6 repeats on each side, if the medians differ by half
    a process, one percent (hypervisor) or five percent (other processes) of CPU time, and 95 % of all pairs of repeats
    differ in the same direction. So do waiting for a CPU or for memory, time stopped by a quota, and blocked time, from
    five percent on. Limits on I/O and the file system are compared as they are.
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
    for kind, share in _WAITING.items():
        shares = [_shares(side, share) for side in (baseline, candidate)]
        if clearly_apart(shares[0], shares[1], _WAITING_APART):
            yield contrast(kind, "", *(_spread(values, show_percent) for values in shares))
    for kind, text in _WHERE.items():
        texts = [
            tally((record.seen for record in side.all_records() if "used" in record.seen), text)
            for side in (baseline, candidate)
        ]
        if clearly_unlike(*texts):
            yield contrast(kind, "", *map(counted, texts))
    yield from _times([sorted(record.t0 for record in side.all_records()) for side in (baseline, candidate)])


def _of_program(share: Callable[[Signals], float | None]) -> Callable[[Mapping[str, Any]], float | None]:
    """A share of a repeat's time, however short the repeat is."""

    def of(seen: Mapping[str, Any]) -> float | None:
        known = signals([seen], least_s=0.0)
        return None if known is None or known.wall_s <= 0 else share(known)

    return of


def _throttled(known: Signals) -> float | None:
    return 0.0 if known.quota is None else min(1.0, known.quota.throttled_s / known.wall_s)


def _short_of_memory(known: Signals) -> float | None:
    stalled_s = (known.pressure_s or {}).get("memory_some_s")
    return None if stalled_s is None else min(1.0, stalled_s / known.wall_s)


_WAITING = {
    Kind.DELAY: _of_program(lambda known: known.delay_share),
    Kind.THROTTLED: _of_program(_throttled),
    Kind.MEMORY: _of_program(_short_of_memory),
    Kind.BLOCKED: _of_program(lambda known: known.blocked_share),
}


def _io_limits(seen: Mapping[str, Any]) -> str:
    limits = [
        f"{limit['direction']} {limit['limit']:g} {limit['unit']} on {limit['device']}"
        for limit in seen.get("io_limits") or ()
    ]
    return ", ".join(limits) or "none"


def _file_system(seen: Mapping[str, Any]) -> str:
    place = seen.get("file_system")
    if not isinstance(place, Mapping):
        return "not known"
    return " ".join([f"{place['type']} at {place['mount_point']}", *place["options"]])


_WHERE = {Kind.IO_LIMIT: _io_limits, Kind.FILE_SYSTEM: _file_system}


def _shares(side: SideFacts, share: Callable[[Mapping[str, Any]], float | None]) -> list[float]:
    return [value for record in side.all_records() if (value := share(record.seen)) is not None]


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
