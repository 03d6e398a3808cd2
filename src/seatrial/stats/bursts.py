"""Bursts that recur: input and output of checkpoints, a neighbour that runs for a second in five."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_BURST = 0.05
"""Least content of a bin in a burst, as a share of the fullest bin."""
_LEAST_BURSTS = 3
_REGULAR = 0.3


def recurring(series: Sequence[float]) -> tuple[int, float] | None:
    """(number of bursts, mean number of bins between them) if bursts recur at about the same interval, else None.

    A burst is a run of bins with at least a twentieth of the fullest one. Bursts recur if there are three or more, and
    every interval between two of them differs from the median by at most three tenths of it, or one bin.
    """
    full = max(series, default=0.0)
    is_burst = [full > 0 and value >= _BURST * full for value in series]
    begins = [k for k, now in enumerate(is_burst) if now and not (k and is_burst[k - 1])]
    if len(begins) < _LEAST_BURSTS:
        return None
    intervals = [later - sooner for sooner, later in pairwise(begins)]
    median = sorted(intervals)[len(intervals) // 2]
    if median < 2 or any(abs(one - median) > max(1.0, _REGULAR * median) for one in intervals):
        return None
    return len(begins), (begins[-1] - begins[0]) / len(intervals)
