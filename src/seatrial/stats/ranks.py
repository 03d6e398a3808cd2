"""Null distributions of the signed-rank and the Mann-Whitney statistic, and their critical values.

Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bull. 1 (1945); Mann & Whitney, Ann. Math. Stat. 18
(1947); Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd ed., sections 3.1 and 4.1. Exact by counting
if that is fast, else the normal distribution with continuity correction: its tails are heavier than those of these
bounded statistics, so it is conservative (tests/stats/test_ranks.py compares both).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

_EXACT_SIGNED_RANK = 100
"""Up to this number of pairs, the distribution is exact."""

_EXACT_MANN_WHITNEY = 1_000_000
"""Up to this number of additions, the distribution is exact: two samples of 79."""


def signed_rank_tail(n: int, t: int) -> float:
    """P(T <= t) for the sum T of the ranks of the positive ones of n values with random signs."""
    most = n * (n + 1) // 2
    if t < 0 or t >= most:
        return 0.0 if t < 0 else 1.0
    if n <= _EXACT_SIGNED_RANK:
        return _signed_rank_counts(n)[t] / (1 << n)
    return _normal_tail(t, most / 2.0, most * (2 * n + 1) / 12.0)


def mann_whitney_tail(n: int, m: int, u: int) -> float:
    """P(U <= u) for the number U of pairs, one of n and one of m values of the same distribution, in which the first is
    larger."""
    if u < 0 or u >= n * m:
        return 0.0 if u < 0 else 1.0
    if 2 * min(n, m) * n * m <= _EXACT_MANN_WHITNEY:
        return _mann_whitney_counts(min(n, m), max(n, m))[u] / math.comb(n + m, n)
    return _normal_tail(u, n * m / 2.0, n * m * (n + m + 1) / 12.0)


@lru_cache(maxsize=4096)
def signed_rank_critical(n: int, alpha: float) -> int | None:
    """The largest t with 2 P(T <= t) <= alpha; None if n is too small."""
    return critical(lambda t: signed_rank_tail(n, t), n * (n + 1) // 4, alpha)


def critical(tail: Callable[[int], float], middle: int, alpha: float) -> int | None:
    """The largest value up to the middle of a symmetric distribution with 2 tail(value) <= alpha; None: not even 0."""
    if 2.0 * tail(0) > alpha:
        return None
    low, high = 0, middle + 1  # 2 tail(low) <= alpha < 2 tail(high)
    while high - low > 1:
        between = (low + high) // 2
        if 2.0 * tail(between) <= alpha:
            low = between
        else:
            high = between
    return low


def _normal_tail(value: int, mean: float, variance: float) -> float:
    return 0.5 * math.erfc((mean - value - 0.5) / math.sqrt(2.0 * variance))


@lru_cache(maxsize=_EXACT_SIGNED_RANK)
def _signed_rank_counts(n: int) -> list[int]:
    """For each t, the number of the 2^n sign choices with a sum of at most t."""
    counts = [1]
    for rank in range(1, n + 1):
        pad = [0] * rank
        counts = [without + with_it for without, with_it in zip(counts + pad, pad + counts, strict=True)]
    return _cumulative(counts)


@lru_cache(maxsize=16)
def _mann_whitney_counts(n: int, m: int) -> list[int]:
    """For each u, the number of arrangements with at most u: coefficients of the Gaussian binomial
    prod (1 - q^(m+i)) / (1 - q^i), i = 1..n (Andrews, The Theory of Partitions, chapter 3)."""
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for u in range(n * m, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, n * m + 1):
            counts[u] += counts[u - i]
    return _cumulative(counts)


def _cumulative(counts: list[int]) -> list[int]:
    total = 0
    sums = []
    for count in counts:
        total += count
        sums.append(total)
    return sums
