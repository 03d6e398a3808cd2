"""Sides that were measured apart: the session is the unit, not the repeat.

Between two sessions a machine changes: its temperature, its pages, what else
runs. With 1 % between sessions and 0.5 % within them, the interval of 24 repeats of each side excludes the ratio 1 in
83 % of comparisons of a program with itself, and more repeats make it worse. So repeats of one session count as one
value, and a verdict needs sessions of both sides in alternation.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from seatrial.model.frozen import Frozen

LEAST_SESSIONS = 6
"""Alternating sessions of each side that a verdict needs: as blocks, since each pair of sessions is one."""


class Timed(Frozen):
    """A value with its start in seconds, and its place among the repeats of the run that made it."""

    t0: float
    order: int
    value: float


def alternating_sessions(
    baseline: Sequence[Timed], candidate: Sequence[Timed], *, is_one_machine: bool
) -> list[tuple[float, float]]:
    """The medians of the sessions of both sides, in pairs, in order of time.

    On one machine, a session is a stretch of repeats of one side without one of the other in between: a run that
    measures the sides in turns makes many. Two machines may be measured at the same time; there, a session is a run, or
    several of one side in a row. If one side has one more, its last session is in no pair.
    """
    parts = sorted(
        (part[0].t0, side, [timed.value for timed in part])
        for side, values in enumerate((baseline, candidate))
        for part in ([[timed] for timed in values] if is_one_machine else _runs(values))
    )
    sessions: list[tuple[int, list[float]]] = []
    for _, side, own in parts:
        if sessions and sessions[-1][0] == side:
            sessions[-1][1].extend(own)
        else:
            sessions.append((side, list(own)))
    medians = [[median(own) for at, own in sessions if at == side] for side in (0, 1)]
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
