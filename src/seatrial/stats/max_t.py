"""p-values of many differences, adjusted for their number: by the maximum statistic, or by Holm's procedure.

Sizes of a curve, or parts of a run, are measured by the same processes, so their disturbances are common. Bonferroni's
and Holm's bounds ignore that, and need more blocks than users make: 14 sizes need ten. Here, exchanging the sides of a
block reverses the signs of all its differences at once; how often the largest statistic of all then reaches that of one
difference is its p-value, adjusted for their number. It is exact for identical sides with any noise and any dependence
between the differences, and six blocks suffice for any number of them (2 / 2^6).

Westfall & Young, Resampling-Based Multiple Testing, 1993, section 2.6 (step-down minimum p); Romano & Wolf, "Exact and
approximate stepdown methods for multiple hypothesis testing", JASA 100 (2005).

p-values of a family, adjusted by Holm's step-down procedure.

S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979). It bounds the
probability of any false alarm in the family, for any dependence between its members.

Changes of the level of a series, found by ranks.

The statistic is the largest standardised rank sum over all positions of one change (Pettitt, "A non-parametric approach
to the change-point problem", Appl. Stat. 28 (1979), in its standardised form); its p-value comes from random
permutations of the values, so it holds for any distribution, with ties. Several changes are found by binary
segmentation (Vostrikova, Sov. Math. Dokl. 24 (1981)): both parts of a series with a change are searched in turn.

A series without a change is searched once, so a change is named in it with probability `alpha` at most, if its values
are exchangeable (bench/history_simulation.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.model.frozen import Frozen
from seatrial.stats.interval import MINIMUM_REPEATS


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The adjusted p-values, in the given order: at most alpha if the family-wise test rejects at alpha.

    None (not testable) stays None and does not count. Raises ValueError for a value that is not a probability.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for passed, (p, place) in enumerate(tested):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"a p-value must be between 0 and 1, not {p}")
        largest = max(largest, min(1.0, (len(tested) - passed) * p))
        adjusted[place] = largest
    return adjusted


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_EXACT = 12
"""Up to this number of blocks, all choices of signs are tried; beyond, as many random ones."""

_AT_ONCE = 1 << 22
"""Statistics computed at once: 32 MiB."""

_EQUAL = 1e-9
"""Statistics that differ by less are equal: their sums are rounded."""


def adjusted_p(differences: Sequence[Sequence[float]], margins: Sequence[float] = ()) -> list[float | None]:
    """For each of many differences, the adjusted p-value of "it is within [-margin, margin]", each with its own margin
    (0 without any).

    `differences` has one list per hypothesis with its value in each block, in the same order of blocks. The statistic
    is |sum| over the root of the sum of squares, of the values beyond the edge of the margin that their mean is nearer
    to; that is equivalent to Student's t. A mean within the margin has p = 1. All are None below six blocks. Raises
    ValueError if the numbers of blocks differ.
    """
    import numpy as np

    if not differences:
        return []
    if len({len(own) for own in differences}) > 1:
        raise ValueError("differences that are tested together must have the same blocks")
    values = np.asarray(differences, dtype=float)
    if values.shape[1] < MINIMUM_REPEATS:
        return [None] * len(values)
    means = values.mean(axis=1)
    edges = np.asarray(margins or [0.0] * len(values), dtype=float)
    beyond = np.where(means > 0, 1.0, -1.0)[:, None] * values - edges[:, None]  # positive: further out
    roots = np.sqrt((beyond**2).sum(axis=1))
    scaled = np.divide(beyond, roots[:, None], out=np.zeros_like(beyond), where=roots[:, None] > 0)
    observed = scaled.sum(axis=1)
    tested = np.flatnonzero((observed > 0) & (np.abs(means) > edges))
    found: list[float | None] = [1.0] * len(values)
    order = tested[np.argsort(-observed[tested], kind="stable")]
    if not len(order):
        return found
    exceeded = _exceedances(scaled, observed, order, np.setdiff1d(np.arange(len(values)), order))
    largest = 0.0
    for place, share in zip(order, exceeded, strict=True):
        largest = max(largest, float(share))  # a difference is not surer than one with a larger statistic
        found[int(place)] = largest
    return found


def _exceedances(
    scaled: Floats, observed: Floats, order: NDArray[np.intp], others: NDArray[np.intp]
) -> Sequence[float]:
    """For each hypothesis in order, the share of sign choices whose largest statistic among it and all later ones is at
    least its own."""
    import numpy as np

    signs = _signs(scaled.shape[1])
    counts = np.zeros(len(order))
    step = max(1, _AT_ONCE // len(scaled))
    for start in range(0, len(signs), step):
        sums = np.abs(signs[start : start + step] @ scaled.T)
        last = sums[:, others].max(axis=1, initial=0.0)
        later = np.maximum.accumulate(np.column_stack([last, sums[:, order[::-1]]]), axis=1)[:, :0:-1]
        counts += (later >= observed[order] - _EQUAL).sum(axis=0)
    return list(counts / len(signs))


def _signs(blocks: int) -> Floats:
    """The sign choices as rows; the first is the observed one. A choice and its opposite give the same statistic, so
    the first block keeps its sign."""
    import numpy as np

    if blocks <= _EXACT:
        numbers = np.arange(1 << (blocks - 1))
        bits = (numbers[:, None] >> np.arange(blocks)) & 1
    else:
        source = np.random.default_rng(int.from_bytes(hashlib.sha256(b"signs of %d" % blocks).digest(), "big"))
        bits = source.integers(0, 2, size=(1 << (_EXACT - 1), blocks))
        bits[0] = 0
    return 1.0 - 2.0 * bits.astype(float)


ALPHA = 0.01
FEWEST = 10
"""With fewer values no permutation test reaches 1 %: a change in the middle of 9 has 126 arrangements, two as
extreme."""
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
