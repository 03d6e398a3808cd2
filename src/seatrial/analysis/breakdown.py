"""Which calls and parts explain the difference between two sides, from the records of probes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, variance
from typing import Any

from seatrial.analysis.measured import SideExperiment
from seatrial.model.breakdown import COMPUTING, OTHER_CALLS, Breakdown, Moved, Part
from seatrial.stats.holm import holm
from seatrial.stats.student import student_tail

MOST_PARTS = 12
"""Parts shown individually; the rest are combined."""

_FEWEST = 3
_COUNTERS = {
    "asked_read_B": "read, as requested by the program",
    "asked_written_B": "written, as requested by the program",
    "device_read_B": "read from devices",
    "device_written_B": "written to devices",
}
_Key = tuple[str, int | None]
_Repeat = dict[_Key, tuple[float, float]]
"""The time of one repeat: part -> (seconds, calls) per rank."""

_WHOLE: _Key = ("wall", None)


def breakdowns(pairs: Iterable[tuple[SideExperiment, SideExperiment]]) -> tuple[Breakdown, ...]:
    """The breakdown of each pair with records of probes."""
    return tuple(found for baseline, candidate in pairs if (found := breakdown(baseline, candidate)) is not None)


def breakdown(baseline: SideExperiment, candidate: SideExperiment) -> Breakdown | None:
    """The breakdown of a pair; None if a side has no records of probes."""
    profiles = [_repeats(side) for side in (baseline, candidate)]
    moved = _moved(baseline, candidate)
    sides = [repeats for repeats, _ in profiles]
    has_mpi = all(sides)
    if not has_mpi and not moved:
        return None
    first, second = baseline.result.experiment, candidate.result.experiment
    shared = {n: v for n, v in first.parameters.items() if second.parameters.get(n) == v}
    whole, parts = _parts(sides) if has_mpi else (None, [])
    return Breakdown(
        benchmark=first.benchmark,
        parameters=shared,
        baseline=baseline.name,
        candidate=candidate.name,
        whole=whole,
        parts=tuple(parts),
        moved=tuple(moved),
        repeats=(len(sides[0]), len(sides[1])),
        incomplete=sum(number for _, number in profiles),
    )


def _seen(side: SideExperiment, probe: str) -> list[Mapping[str, Any]]:
    """The records of a probe for the repeats that succeeded."""
    records = side.contents.records.get(side.result.id, ())
    return [
        record.seen[probe] for record in records if record.outcome.is_ok and isinstance(record.seen.get(probe), dict)
    ]


def _repeats(side: SideExperiment) -> tuple[list[_Repeat], int]:
    """The repeats with complete profiles, and the number of others."""
    found: list[_Repeat] = []
    seen = _seen(side, "mpi")
    for profile in seen:
        ranks = profile["tables"]
        if not profile["complete"] or ranks != profile["ranks"]:
            continue
        parts: _Repeat = {(call, size): (s / ranks, n / ranks) for call, size, n, _, s in profile["calls"]}
        parts[_WHOLE] = (profile["wall_s"] / ranks, 0.0)
        parts[COMPUTING, None] = (max(0.0, profile["wall_s"] - profile["mpi_s"]) / ranks, 0.0)
        found.append(parts)
    return found, len(seen) - len(found)


def _parts(sides: Sequence[Sequence[_Repeat]]) -> tuple[Part, list[Part]]:
    """The whole, and its parts by the difference between the sides."""
    keys = dict.fromkeys(key for side in sides for repeat in side for key in repeat)
    made = {key: _part(sides, [key], key) for key in keys}
    whole = made.pop(_WHOLE)
    ordered = sorted(made, key=lambda key: -abs(made[key].difference_s))
    shown = [made[key] for key in ordered[:MOST_PARTS]]
    if ordered[MOST_PARTS:]:
        shown.append(_part(sides, ordered[MOST_PARTS:], (OTHER_CALLS, None)))
    tests = [_p_value([_seconds(side, keys_of) for side in sides]) for keys_of in _keys_of(ordered)]
    adjusted = holm(tests)
    return whole, [replace(part, p_value=p) for part, p in zip(shown, adjusted, strict=True)]


def _keys_of(ordered: Sequence[_Key]) -> list[list[_Key]]:
    alone = [[key] for key in ordered[:MOST_PARTS]]
    return [*alone, list(ordered[MOST_PARTS:])] if ordered[MOST_PARTS:] else alone


def _seconds(side: Sequence[_Repeat], keys: Sequence[_Key]) -> list[float]:
    return [sum(repeat.get(key, (0.0, 0.0))[0] for key in keys) for repeat in side]


def _part(sides: Sequence[Sequence[_Repeat]], keys: Sequence[_Key], named: _Key) -> Part:
    seconds = [fmean(_seconds(side, keys)) for side in sides]
    counts = [fmean(sum(repeat.get(key, (0.0, 0.0))[1] for key in keys) for repeat in side) for side in sides]
    return Part(named[0], named[1], seconds[0], seconds[1], counts[0], counts[1])


def _p_value(sides: Sequence[Sequence[float]]) -> float | None:
    """Two-sided p-value for equal means with unequal variances (B. L. Welch, Biometrika 34, 1947)."""
    if min(map(len, sides)) < _FEWEST:
        return None
    shares = [variance(side) / len(side) for side in sides]
    difference = abs(fmean(sides[1]) - fmean(sides[0]))
    spread = sum(shares)
    if spread <= 0:
        return 1.0 if difference == 0 else 0.0
    freedom = spread**2 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, sides, strict=True))
    return min(1.0, 2 * student_tail(difference / math.sqrt(spread), freedom))


def _moved(baseline: SideExperiment, candidate: SideExperiment) -> list[Moved]:
    sides = [_seen(side, "io") for side in (baseline, candidate)]
    if not all(sides):
        return []
    return [
        Moved(words, fmean(one[name] for one in sides[0]), fmean(one[name] for one in sides[1]))
        for name, words in _COUNTERS.items()
    ]
