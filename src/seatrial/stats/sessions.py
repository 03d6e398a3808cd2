"""Sides that were measured apart: the session is the unit, not the repeat.

Between two sessions (two runs, on the same machine or another) a machine changes: its temperature, its pages, what else
runs. With 1 % between sessions and 0.5 % within them, the interval of 24 repeats of each side excludes the ratio 1 in
83 % of comparisons of a program with itself, and more repeats make it worse. So repeats of one session count as one
value, and a verdict needs sessions of both sides in alternation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

LEAST_SESSIONS = 6
"""Alternating sessions of each side that a verdict needs: as blocks, since each pair of sessions is one."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A value with its start in seconds, and its place among the repeats of the run that made it."""

    t0: float
    order: int
    value: float


def alternating_sessions(baseline: Sequence[Timed], candidate: Sequence[Timed]) -> list[tuple[float, float]]:
    """The medians of the sessions of both sides, in pairs, in order of time.

    A session is a run, or several of one side without one of the other in between. If one side has one more, its last
    session is in no pair.
    """
    runs = sorted(
        (run[0].t0, side, [timed.value for timed in run])
        for side, values in enumerate((baseline, candidate))
        for run in _runs(values)
    )
    sessions: list[tuple[int, list[float]]] = []
    for _, side, values in runs:
        if sessions and sessions[-1][0] == side:
            sessions[-1][1].extend(values)
        else:
            sessions.append((side, list(values)))
    medians = [[median(values) for own, values in sessions if own == side] for side in (0, 1)]
    return list(zip(*medians, strict=False))


def _runs(values: Sequence[Timed]) -> list[list[Timed]]:
    """The repeats of each run: within a run, the order rises."""
    runs: list[list[Timed]] = []
    for timed in sorted(values, key=lambda timed: timed.t0):
        if runs and timed.order > runs[-1][-1].order:
            runs[-1].append(timed)
        else:
            runs.append([timed])
    return runs
