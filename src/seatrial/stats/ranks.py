"""Tests by ranks: null distributions and critical values, samples that differ in spread, Student's t.

Wilcoxon, "Individual comparisons by ranking methods", Biometrics Bull. 1 (1945); Mann & Whitney, Ann. Math. Stat. 18
(1947); Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 3rd ed., sections 3.1 and 4.1. Exact by counting
if that is fast, else the normal distribution with continuity correction: its tails are heavier than those of these
bounded statistics, so it is conservative (tests/stats/test_ranks.py compares both).

The two-sample rank test for samples that may differ in spread.

The Mann-Whitney distribution assumes two samples of the same shape. If the smaller sample has four times the spread of
the larger (few repeats on a noisy afternoon, many on a calm morning), its 95 % interval misses in 15-20 % of cases
(simulated by bench/compare_simulation.py). So the spread of the count is also estimated from the samples: the placement
of a value is the number of values of the other sample that it exceeds, and the variance of the count is the sum of the
squared deviations of all placements, with Welch's degrees of freedom (Brunner & Munzel, Biom. J. 42, 2000). The more
conservative of the two is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from seatrial.stats.sums import ordered_sums, table_size

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


def signed_rank_interval(ordered: Sequence[float], alpha: float) -> tuple[float, tuple[float, float] | None]:
    """The median of the means of all pairs of ascending values (Hodges-Lehmann), and its signed-rank interval of error
    `alpha`; None if there are too few values."""
    size = table_size(len(ordered), len(ordered), triangle=True)
    most = signed_rank_critical(len(ordered), alpha)
    ranks = [(size - 1) // 2, size // 2, *(() if most is None else (most, size - 1 - most))]
    means = [total / 2.0 for total in ordered_sums(ordered, ordered, ranks, triangle=True)]
    return (means[0] + means[1]) / 2.0, None if most is None else (means[2], means[3])


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


_TINY = 1e-300
_MOST_STEPS = 500


def student_tail(t: float, df: float) -> float:
    """P(T > t) for t >= 0 and `df` > 0 degrees of freedom: half of the regularised incomplete beta function.

    Abramowitz & Stegun, 26.7.1 and 26.5.8. Relative error below 1e-10, also far in the tail.
    """
    if t == math.inf:
        return 0.0
    return 0.5 * _incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2.0, 0.5)


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """I_x(a, b); `rest` is 1 - x, passed to avoid cancellation."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    front = math.exp(log_front)
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction 26.5.8, evaluated from the front (Lentz, Applied Optics 15, 1976)."""
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    c, value = 1.0, d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        step = 1.0
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            step = d * c
            value *= step
        if abs(step - 1.0) < 1e-13:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def two_sample_tail(first: Sequence[int], second: Sequence[int]) -> Callable[[int], float]:
    """P(U <= u), as a function of u up to the middle, for the number U of pairs in which one sample exceeds the other.

    The arguments are the doubled placements of both samples (2 for each smaller value of the other, 1 for an equal
    one), at the shift where neither tends to exceed the other. At least 2 values on each side.
    """
    n, m = len(first), len(second)
    of_first, of_second = _spread(first), _spread(second)
    deviation = math.sqrt(of_first + of_second)
    shares = of_first**2 / (n - 1) + of_second**2 / (m - 1)
    if shares == 0.0:
        return lambda u: mann_whitney_tail(n, m, u)  # all values are equal: no spread to estimate
    degrees = (of_first + of_second) ** 2 / shares

    def tail(u: int) -> float:
        estimated = student_tail(max(n * m / 2.0 - u, 0.0) / deviation, degrees)
        if u == 0:
            # Even if one side had no noise, all values of the other would have to fall on one side of it.
            estimated = min(estimated, 0.5 ** min(n, m))
        return max(mann_whitney_tail(n, m, u), estimated)

    return tail


def _spread(doubled: Sequence[int]) -> float:
    """Sum of squared deviations of the placements from their mean; in integers, so the result does not depend on their
    order."""
    n = len(doubled)
    return (n * sum(value * value for value in doubled) - sum(doubled) ** 2) / (4.0 * n)
