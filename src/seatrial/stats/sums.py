"""Order statistics of all pairwise sums, without listing them if there are many.

Hodges-Lehmann estimates and their intervals are order statistics of pairwise sums or differences. For n values on each
side there are n^2 of them; a table with ordered rows and columns is searched instead (the idea of Johnson & Mizoguchi,
"Selecting the Kth element in X + Y", SIAM J. Comput. 7, 1978): a pivot cuts parts of all rows at once.

Rows `a` and columns `b` are ascending; the table contains a[i] + b[j]. Its triangle are the entries with j >= i,
which for a = b are the sums of a set with itself, each pair once.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from operator import add

from seatrial.stats.pivots import LISTED as _LISTED
from seatrial.stats.pivots import SAMPLE as _SAMPLE
from seatrial.stats.pivots import place_beyond
from seatrial.stats.sums_many import Table

_MANY = 5_000
"""Above this number of rows and columns, arrays are faster."""

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def table_size(n: int, m: int, *, triangle: bool) -> int:
    """The number of entries of a table of n rows and m columns, or of its triangle (then n = m)."""
    return n * (n + 1) // 2 if triangle else n * m


def count_sums(a: Sequence[float], b: Sequence[float], bound: float, *, triangle: bool) -> tuple[int, int]:
    """The numbers of sums below `bound`, and of at most `bound`."""
    if len(a) + len(b) > _MANY:
        return Table(a, b, triangle=triangle).count(bound)
    below, up_to = _cut(a, b, bound, triangle)
    before = len(a) * (len(a) - 1) // 2 if triangle else 0
    return sum(below) - before, sum(up_to) - before


def doubled_placements(a: Sequence[float], b: Sequence[float], bound: float) -> tuple[list[int], list[int]]:
    """For each row, and for each column, twice the number of its sums below `bound`, plus the number equal to it."""
    if len(a) + len(b) > _MANY:
        return Table(a, b, triangle=False).doubled(bound), Table(b, a, triangle=False).doubled(bound)
    rows, columns = _cut(a, b, bound, triangle=False), _cut(b, a, bound, triangle=False)
    return [x + y for x, y in zip(*rows, strict=True)], [x + y for x, y in zip(*columns, strict=True)]


def ordered_sums(a: Sequence[float], b: Sequence[float], ranks: Sequence[int], *, triangle: bool) -> list[float]:
    """The sums of these ranks; rank 0 is the smallest."""
    if len(a) + len(b) > _MANY:
        table = Table(a, b, triangle=triangle)
        return [table.select(rank) for rank in ranks]
    if table_size(len(a), len(b), triangle=triangle) > _LISTED:
        return [_select(a, b, rank, triangle) for rank in ranks]
    if triangle:
        ordered = sorted([x + y for i, x in enumerate(a) for y in b[i:]])
    else:
        ordered = sorted([x + y for x in a for y in b])
    return [ordered[rank] for rank in ranks]


def _select(a: Sequence[float], b: Sequence[float], rank: int, triangle: bool) -> float:
    """The sum of this rank. Each round cuts the open part of every row at a pivot, which is an open entry."""
    before = len(a) * (len(a) - 1) // 2 if triangle else 0
    left = list(range(len(a))) if triangle else [0] * len(a)
    right = [len(b)] * len(a)
    passed = 0  # entries known to be smaller than all open ones
    while True:
        sizes = [end - start for start, end in zip(left, right, strict=True)]
        if sum(sizes) <= _LISTED:
            rows = zip(a, left, right, strict=True)
            return sorted([x + y for x, start, end in rows for y in b[start:end]])[rank - passed]
        pivot = _pivot(a, b, left, sizes, rank - passed)
        below, up_to = _cut(a, b, pivot, triangle)
        if rank < sum(below) - before:
            right = below
        elif rank >= (passed_now := sum(up_to) - before):
            left, passed = up_to, passed_now
        else:
            return pivot


def _pivot(a: Sequence[float], b: Sequence[float], left: Sequence[int], sizes: Sequence[int], rank: int) -> float:
    """An open entry slightly beyond the rank, on the side of more entries, so that these are likely to be cut."""
    ends = list(accumulate(sizes))
    sample = []
    for k in range(_SAMPLE):
        row = bisect_right(ends, (2 * k + 1) * ends[-1] // (2 * _SAMPLE))
        sample.append(a[row] + b[left[row] + int(k * _GOLDEN % 1.0 * sizes[row])])
    sample.sort()
    return sample[place_beyond((rank + 0.5) / ends[-1])]


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
