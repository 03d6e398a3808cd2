"""Distribution-free confidence interval of the median, the repeats that it needs, and when there are enough.

For n independent values the interval from the k-th smallest to the k-th largest covers the median with probability
1 - 2 P(B <= k-1), B ~ Binomial(n, 1/2), for any distribution (David & Nagaraja, Order Statistics, 3rd ed.,
section 7.1; Hoefler & Belli, SC'15, rule 5). It does not assume normality, which timings do not have.

When an experiment has enough repeats: planned looks, never peeking.

A rule that looks after every repeat stops at the first lucky interval, and one that waits for a small standard
deviation spends its whole budget on a noisy machine (nvbench issue 61). So there are at most five looks, at fixed
numbers of repeats, and the error of 5 % is divided equally (Bonferroni: 1 % each, hence 99 % intervals at each look):
the probability that any of the intervals that may stop the experiment misses the median stays below 5 %. Repeats that
depend on the one before have wider intervals, or none, so that they do not stop an experiment early.

Sides that were measured apart, and repeats that depend on the one before.

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
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from statistics import median

from seatrial.model.frozen import Frozen

LEAST_SESSIONS = 6
"""Alternating sessions of each side that a verdict needs: as blocks, since each pair of sessions is one."""


class Timed(Frozen):
    """A value with its start in seconds, and its position among the repeats of the run that made it."""

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
        for part in ([[timed] for timed in values] if is_one_machine else runs(values))
    )
    sessions: list[tuple[int, list[float]]] = []
    for _, side, own in parts:
        if sessions and sessions[-1][0] == side:
            sessions[-1][1].extend(own)
        else:
            sessions.append((side, list(own)))
    medians = [[median(own) for at, own in sessions if at == side] for side in (0, 1)]
    return list(zip(*medians, strict=False))


def runs(values: Sequence[Timed]) -> list[list[Timed]]:
    """The repeats of each run: within a run, the order rises."""
    runs: list[list[Timed]] = []
    for timed in sorted(values, key=lambda timed: timed.t0):
        if runs and timed.order > runs[-1][-1].order:
            runs[-1].append(timed)
        else:
            runs.append([timed])
    return runs


FEWEST = 8
"""With fewer repeats, no useful dependence can be distinguished from chance."""

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


MINIMUM_REPEATS = 6
"""With fewer, there is no distribution-free 95 % interval of a median."""


@lru_cache(maxsize=4096)
def median_rank(n: int, confidence: float) -> int | None:
    """The largest k such that [k-th smallest, k-th largest] of n values covers the median with `confidence`.

    None if even the extremes (k = 1) do not: at 95 %, below 6 values. Computed with logarithms, so that large n does
    not overflow.
    """
    alpha = 1.0 - confidence
    tail = 0.0
    best: int | None = None
    for k in range(1, n // 2 + 1):
        log_term = math.lgamma(n + 1) - math.lgamma(k) - math.lgamma(n - k + 2) - n * math.log(2.0)
        tail += math.exp(log_term)
        if 2.0 * tail > alpha:
            break
        best = k
    return best


def median_interval(
    values: Sequence[float], confidence: float = 0.95, correlation: float = 0.0
) -> tuple[float, float] | None:
    """The interval of the median at (at least) `confidence`, in the unit of the values; None if there are too few.

    With a `correlation` of successive values, it extends over more of them, as many as the standard error of a mean
    would grow; None if that is more than there are.
    """
    k = median_rank(len(values), confidence)
    if k is None:
        return None
    if correlation > 0.0:
        middle = (len(values) + 1) / 2.0
        k = math.floor(middle - (middle - k) * inflation(correlation))
        if k < 1:
            return None
    ordered = sorted(values)
    return ordered[k - 1], ordered[-k]


def least_repeats(alpha: float, is_paired: bool) -> int:
    """The fewest repeats per side with which a two-sided rank test can reach `alpha`; at least six.

    The most extreme order has the probability 2^-n among signed ranks of n pairs, and 1 / C(2n, n) among the ranks of n
    and n values (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, chapters 3 and 4).
    """
    n = MINIMUM_REPEATS
    while 2.0 / (2**n if is_paired else math.comb(2 * n, n)) > alpha and n < 1000:
        n += 1
    return n


LOOKS = (8, 12, 18, 27, 40)
"""Numbers of repeats at which the precision is checked. Eight is the smallest with a 99 % interval."""

_LOOK_CONFIDENCE = 1.0 - 0.05 / len(LOOKS)


class Stop(StrEnum):
    """Why no more repeats are made."""

    PRECISE = "precise"  # every figure's interval is narrow enough
    BUDGET = "budget"  # the next repeat would exceed the time budget
    COMPLETE = "complete"  # the maximum number was made


class StoppingRule(Frozen):
    """`precision`: half width of the interval relative to the median (0.01 is 1 %); `budget_s`: time of all repeats;
    `maximum`: the largest number of repeats; `minimum`: repeats that are made regardless of the budget."""

    precision: float = 0.01
    budget_s: float = 20.0
    maximum: int = LOOKS[-1]
    minimum: int = MINIMUM_REPEATS

    def decide(
        self, figures: Sequence[Sequence[float]], spent_s: float, next_s: float, *, n: int | None = None
    ) -> Stop | None:
        """The reason to stop after these repeats, or None to continue.

        `figures` has, for each figure, the values of all repeats so far, in order of time, all of the same length;
        `spent_s` is their time, `next_s` the expected time of the next. Only the planned looks count: values between
        looks are never used to decide. So with the number of repeats in `n`, values up to the last look suffice.
        """
        if n is None:
            n = max((len(values) for values in figures), default=0)
        if n < self.minimum:
            return None
        for look in LOOKS:
            if n >= look and all(self._is_precise(values[:look]) for values in figures):
                return Stop.PRECISE
        if n >= self.maximum:
            return Stop.COMPLETE
        if spent_s + next_s > self.budget_s:
            return Stop.BUDGET
        return None

    def _is_precise(self, values: Sequence[float]) -> bool:
        interval = median_interval(values, _LOOK_CONFIDENCE, dependence(values))
        if interval is None:
            return False
        low, high = interval
        middle = abs(low + high) / 2.0
        return (high - low) / 2.0 <= self.precision * middle
