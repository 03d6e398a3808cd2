"""Whether nodes truly differ, beyond the noise of their repeats, and how: a spread, or two kinds.

Where nodes differ by more than their repeats do, some node is always the farthest: with an exponential spread of 1 %,
a screen for outliers names one in two of three fleets. Then the fleet is described instead.

Kruskal & Wallis, "Use of ranks in one-criterion variance analysis", JASA 47 (1952); the chi-square tail by Wilson &
Hilferty, PNAS 17 (1931).
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from statistics import median

from seatrial.model.frozen import Frozen

DIFFERS = 0.05
"""Nodes differ if equal ones would look so different in fewer cases."""

_FEWEST_FOR_KINDS = 10
_FEWEST_OF_A_KIND = 3


class Fleet(Frozen):
    """Groups of repeats that should be equal, as ratios over the median of their medians.

    `p_equal` is the p-value of "they are equal"; `spread` the range of the middle 90 % of the medians. `minority` are
    the positions of the smaller of two kinds, `kinds` the ratios of both (minority, majority); empty and None if there
    is one kind.
    """

    p_equal: float
    spread: tuple[float, float]
    minority: tuple[int, ...] = ()
    kinds: tuple[float, float] | None = None


def fleet_of(groups: Sequence[Sequence[float]]) -> Fleet | None:
    """The description of groups of logarithms; None without at least two repeats in most of them."""
    if len(groups) < 2 or 2 * sum(len(group) > 1 for group in groups) <= len(groups):
        return None
    middles = [median(group) for group in groups]
    centre = median(middles)
    ordered = sorted(middles)
    low, high = (ordered[round(share * (len(ordered) - 1))] - centre for share in (0.05, 0.95))
    p = p_equal(groups)
    minority = _minority(middles) if p <= DIFFERS else ()
    kinds = None
    if minority:
        inside = set(minority)
        others = [value for place, value in enumerate(middles) if place not in inside]
        kinds = (math.exp(median(middles[k] for k in minority) - centre), math.exp(median(others) - centre))
    return Fleet(p, (math.exp(low), math.exp(high)), minority, kinds)


def p_equal(groups: Sequence[Sequence[float]]) -> float:
    """The p-value of "all groups have the same distribution", by the ranks of all values; 1 if it cannot be tested."""
    pool = sorted(value for group in groups for value in group)
    n, k = len(pool), len(groups)
    if k < 2 or n <= k or pool[0] == pool[-1]:
        return 1.0
    total = 0.0
    for group in groups:
        ranks = sum((bisect_left(pool, value) + bisect_right(pool, value) + 1) / 2.0 for value in group)
        total += ranks * ranks / len(group)
    statistic = 12.0 / (n * (n + 1.0)) * total - 3.0 * (n + 1.0)
    return _chi_square_tail(max(0.0, statistic), k - 1)


def _chi_square_tail(value: float, degrees: int) -> float:
    share = 2.0 / (9.0 * degrees)
    return 0.5 * math.erfc(((value / degrees) ** (1.0 / 3.0) - (1.0 - share)) / math.sqrt(2.0 * share))


def _minority(middles: Sequence[float]) -> tuple[int, ...]:
    """The smaller of two kinds: on one side of a gap that is wider than either side. Empty if there is no such gap."""
    n = len(middles)
    if n < _FEWEST_FOR_KINDS:
        return ()
    order = sorted(range(n), key=middles.__getitem__)
    values = [middles[k] for k in order]
    for cut in range(_FEWEST_OF_A_KIND, n - _FEWEST_OF_A_KIND + 1):
        gap = values[cut] - values[cut - 1]
        if gap > values[cut - 1] - values[0] and gap > values[-1] - values[cut]:
            side = order[:cut] if 2 * cut <= n else order[cut:]
            return tuple(sorted(side))
    return ()
