"""How well a law of scaling is known, and whether it describes the points: from its fits to single blocks.

The standard error of a fit comes from the residuals of a few points. It knows neither the noise of the repeats nor that
all speedups share the noise of the baseline: of nominally 68 %, 36 to 43 % of its intervals hold. Here, the law is
fitted to each block of repeats, one of every number of workers; with fixed weights, a fit is a linear function of the
block's times. The serial shares of the blocks are then independent values around the true one, whose signed-rank
interval holds for few blocks as well, where resampled blocks give too narrow ones (Hollander, Wolfe & Chicken, 3rd ed.,
section 3.3). If the repeats share no blocks, they are independent, and any assignment to blocks is as good.

The law describes the points unless the residuals of one of them, over the blocks, differ from zero by more than a
tolerance (`seatrial.stats.max_t`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from seatrial.model.frozen import Frozen
from seatrial.stats.fits import Law
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.max_t import adjusted_p
from seatrial.stats.ranks import signed_rank_critical
from seatrial.stats.sums import ordered_sums, table_size

TOLERANCE = math.log(1.02)
"""A law is an approximation: residuals within 2 % are no reason to reject it."""

_ALPHA = 0.05


class LawInterval(Frozen):
    """`ends`: 95 % interval of the serial share, None if the law does not describe the points. `misfit`: the position
    of the point that the law describes worst, if it does not describe it."""

    ends: tuple[float, float] | None
    misfit: int | None


def law_interval(
    law: Law, workers: Sequence[float], speedups: Sequence[float], blocks: Sequence[Sequence[float]]
) -> LawInterval | None:
    """The interval of the serial share of a law that was fitted to these speedups, at so many workers each (both over
    those of the baseline). `blocks` has the speedups at all points in each block. None below six blocks."""
    n = len(blocks)
    if n < MINIMUM_REPEATS:
        return None
    shares = [law.fit_weighted(workers, block, speedups) for block in blocks]
    middle = _middle(shares)
    residuals = [
        [math.log(block[k]) - math.log(expected) for block in blocks]
        for k, p in enumerate(workers)
        if p != 1.0 and 0.0 < (expected := law.speedup(p, middle)) < math.inf
    ]
    places = [k for k, p in enumerate(workers) if p != 1.0 and 0.0 < law.speedup(p, middle) < math.inf]
    p_values = [1.0 if p is None else p for p in adjusted_p(residuals, [TOLERANCE] * len(residuals))]
    worst = min(range(len(places)), key=lambda k: (p_values[k], -abs(sum(residuals[k]))), default=None)
    if len(places) < sum(p != 1.0 for p in workers):
        return LawInterval(None, next(k for k, p in enumerate(workers) if p != 1.0 and k not in places))
    if worst is not None and p_values[worst] <= _ALPHA:
        return LawInterval(None, places[worst])
    return LawInterval(_signed_rank(shares), None)


def _middle(values: Sequence[float]) -> float:
    """The median of the means of all pairs."""
    ordered = sorted(values)
    size = table_size(len(ordered), len(ordered), triangle=True)
    low, high = ordered_sums(ordered, ordered, [(size - 1) // 2, size // 2], triangle=True)
    return (low + high) / 4.0


def _signed_rank(values: Sequence[float]) -> tuple[float, float] | None:
    """The signed-rank interval of error 5 %."""
    ordered, n = sorted(values), len(values)
    most = signed_rank_critical(n, _ALPHA)
    if most is None:
        return None
    size = table_size(n, n, triangle=True)
    low, high = ordered_sums(ordered, ordered, [most, size - 1 - most], triangle=True)
    return low / 2.0, high / 2.0
