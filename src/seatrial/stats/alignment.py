"""Aligns the curve of a power meter with the phases of a program, by the edges of its load. The meter's clock, time
zone and delay are unknown.

An edge is where the medians of the three values before and after it differ by more than the noise explains. With t the
time of the first value beyond the middle of the step, and d the interval: if values are of one moment, the step was
between t - d and t; if they are averages of the interval, between t - 3/2 d and t - d/2. Which of them is unknown, so
an edge is at t - 3/4 d, to 3/4 d; and the offset of the clocks to that and half of what the edges disagree by.

There must be one offset at which each phase starts with an edge upwards and ends with one downwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from seatrial.model.frozen import Frozen
from seatrial.model.spelling import count, show

_BESIDE = 3
"""Values on each side of an edge."""
_FEWEST = 4 * _BESIDE
_NOISE = 6.0
_LEAST_SHARE = 0.05
"""The least height of an edge, as a share of the range of the curve."""
_TOLERANCE = 2.0
"""By how many intervals edges of one offset may disagree, one for each end."""
_UNSURE = 0.75
_MAD = 0.6745 * 2**0.5
_MOST_EDGES = 20_000


class Edge(Frozen):
    """A step of the power: when, in seconds on the clock of the meter, and by how many W."""

    at_s: float
    step_W: float


class Alignment(Frozen):
    """What to add to a time of the program to get that of the meter, in seconds, and its error (half-width)."""

    offset_s: float
    error_s: float


def edges(at_s: Sequence[float], watts: Sequence[float]) -> list[Edge]:
    """The edges of a curve, whose times rise strictly."""
    steps = [0.0] * len(watts)
    for k in range(_BESIDE, len(watts) - _BESIDE + 1):
        steps[k] = median(watts[k : k + _BESIDE]) - median(watts[k - _BESIDE : k])
    changes = sorted(abs(later - earlier) for earlier, later in pairwise(watts))
    noise = median(changes) / _MAD if changes else 0.0
    least = max(_NOISE * noise, _LEAST_SHARE * (max(watts) - min(watts))) if watts else 0.0
    found = list[tuple[float, int, float]]()
    for k, step in enumerate(steps):
        beside = steps[max(0, k - _BESIDE + 1) : k + _BESIDE]
        is_highest = abs(step) == max(abs(one) for one in beside if one * step >= 0)
        if step and abs(step) > least and is_highest and (not found or at_s[k] - found[-1][0] > 0):
            position = _crossing(watts, k, step)
            if not found or position - found[-1][1] >= _BESIDE - 1 or found[-1][2] * step < 0:
                found.append((at_s[k], position, step))
    return [Edge(at_s[k] - _UNSURE * (at_s[k] - at_s[k - 1]), step) for _, k, step in found]


def _crossing(watts: Sequence[float], k: int, step: float) -> int:
    """The value that is the first one on the other side of the middle of the edge at `k`."""
    before = median(watts[k - _BESIDE : k])
    middle = before + step / 2
    near = range(max(1, k - _BESIDE + 1), min(len(watts), k + _BESIDE))
    return next((j for j in near if (watts[j] - middle) * step >= 0), k)


def aligned(
    at_s: Sequence[float], watts: Sequence[float], phases: Sequence[tuple[float, float]]
) -> tuple[Alignment | None, str]:
    """The offset at which the phases (start, end; on the clock of the program) are in the curve; or None, and why."""
    if len(at_s) < _FEWEST:
        return None, f"the meter has {count(len(at_s), 'value')}: too few for an edge"
    interval_s = median(later - earlier for earlier, later in pairwise(at_s))
    found = edges(at_s, watts)
    if len(found) > _MOST_EDGES:
        return None, "the meter's curve has no clear edges: it steps all the time"
    ups = [one.at_s for one in found if one.step_W > 0]
    downs = [one.at_s for one in found if one.step_W < 0]
    tolerance_s = _TOLERANCE * interval_s
    offsets = []
    for start in ups:
        moved = [(one + start - phases[0][0], other + start - phases[0][0]) for one, other in phases]
        ends = [near for one, other in moved for near in (_near(ups, one), _near(downs, other))]
        wanted = [at for both in moved for at in both]
        if None not in ends:
            apart = [(near or 0.0) - at for near, at in zip(ends, wanted, strict=True)]
            if max(map(abs, apart)) <= tolerance_s:
                offsets.append((start - phases[0][0] + fmean(apart), max(apart) - min(apart)))
    return _only(offsets, interval_s, phases, len(found))


def _only(
    offsets: Sequence[tuple[float, float]], interval_s: float, phases: Sequence[tuple[float, float]], n_edges: int
) -> tuple[Alignment | None, str]:
    load = "the load" if len(phases) == 1 else f"the {len(phases)} phases of load"
    length = show(phases[-1][1] - phases[0][0], "s")
    if not offsets:
        seen = f"{count(n_edges, 'edge')}" if n_edges else "no clear edge"
        return None, f"{load} of {length} was not found in the meter's curve, which has {seen}"
    first, apart_s = offsets[0]
    if offsets[-1][0] - first > 2 * _TOLERANCE * interval_s:
        return None, f"{load} of {length} matches the meter's curve at {len(offsets)} times: which is unclear"
    best, apart_s = min(offsets, key=lambda one: one[1])
    return Alignment(best, _UNSURE * interval_s + apart_s / 2), ""


def _near(times: Sequence[float], at_s: float) -> float | None:
    position = bisect_left(times, at_s)
    beside = times[max(0, position - 1) : position + 1]
    return min(beside, key=lambda one: abs(one - at_s), default=None)
