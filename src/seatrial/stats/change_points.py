"""Changes of the level of a series, found by ranks.

The statistic is the largest standardised rank sum over all places of one change (Pettitt, "A non-parametric approach to
the change-point problem", Appl. Stat. 28 (1979), in its standardised form); its p-value comes from random permutations
of the values, so it holds for any distribution, with ties. Several changes are found by binary segmentation
(Vostrikova, Sov. Math. Dokl. 24 (1981)): both parts of a series with a change are searched in turn.

A series without a change is searched once, so a change is named in it with probability `alpha` at most, if its values
are exchangeable (bench/history_simulation.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.frozen import Frozen

ALPHA = 0.01
FEWEST = 10
"""With fewer values no permutation test reaches 1 %: a change in the middle of 9 has 126 places, two as extreme."""
_LEAST_PART = 2
_PERMUTATIONS = 1999
_BATCH_CELLS = 1 << 20
_BATCH = 100
"""Most series without a change are known after so many permutations."""


class ChangePoint(Frozen):
    """The position of the first value after a change, and the p-value of "there is none"."""

    index: int
    p_value: float


def change_points(values: Sequence[float], alpha: float = ALPHA) -> list[ChangePoint]:
    """The changes of level in a series, in its order; none in fewer than `FEWEST` values."""
    found: list[ChangePoint] = []
    left = [(0, len(values))]
    while left:
        start, end = left.pop()
        change = _change(values[start:end], alpha)
        if change is not None:
            found.append(ChangePoint(start + change.index, change.p_value))
            left += [(start, start + change.index), (start + change.index, end)]
    return sorted(found, key=lambda one: one.index)


def _change(values: Sequence[float], alpha: float) -> ChangePoint | None:
    """The most likely change of a part, if it is significant."""
    import numpy as np

    n = len(values)
    if n < FEWEST:
        return None
    _, inverse, counts = np.unique(np.asarray(values, float), return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2.0)[inverse] - (n + 1) / 2.0  # mean 0
    places = np.arange(_LEAST_PART, n - _LEAST_PART + 1)
    scale = np.sqrt(places * (n - places) / n)
    own = np.abs(np.cumsum(ranks)[places - 1]) / scale
    best = int(np.argmax(own))
    rng = np.random.default_rng(n)
    extreme, done = 0, 0
    each = max(1, min(_BATCH, _BATCH_CELLS // n))
    while done < _PERMUTATIONS:
        batch = min(each, _PERMUTATIONS - done)
        shuffled = rng.permuted(np.tile(ranks, (batch, 1)), axis=1)
        sums = np.abs(np.cumsum(shuffled, axis=1)[:, places - 1]) / scale
        extreme += int(np.count_nonzero(sums.max(axis=1) >= own[best] * (1.0 - 1e-12)))
        done += batch
        if extreme + 1 > alpha * (_PERMUTATIONS + 1):
            return None
    return ChangePoint(int(places[best]), (extreme + 1) / (done + 1))
