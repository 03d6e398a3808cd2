"""The test of blocks: signed ranks, or pooled ranks where the noise of the processes has several levels.

Neither is best for all noise: pooled ranks find small differences between levels that are far apart, signed ranks those
under a drift. The choice must not depend on which side looks better, or a test would be chosen for its result. So the
estimated ratio is removed and each block loses its sides: they are assigned at random, a difference of 3 % is added to
one side, and the statistic is used that shows it more clearly on average. Exchanging the sides does not change it.
(With the ratio left in, a true difference of 5 % looks like noise on levels: under a strong drift, 19 % of choices were
wrong instead of 2 %. The error rates with it removed are simulated by bench/compare_simulation.py.)
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property

from seatrial.model.study.comparison import Statistic
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.pooled_ranks import MOST_BLOCKS, PooledRanks, standardised
from seatrial.stats.ratio import (
    ROUNDING,
    RatioInterval,
    interval_of,
    logarithm,
    paired_p_outside,
    paired_ratio,
    widened,
    widened_margin,
)

_DRAWS = tuple(int.from_bytes(hashlib.sha256(b"swap pattern %d" % draw).digest(), "big") for draw in range(12))
"""Random assignments: bit k swaps block k. The same for all, so that the result is reproducible."""

_SHIFT = math.log(1.03)
_CLEARER = 1.2
"""Pooled ranks must show the added difference more clearly by this factor."""


class BlockTest:
    """The test of blocks, each (baseline, candidate). `half_steps`: by how much rounding may have changed the logarithm
    of the ratio. Raises ValueError without blocks, or for a value that is not positive and finite."""

    def __init__(self, pairs: Sequence[tuple[float, float]], half_steps: float = 0.0) -> None:
        if not pairs:
            raise ValueError("no blocks to compare")
        self._pairs = pairs
        self.half_steps = half_steps
        self._logs = [(logarithm(baseline), logarithm(candidate)) for baseline, candidate in pairs]

    @property
    def blocks(self) -> int:
        """The number of blocks."""
        return len(self._logs)

    @cached_property
    def statistic(self) -> Statistic:
        """The statistic that these blocks are tested with."""
        if not MINIMUM_REPEATS <= len(self._logs) <= MOST_BLOCKS:
            return Statistic.SIGNED_RANKS
        half = self._pooled.estimate / 2.0  # from each side, so that exchanged sides are rounded alike
        signed, pooled = _sensitivity([(baseline + half, candidate - half) for baseline, candidate in self._logs])
        return Statistic.POOLED_RANKS if pooled > _CLEARER * signed else Statistic.SIGNED_RANKS

    @cached_property
    def _pooled(self) -> PooledRanks:
        return PooledRanks(self._logs)

    def ratio(self, alpha: float) -> RatioInterval:
        """Candidate over baseline, with the interval of error `alpha`; none below 6 blocks, or if 2^(1 - blocks) is
        larger than `alpha`."""
        if self.statistic is Statistic.SIGNED_RANKS:
            found = paired_ratio(self._pairs, alpha)
        else:
            found = interval_of(self._pooled.estimate, self._pooled.interval(alpha) or ())
        return widened(found, self.half_steps)

    def p_outside(self, margin: float) -> float | None:
        """The p-value of "the ratio is within [1/(1+margin), 1+margin]"; None below 6 blocks."""
        if self.statistic is Statistic.SIGNED_RANKS:
            return paired_p_outside(self._pairs, widened_margin(margin, self.half_steps))
        return self._pooled.p_outside(math.log1p(margin) + self.half_steps + ROUNDING)


def _sensitivity(logs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """How clearly an added difference appears in each statistic, over its standard deviation: sums over the draws."""
    signed = pooled = 0.0
    ways = [((low, high + _SHIFT), (high, low + _SHIFT)) for low, high in (sorted(pair) for pair in logs)]
    for draw in _DRAWS:
        drawn = [way[draw >> k & 1] for k, way in enumerate(ways)]
        signed += _signed_ranks(drawn)
        pooled += standardised(drawn)
    return signed, pooled


def _signed_ranks(logs: Sequence[tuple[float, float]]) -> float:
    """The sum of the ranks of the absolute differences, each with the sign of its difference, over its standard
    deviation. The ranks of equal differences are in the order of the blocks: this only serves the choice."""
    differences = sorted([candidate - baseline for baseline, candidate in logs], key=abs)
    total = sum([math.copysign(rank, difference) for rank, difference in enumerate(differences, 1) if difference])
    n = len(differences)
    return total / math.sqrt(n * (n + 1) * (2 * n + 1) / 6.0)
