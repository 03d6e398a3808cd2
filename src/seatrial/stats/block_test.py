"""The test of blocks: signed ranks, or pooled ranks where the noise of the processes has several levels.

Neither is best for all noise: pooled ranks find small differences between levels that are far apart, signed ranks those
under a drift. The choice must not depend on which side looks better, or a test would be chosen for its result. So the
estimated ratio is removed and each block loses its sides: they are assigned at random, a difference of 3 % is added to
one side, and the statistic is used that shows it more clearly on average. Exchanging the sides does not change it.
(With the ratio left in, a true difference of 5 % looks like noise on levels: under a strong drift, 19 % of choices were
wrong instead of 2 %. The error rates with it removed are simulated by bench/compare_simulation.py.)

The pooled-rank swap test of blocks: like the signed-rank test, but for noise on a few levels.

If each process falls on one of two levels, most differences within a block are either nearly zero or as large as the
levels are apart, and the signed-rank test drowns in the latter. Here, all values of both sides are ranked together, the
candidate's divided by the ratio that is tested; the difference of the two ranks in a block is its score. A large
difference between levels then counts no more than the number of values in between.

If the ratio is true, and the order within a block random, each block could as well have the opposite score. So the sum
of the scores is judged by its exact distribution over all 2^n choices of signs: the test is exact for identical
programs with any noise, as the signed-rank test is. The interval contains the ratios that the test does not reject; the
estimate is the median of all differences between a value of one side and a value of the other.

Aligned ranks of paired data: Lam & Longnecker, "A modified Wilcoxon rank sum test for paired data", Biometrika 70
(1983); sign flips as a reference distribution: Hollander, Wolfe & Chicken, 3rd ed., section 3.1.
"""

from __future__ import annotations

import hashlib
import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

from seatrial.model.study.comparison import Statistic
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ranks import doubled_placements
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

MOST_BLOCKS = 200
"""The interval lists all differences between the sides: their number grows with the square of the blocks."""

_EXACT = 63
"""Up to this number of blocks, the distribution is exact: the counts fit into 64 bits. Beyond, the normal distribution
has heavier tails than a sum of bounded scores (tests/stats/test_pooled_ranks.py compares both)."""

_BITS = 64


def standardised(pairs: Sequence[tuple[float, float]]) -> float:
    """The sum of the scores at no difference, over its standard deviation; 0 if all scores are."""
    ordered = sorted([value for pair in pairs for value in pair])
    last = {value: place for place, value in enumerate(ordered)}
    first = {value: -place for place, value in enumerate(reversed(ordered))}
    scores = [first[candidate] + last[candidate] - first[baseline] - last[baseline] for baseline, candidate in pairs]
    squares = sum([score * score for score in scores])
    return sum(scores) / math.sqrt(squares) if squares else 0.0


class PooledRanks:
    """The test of blocks, each (baseline, candidate) as logarithms."""

    def __init__(self, pairs: Sequence[tuple[float, float]]) -> None:
        self._baseline = _Side([-baseline for baseline, _ in pairs])
        self._candidate = _Side([candidate for _, candidate in pairs])
        self._n = len(pairs)

    @property
    def estimate(self) -> float:
        """The difference of the logarithms: the median of all differences between the sides."""
        size = len(self._differences)
        return (self._differences[(size - 1) // 2] + self._differences[size // 2]) / 2.0

    def interval(self, alpha: float) -> tuple[float, float] | None:
        """The interval of the difference, of error `alpha`; None if there are too few blocks."""
        if 2.0 ** (1 - self._n) > alpha:
            return None
        # Between two neighbouring differences, the scores are constant. The smallest region that is not rejected:
        regions = len(self._steps) + 1
        first = _first(regions, lambda region: self._p(region, 1) > alpha)
        last = _first(regions, lambda region: self._p(regions - 1 - region, -1) > alpha)
        if first == 0 or last == 0:
            return None
        return self._steps[first - 1], self._steps[len(self._steps) - last]

    def p_outside(self, edge: float) -> float:
        """The p-value of "the difference is within [-edge, edge]": at most alpha if the interval is outside."""
        above = self._p(bisect_right(self._steps, edge), 1)
        return min(above, self._p(bisect_left(self._steps, -edge), -1))

    @cached_property
    def _differences(self) -> list[float]:
        return sorted([a + b for a in self._baseline.ordered for b in self._candidate.ordered])

    @cached_property
    def _steps(self) -> list[float]:
        """The differences at which a score changes, ascending."""
        return list(dict.fromkeys(self._differences))

    def _p(self, region: int, side: int) -> float:
        """Two-sided p-value in the region before the step of this number, if the true difference is on the given side
        (1: larger); 1 if not."""
        steps = self._steps
        if region == 0:
            shift = steps[0] - 1.0
        elif region == len(steps):
            shift = steps[-1] + 1.0
        else:
            shift = (steps[region - 1] + steps[region]) / 2.0
        return min(1.0, 2.0 * _tail([side * score for score in self._scores(shift)]))

    def _scores(self, shift: float) -> list[int]:
        """For each block, twice the candidate's rank minus twice the baseline's (mean ranks if equal)."""
        # The baseline is stored with its sign reversed: its sums with the candidate are the differences, and its own
        # ranks count from the largest value.
        of_baseline, of_candidate = doubled_placements(self._baseline.ordered, self._candidate.ordered, shift)
        baseline = [own - placed for own, placed in zip(self._baseline.ranks, of_baseline, strict=True)]
        candidate = [own - placed for own, placed in zip(self._candidate.ranks, of_candidate, strict=True)]
        places = zip(self._baseline.places, self._candidate.places, strict=True)
        return [baseline[first] + candidate[second] - 2 for first, second in places]


class _Side:
    """The values of a side, ascending: `ranks` are twice their ranks (mean ranks if equal), `places` the position of
    each block's value."""

    def __init__(self, values: Sequence[float]) -> None:
        order = sorted(range(len(values)), key=values.__getitem__)
        self.ordered = [values[k] for k in order]
        self.ranks = [bisect_left(self.ordered, v) + bisect_right(self.ordered, v) + 1 for v in self.ordered]
        self.places = [0] * len(values)
        for place, k in enumerate(order):
            self.places[k] = place


def _first(n: int, holds: Callable[[int], bool]) -> int:
    """The first of 0..n-1 for which a condition holds that holds for all later ones; n if there is none."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _tail(scores: Sequence[int]) -> float:
    """P(S >= sum of the scores) for random signs."""
    total = sum(scores)
    if total <= 0:
        return 1.0
    unit = math.gcd(*scores)
    sizes = sorted(abs(score) // unit for score in scores)
    if len(sizes) > _EXACT:
        return 0.5 * math.erfc((total // unit - 1) / math.sqrt(2.0 * sum(size * size for size in sizes)))
    # S is at least the sum if the scores that count negatively add up to at most what they do now.
    most = sum(-score // unit for score in scores if score < 0)
    kept = (1 << _BITS * (most + 1)) - 1
    counts = 1  # a polynomial, 64 bits for each coefficient: the number of choices with each sum
    for size in sizes:
        if size > most:
            break
        counts = (counts + (counts << _BITS * size)) & kept
    found = memoryview(counts.to_bytes(8 * (most + 1), sys.byteorder)).cast("Q")
    return sum(found) / (1 << len(sizes))


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
