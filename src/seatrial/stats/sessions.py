"""Sides that were measured apart, and repeats that depend on the one before.

Between two sessions a machine changes: its temperature, its pages, what else
runs. With 1 % between sessions and 0.5 % within them, the interval of 24 repeats of each side excludes the ratio 1 in
83 % of comparisons of a program with itself, and more repeats make it worse. So repeats of one session count as one
value, and a verdict needs sessions of both sides in alternation.

Repeats that depend on the one before: then n repeats are worth less than n.

The interval of a median assumes independent repeats. If each resembles the one before (a slow fan, a neighbour that
comes and goes), a 95 % interval of 24 repeats covers the median in 87 % of cases at a correlation of 0.5, and in 46 %
at 0.9 (bench/compare_simulation.py). The correlation of the ranks of successive repeats shows it.

Rank serial correlation: Wald & Wolfowitz, "An exact test for randomness in the non-parametric case", Ann. Math. Stat.
14 (1943); its bias and the effective number of values: Kendall, "Note on bias in the estimation of autocorrelation",
Biometrika 41 (1954), and Bayley & Hammersley, J. R. Stat. Soc. Suppl. 8 (1946).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
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


FEWEST = 8
"""With fewer repeats, no useful dependence can be told from chance."""

_DEVIATIONS = 1.645
"""One-sided 5 %: the correlation of independent repeats has mean -1/n and standard deviation 1/sqrt(n)."""

_MOST = 0.99


def dependence(values: Sequence[float]) -> float:
    """The correlation of successive values, in order of time, if it is positive and significant at 5 %; else 0.

    It is that of their ranks, corrected for its bias of -(1 + 4 r) / n; at most 0.99.
    """
    n = len(values)
    if n < FEWEST:
        return 0.0
    ordered = sorted(values)
    ranks = [bisect_left(ordered, value) + bisect_right(ordered, value) - n for value in values]  # with mean 0, doubled
    squares = sum(rank * rank for rank in ranks)
    if squares == 0:
        return 0.0
    r = sum(first * second for first, second in pairwise(ranks)) / squares
    if (r + 1.0 / n) * math.sqrt(n) < _DEVIATIONS:
        return 0.0
    return min(_MOST, r + (1.0 + 4.0 * r) / n)


def inflation(correlation: float) -> float:
    """The factor by which the standard error of a mean grows if successive values have this correlation: the root of
    (1 + r) / (1 - r)."""
    return math.sqrt((1.0 + correlation) / (1.0 - correlation))
