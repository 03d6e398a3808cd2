"""Laws of scaling: fitted by least squares, and how well they are known.

Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities", AFIPS 1967: a
fraction f of fixed work is serial, so 1/S = f + (1 - f)/p. Gustafson, "Reevaluating Amdahl's law", CACM 31 (1988): if
the work grows with p, S = p - f (p - 1). Both are straight lines through the point of the baseline, with f as the only
unknown and p relative to the baseline.

All points have the same relative error (weight S^2 for 1/S, 1/S^2 for S). Weights from the intervals are not used: the
error of a law exceeds the noise of a median, so one interval that is narrow by chance would dominate.

How well a law of scaling is known, and whether it describes the points: from its fits to single blocks.

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
from collections.abc import Callable, Sequence
from typing import Literal

from seatrial.model.frozen import Frozen
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.max_t import adjusted_p
from seatrial.stats.ranks import signed_rank_interval

FEWEST_POINTS = 5
"""With fewer points (including the baseline), the residuals are meaningless."""


class SerialShare(Frozen):
    """`share` is the fitted serial fraction; outside 0..1, the law does not describe the measurements.

    `residuals` are measured minus fitted speedups, in the order of the points.
    """

    share: float
    residuals: tuple[float, ...]


Line = tuple[float, float]


class Law(Frozen):
    """A law with the serial share as its only unknown, as a straight line through the origin whose slope it is.

    `line` gives its point (x, y) for a number of workers p and a speedup s, both over those of the baseline; `weight`
    gives the weight of a point for equal relative errors of s; `speedup` is the law itself, for p and the share.
    """

    name: Literal["amdahl", "gustafson"]
    line: Callable[[float, float], Line]
    weight: Callable[[float], float]
    speedup: Callable[[float, float], float]

    def fit(self, points: Sequence[tuple[float, float]]) -> SerialShare | None:
        """The law for (workers over those of the baseline, speedup over it); None below five points, or if all have
        the same number of workers.

        The point of the baseline itself, (1, 1), does not affect the share but counts as a point. Raises ValueError for
        a speedup or a number of workers that is not positive and finite.
        """
        if not all(0.0 < value < math.inf for point in points for value in point):
            raise ValueError("workers and speedups must be positive and finite")
        if len(points) < FEWEST_POINTS or all(p == 1.0 for p, _ in points):
            return None
        workers, speedups = zip(*points, strict=True)
        f = self.fit_weighted(workers, speedups, speedups)
        return SerialShare(f, tuple(s - self.speedup(p, f) for p, s in points))

    def fit_weighted(self, workers: Sequence[float], speedups: Sequence[float], weighted: Sequence[float]) -> float:
        """The serial share for these speedups, with the weights of the others."""
        lines = [(*self.line(p, s), self.weight(w)) for p, s, w in zip(workers, speedups, weighted, strict=True)]
        return math.fsum(w * x * y for x, y, w in lines) / math.fsum(w * x * x for x, _, w in lines)


def amdahl_speedup(p: float, f: float) -> float:
    """The speedup of fixed work; infinite if a negative f leaves no time."""
    time = f + (1.0 - f) / p
    return 1.0 / time if time > 0.0 else math.inf


def gustafson_speedup(p: float, f: float) -> float:
    """The speedup of work that grows with p."""
    return p - f * (p - 1.0)


AMDAHL = Law("amdahl", lambda p, s: (1.0 - 1.0 / p, 1.0 / s - 1.0 / p), lambda s: s * s, amdahl_speedup)
GUSTAFSON = Law("gustafson", lambda p, s: (p - 1.0, p - s), lambda s: 1.0 / (s * s), gustafson_speedup)


TOLERANCE = math.log(1.02)
"""A law is an approximation: residuals within 2 % do not reject it."""

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
    if len(blocks) < MINIMUM_REPEATS:
        return None
    shares = [law.fit_weighted(workers, block, speedups) for block in blocks]
    middle, ends = signed_rank_interval(sorted(shares), _ALPHA)
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
    return LawInterval(ends, None)
