"""The two-sample rank test for samples that may differ in spread.

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

from seatrial.stats.ranks import mann_whitney_tail
from seatrial.stats.student import student_tail


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
