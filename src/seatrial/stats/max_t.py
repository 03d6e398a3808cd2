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
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    others = np.setdiff1d(np.arange(len(values)), order)
    exceeded = _exceedances(scaled, observed, order, others)
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
