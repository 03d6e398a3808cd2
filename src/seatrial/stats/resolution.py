"""Rounded values: the printed digits and the step of the timer widen an interval, whatever the number of repeats.

A value that was rounded to a step q differs from the true one by up to q / 2, in the same direction in every repeat. So
more repeats do not help, and an interval of rounded values alone may miss the true ratio. Both ends move outwards by
log1p(q / 2A) + log1p(q / 2B), on the logarithm of the ratio of B to A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.stats.ratio import RatioInterval


def half_steps(baseline: float, candidate: float) -> float:
    """By how much rounding may have changed the logarithm of the ratio. The resolution of each side is the step as a
    share of the value (0.01 for 1.00 with two decimals); 0: not rounded, or unknown."""
    return math.log1p(baseline / 2.0) + math.log1p(candidate / 2.0)


def widened(interval: RatioInterval, by: float) -> RatioInterval:
    """The interval with both ends moved outwards by these half steps."""
    if by <= 0.0 or interval.low is None or interval.high is None:
        return interval
    return replace(interval, low=interval.low * math.exp(-by), high=interval.high * math.exp(by))


def widened_ends(ends: tuple[float, float] | None, resolution: float) -> tuple[float, float] | None:
    """The interval of a value that was rounded to this share of itself: each end moved outwards by half a step."""
    if ends is None or resolution <= 0.0:
        return ends
    low, high = ends
    return low - abs(low) * resolution / 2.0, high + abs(high) * resolution / 2.0


def widened_margin(margin: float, by: float) -> float:
    """The margin whose edges are outside by these half steps: a ratio beyond it is beyond the margin if not rounded."""
    return math.expm1(math.log1p(margin) + by) if by > 0.0 else margin


def is_too_coarse(margin: float, by: float) -> bool:
    """Whether no number of repeats can show that two sides are the same: equal values could differ by the margin."""
    return by > 0.0 and by >= math.log1p(margin)


def coarsest(steps: Sequence[float], blocks: int) -> float:
    """The half steps of the first `blocks`: those of the coarsest one; 0 without any."""
    return max(steps[:blocks], default=0.0)
