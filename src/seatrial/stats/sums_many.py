"""The search of `seatrial.stats.sums` with arrays, for thousands of values on each side.

It gives the same results: whether a sum is before a bound is decided by the same rounded sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.stats.pivots import LISTED, SAMPLE, place_beyond

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
        """An open entry slightly beyond the rank."""
        np = self._np
        k = np.arange(SAMPLE)
        total = int(ends[-1])
        wanted = np.array([(2 * place + 1) * total // (2 * SAMPLE) for place in range(SAMPLE)], dtype=np.int64)
        row = np.searchsorted(ends, wanted, side="right")
        column = left[row] + (k * _GOLDEN % 1.0 * sizes[row]).astype(np.int64)
        sample = np.sort(self._rows[row] + self._columns[column])
        return float(sample[place_beyond((rank + 0.5) / total)])

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
