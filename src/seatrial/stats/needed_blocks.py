"""How many blocks would decide an ambiguous comparison: an estimate from the interval that it has.

The half width of an interval shrinks with the square root of the number of blocks (of a signed-rank interval too:
Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, section 3.3), and grows with the normal quantile of the
error that it is read at. The comparison is decided once the half width is smaller than the distance from the ratio to
the nearest edge of the margin.

The ratio is an estimate itself: until there are N blocks instead of n, it moves by a normal error of (1 - n/N) times
the variance that it has now, if nothing is known beforehand. The number is the one with which it is decided on the same
side of the edge in three of four cases; near the edge, where that takes far more, three times the one with which it
would be decided if the ratio stayed.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from seatrial.stats.interval import least_repeats
from seatrial.stats.sequential import next_end_alpha

_LIKELY = NormalDist().inv_cdf(0.75)
_MOST_SURER = 3.0
"""A decision is made likely with up to this multiple of the blocks that it takes if the ratio stays."""
MOST_GROWTH = 30.0
"""More blocks are not suggested beyond this multiple of those made."""
MOST_BLOCKS = 100_000
"""More than anybody measures: the ratio is then as good as on the edge of the margin."""


def needed_blocks(
    ratio: float,
    interval: tuple[float, float] | None,
    blocks: int,
    margin: float,
    alpha: float,
    family: int,
    half_steps: float = 0.0,
) -> int | None:
    """The blocks at which the next end would probably decide, more than `blocks`.

    `interval` is the simultaneous one that was read at the error `alpha` over `family` comparisons; without one, it is
    the number with which there would be one. `half_steps` is the part of its half width that rounding adds, which does
    not shrink. None if no number of blocks would do: the ratio is too close to an edge.
    """
    after = next_end_alpha(alpha)
    least = least_repeats(after / family, is_paired=True)
    if interval is None:
        return max(least, blocks + 1)
    low, high = (math.log(end) for end in interval)
    centre = math.log(ratio)
    to_edge = abs(abs(centre) - math.log1p(margin)) - half_steps
    half_width = max(high - centre, centre - low) - half_steps
    now, then = _quantile(alpha / family), _quantile(after / family)
    error = max(half_width, 0.0) / now
    if to_edge <= 0.0 or (needed := blocks * (error * then / to_edge) ** 2) > MOST_BLOCKS:
        return None
    likely = blocks * _likely_growth(to_edge / error, then) if error > 0.0 else needed
    needed = max(needed, min(likely, _MOST_SURER * needed, MOST_GROWTH * blocks))
    return max(math.ceil(needed), least, blocks + 1)


def _likely_growth(distance: float, quantile: float) -> float:
    """N / n with which an estimate that is `distance` standard errors from an edge is likely to be beyond it by more
    than `quantile` of the standard errors of N blocks; infinite if none is.

    With sin^2(t) = n/N: distance = _LIKELY * cos(t) + quantile * sin(t).
    """
    if distance <= _LIKELY:
        return math.inf
    longest = math.hypot(_LIKELY, quantile)
    if distance >= longest:
        return 1.0
    angle = math.atan2(quantile, _LIKELY) - math.acos(distance / longest)
    return 1.0 / math.sin(angle) ** 2


def _quantile(alpha: float) -> float:
    return -NormalDist().inv_cdf(alpha / 2.0)
