"""Distribution-free confidence interval of the median, by order statistics.

For n independent values the interval from the k-th smallest to the k-th largest covers the median with probability
1 - 2 P(B <= k-1), B ~ Binomial(n, 1/2), for any distribution (David & Nagaraja, Order Statistics, 3rd ed.,
section 7.1; Hoefler & Belli, SC'15, rule 5). It does not assume normality, which timings do not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from seatrial.stats.dependence import inflation

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
