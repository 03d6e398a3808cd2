"""How many repeats an interval of a given error needs."""

from __future__ import annotations

import math

from seatrial.stats.interval import MINIMUM_REPEATS


def least_repeats(alpha: float, is_paired: bool) -> int:
    """The fewest repeats per side with which a two-sided rank test can reach `alpha`; at least six.

    The most extreme order has the probability 2^-n among signed ranks of n pairs, and 1 / C(2n, n) among the ranks of n
    and n values (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, chapters 3 and 4).
    """
    n = MINIMUM_REPEATS
    while 2.0 / (2**n if is_paired else math.comb(2 * n, n)) > alpha and n < 1000:
        n += 1
    return n
