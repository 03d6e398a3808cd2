"""How many blocks would decide an ambiguous comparison: an estimate from the interval that it has.

The half width of an interval shrinks with the square root of the number of blocks (of a signed-rank interval too:
Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, section 3.3), and grows with the normal quantile of the
error that it is read at. The comparison is decided once the half width is smaller than the distance from the ratio to
the nearest edge of the margin. The ratio is an estimate itself, so the number is one too, and it may be far off where
the ratio is close to an edge.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from seatrial.stats.least_repeats import least_repeats
from seatrial.stats.sequential import next_end_alpha

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
    growth = _quantile(after / family) / _quantile(alpha / family)
    if to_edge <= 0.0 or (needed := blocks * (max(half_width, 0.0) * growth / to_edge) ** 2) > MOST_BLOCKS:
        return None
    return max(math.ceil(needed), least, blocks + 1)


def _quantile(alpha: float) -> float:
    return -NormalDist().inv_cdf(alpha / 2.0)
