"""Order statistics of all sums of two values, without a list of all of them where that would be long.

Hodges-Lehmann estimates and their intervals are order statistics of pairwise sums or differences. For n values on each
side there are n^2 of them; a table with ordered rows and columns is searched instead (the idea of Johnson & Mizoguchi,
"Selecting the Kth element in X + Y", SIAM J. Comput. 7, 1978): a pivot cuts off parts of all rows at once.

Rows `a` and columns `b` are ascending; the table holds a[i] + b[j]. Its triangle are the entries with j >= i, which for
a = b are the sums of a set with itself, each pair once.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

_LISTED = 30_000
"""Up to so many sums a list is sorted: that is fastest."""

_SAMPLE = 500
"""Entries that are looked at for a pivot."""

_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def table_size(n: int, m: int, *, triangle: bool) -> int:
    """The number of entries of a table of n rows and m columns, or of its triangle (then n = m)."""
    return n * (n + 1) // 2 if triangle else n * m


def count_sums(a: Sequence[float], b: Sequence[float], bound: float, *, triangle: bool) -> tuple[int, int]:
    """How many sums are below `bound`, and how many are at most `bound`."""
    below, up_to = _cut(a, b, bound, triangle)
    before = len(a) * (len(a) - 1) // 2 if triangle else 0
    return sum(below) - before, sum(up_to) - before


def doubled_placements(a: Sequence[float], b: Sequence[float], bound: float) -> tuple[list[int], list[int]]:
    """For each row, and for each column, twice how many of its sums are below `bound`; those equal to it count once."""
    rows, columns = _cut(a, b, bound, triangle=False), _cut(b, a, bound, triangle=False)
    return [x + y for x, y in zip(*rows, strict=True)], [x + y for x, y in zip(*columns, strict=True)]


def ordered_sums(a: Sequence[float], b: Sequence[float], ranks: Sequence[int], *, triangle: bool) -> list[float]:
    """The sums of these ranks, 0 being the smallest."""
    if table_size(len(a), len(b), triangle=triangle) > _LISTED:
        return [_select(a, b, rank, triangle) for rank in ranks]
    if triangle:
        ordered = sorted([x + y for i, x in enumerate(a) for y in b[i:]])
    else:
        ordered = sorted([x + y for x in a for y in b])
    return [ordered[rank] for rank in ranks]


def _select(a: Sequence[float], b: Sequence[float], rank: int, triangle: bool) -> float:
    """The sum of that rank. Each round cuts the part of every row that is still open at one pivot, an entry of it."""
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
    """An open entry a little beyond that rank, on the side of more entries, so that these are likely to be cut off."""
    ends = list(accumulate(sizes))
    sample = []
    for k in range(_SAMPLE):
        row = bisect_right(ends, (2 * k + 1) * ends[-1] // (2 * _SAMPLE))
        sample.append(a[row] + b[left[row] + int(k * _GOLDEN % 1.0 * sizes[row])])
    sample.sort()
    share = (rank + 0.5) / ends[-1]
    beyond = 2.0 * math.sqrt(share * (1.0 - share) / _SAMPLE)
    place = share + beyond if share < 0.5 else share - beyond
    return sample[min(max(int(place * _SAMPLE), 0), _SAMPLE - 1)]


def _cut(a: Sequence[float], b: Sequence[float], bound: float, triangle: bool) -> tuple[list[int], list[int]]:
    """For each row the columns where its sums reach and exceed `bound`: down the rows both only go to the left.

    Compared are the very sums that are listed elsewhere, so that rounding cannot make two answers differ.
    """
    below, up_to = [], []
    reach = exceed = len(b)
    for i, x in enumerate(a):
        while exceed > 0 and x + b[exceed - 1] > bound:
            exceed -= 1
        reach = min(reach, exceed)
        while reach > 0 and x + b[reach - 1] >= bound:
            reach -= 1
        first = i if triangle else 0
        below.append(max(reach, first))
        up_to.append(max(exceed, first))
    return below, up_to
