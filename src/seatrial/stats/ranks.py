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

Order statistics of all pairwise sums, without listing them if there are many.

Hodges-Lehmann estimates and their intervals are order statistics of pairwise sums or differences. For n values on each
side there are n^2 of them; a table with ordered rows and columns is searched instead (the idea of Johnson & Mizoguchi,
"Selecting the Kth element in X + Y", SIAM J. Comput. 7, 1978): a pivot cuts parts of all rows at once.

Rows `a` and columns `b` are ascending; the table contains a[i] + b[j]. Its triangle are the entries with j >= i,
which for a = b are the sums of a set with itself, each pair once.

Lists and arrays give the same results: whether a sum is before a bound is decided by the same rounded sum.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import add
from typing import TYPE_CHECKING

LISTED = 30_000
"""Up to this number of sums, sorting a list is fastest."""

_SAMPLE = 500
"""The number of entries sampled for a pivot."""


if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.float64]
    Places = npt.NDArray[np.int64]

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


class SumTable:
    """The sums of `a` (rows) and `b` (columns), both ascending; its triangle are the entries from the diagonal on."""

    def __init__(self, a: Sequence[float], b: Sequence[float], *, triangle: bool) -> None:
        import numpy as np

        self._np = np
        self._rows: Numbers = np.asarray(a, dtype=np.float64)
        self._columns: Numbers = np.asarray(b, dtype=np.float64)
        # Equal columns are cut together: a rounded bound may be on the wrong side of all of them.
        self._distinct, starts = np.unique(self._columns, return_index=True)
        self._starts: Places = np.append(starts, len(self._columns))
        self._first: Places = np.arange(len(a)) if triangle else np.zeros(len(a), dtype=np.int64)
        self._before = int(self._first.sum())

    def count(self, bound: float) -> tuple[int, int]:
        """The numbers of sums below `bound`, and of at most `bound`."""
        below, up_to = self._cut(bound)
        return int(below.sum()) - self._before, int(up_to.sum()) - self._before

    def doubled(self, bound: float) -> list[int]:
        """For each row, twice the number of its sums below `bound`, plus the number equal to it."""
        below, up_to = self._cut(bound)
        found: list[int] = (below + up_to).tolist()
        return found

    def select(self, rank: int) -> float:
        """The sum of this rank; rank 0 is the smallest."""
        np = self._np
        left, right = self._first, np.full(len(self._rows), len(self._columns), dtype=np.int64)
        passed = 0  # entries known to be smaller than all open ones
        while True:
            sizes = right - left
            ends = np.cumsum(sizes)
            if ends[-1] <= LISTED:
                row = np.repeat(np.arange(len(sizes)), sizes)
                column = np.arange(ends[-1]) - (ends - sizes)[row] + left[row]
                return float(np.sort(self._rows[row] + self._columns[column])[rank - passed])
            pivot = self._pivot(left, sizes, ends, rank - passed)
            below, up_to = self._cut(pivot)
            if rank < int(below.sum()) - self._before:
                right = below
            elif rank >= (passed_now := int(up_to.sum()) - self._before):
                left, passed = up_to, passed_now
            else:
                return pivot

    def _pivot(self, left: Places, sizes: Places, ends: Places, rank: int) -> float:
        """An open entry slightly beyond the rank, on the side of more entries, so that these are likely to be cut."""
        np = self._np
        k = np.arange(_SAMPLE)
        total = int(ends[-1])
        wanted = np.array([(2 * place + 1) * total // (2 * _SAMPLE) for place in range(_SAMPLE)], dtype=np.int64)
        row = np.searchsorted(ends, wanted, side="right")
        column = left[row] + (k * _GOLDEN % 1.0 * sizes[row]).astype(np.int64)
        share = (rank + 0.5) / total
        beyond = 2.0 * math.sqrt(share * (1.0 - share) / _SAMPLE)
        place = int((share + beyond if share < 0.5 else share - beyond) * _SAMPLE)
        return float(np.sort(self._rows[row] + self._columns[column])[min(max(place, 0), _SAMPLE - 1)])

    def _cut(self, bound: float) -> tuple[Places, Places]:
        """For each row, the columns where its sums reach and exceed `bound`."""
        np = self._np
        rows, columns, last = self._rows, self._distinct, len(self._distinct) - 1
        at = np.searchsorted(columns, bound - rows)
        found = []
        for is_before in (np.less, np.less_equal):
            # The rounded difference may be off; only the sum decides on which side of the bound a column is.
            while (late := (at > 0) & ~is_before(rows + columns[np.maximum(at - 1, 0)], bound)).any():
                at = at - late
            while (early := (at <= last) & is_before(rows + columns[np.minimum(at, last)], bound)).any():
                at = at + early
            found.append(np.maximum(self._starts[at], self._first))
        return found[0], found[1]


_MANY = 5_000
"""Above this number of rows and columns, arrays count faster."""


def table_size(n: int, m: int, *, triangle: bool) -> int:
    """The number of entries of a table of n rows and m columns, or of its triangle (then n = m)."""
    return n * (n + 1) // 2 if triangle else n * m


def count_sums(a: Sequence[float], b: Sequence[float], bound: float, *, triangle: bool) -> tuple[int, int]:
    """The numbers of sums below `bound`, and of at most `bound`."""
    if len(a) + len(b) > _MANY:
        return SumTable(a, b, triangle=triangle).count(bound)
    below, up_to = _cut(a, b, bound, triangle)
    before = len(a) * (len(a) - 1) // 2 if triangle else 0
    return sum(below) - before, sum(up_to) - before


def doubled_placements(a: Sequence[float], b: Sequence[float], bound: float) -> tuple[list[int], list[int]]:
    """For each row, and for each column, twice the number of its sums below `bound`, plus the number equal to it."""
    if len(a) + len(b) > _MANY:
        return SumTable(a, b, triangle=False).doubled(bound), SumTable(b, a, triangle=False).doubled(bound)
    rows, columns = _cut(a, b, bound, triangle=False), _cut(b, a, bound, triangle=False)
    return [x + y for x, y in zip(*rows, strict=True)], [x + y for x, y in zip(*columns, strict=True)]


def ordered_sums(a: Sequence[float], b: Sequence[float], ranks: Sequence[int], *, triangle: bool) -> list[float]:
    """The sums of these ranks; rank 0 is the smallest."""
    if table_size(len(a), len(b), triangle=triangle) > LISTED:
        table = SumTable(a, b, triangle=triangle)
        return [table.select(rank) for rank in ranks]
    if triangle:
        ordered = sorted([x + y for i, x in enumerate(a) for y in b[i:]])
    else:
        ordered = sorted([x + y for x in a for y in b])
    return [ordered[rank] for rank in ranks]


def _cut(a: Sequence[float], b: Sequence[float], bound: float, triangle: bool) -> tuple[list[int], list[int]]:
    """For each row, the columns where its sums reach and exceed `bound`.

    The column where `bound - x` would be is right but for rounding. The sums beside it decide: they are those of the
    sorted list, so rounding cannot give different results.
    """
    below, up_to = [], []
    end = len(b)
    for i, x in enumerate(a):
        reach = bisect_left(b, bound - x)
        if (reach > 0 and x + b[reach - 1] >= bound) or (reach < end and x + b[reach] < bound):
            reach = bisect_left(b, bound, key=partial(add, x))
        exceed = reach
        if reach < end and x + b[reach] <= bound:
            exceed = bisect_right(b, bound, reach, key=partial(add, x))
        first = i if triangle else 0
        below.append(reach if reach > first else first)
        up_to.append(exceed if exceed > first else first)
    return below, up_to


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


def p_equal(groups: Sequence[Sequence[float]]) -> float:
    """The p-value of "all groups have the same distribution", by the ranks of all values; 1 if it cannot be tested
    (Kruskal & Wallis, JASA 47, 1952; the chi-square tail by Wilson & Hilferty, PNAS 17, 1931)."""
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
