"""Order statistics of all pairwise sums, without listing them if there are many.

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
from collections.abc import Sequence
from functools import partial
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


class Table:
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
    if table_size(len(a), len(b), triangle=triangle) > LISTED:
        table = Table(a, b, triangle=triangle)
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
