"""The ratio of candidate to baseline: interval, verdict, rounding, blocks whose processes alternate.

Everything is computed on logarithms, so that swapping the sides inverts ratio and interval. For blocks, the differences
of the two sides are assumed to be symmetric around the true one: with random order in a block, this holds for identical
programs with any noise. The estimate is the Hodges-Lehmann median of the means of all pairs of differences; the
interval runs between two of these means, by the signed-rank distribution. For sides measured separately, the same is
done with all differences between a value of one side and a value of the other, by the Mann-Whitney distribution or, if
more conservative, the test for unequal spread (Hodges & Lehmann, Ann. Math. Stat. 34, 1963; Hollander, Wolfe & Chicken,
3rd ed., sections 3.3, 4.3 and 4.4). Intervals are closed, so equal values and zero differences only make them more
conservative (Noether, JASA 62, 1967).

Rounded values: the printed digits and the step of the timer widen an interval, whatever the number of repeats.

A value that was rounded to a step q differs from the true one by up to q / 2, in the same direction in every repeat. So
more repeats do not help, and an interval of rounded values alone may miss the true ratio. Both ends move outwards by
log1p(q / 2A) + log1p(q / 2B), on the logarithm of the ratio of B to A.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.model.study.comparison import Verdict
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ranks import (
    count_sums,
    critical,
    doubled_placements,
    ordered_sums,
    signed_rank_interval,
    signed_rank_tail,
    table_size,
    two_sample_tail,
)

ROUNDING = 1e-12
"""A ratio that exceeds an edge of the margin by less is on the edge: logarithms are rounded."""


class RatioInterval(Frozen):
    """Candidate over baseline. The ends are None if there are too few values for the error."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval; None if there is none."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def paired_ratio(pairs: Sequence[tuple[float, float]], alpha: float) -> RatioInterval:
    """Estimate and interval of error `alpha` from blocks, each (baseline, candidate).

    No interval below 6 blocks, or if 2^(1 - blocks) > alpha. Raises ValueError without blocks, or for a value that is
    not positive and finite.
    """
    _check_error(alpha)
    differences = _differences(pairs)
    estimate, ends = signed_rank_interval(differences, alpha)
    return interval_of(estimate, ends if ends is not None and len(differences) >= MINIMUM_REPEATS else ())


def independent_ratio(baseline: Sequence[float], candidate: Sequence[float], alpha: float) -> RatioInterval:
    """Estimate and interval of error `alpha` from two sides that were measured separately.

    No interval if a side has fewer than 6 values, or if 2^(1 - fewest values) > alpha. Raises ValueError for an empty
    side, or a value that is not positive and finite.
    """
    _check_error(alpha)
    minus_baseline, plus_candidate = _sides(baseline, candidate)
    n, m = len(minus_baseline), len(plus_candidate)
    size = n * m
    middle = ordered_sums(minus_baseline, plus_candidate, [(size - 1) // 2, size // 2], triangle=False)
    shift = sum(middle) / 2.0
    if min(n, m) < MINIMUM_REPEATS:
        return interval_of(shift, ())
    most = critical(two_sample_tail(*doubled_placements(minus_baseline, plus_candidate, shift)), size // 2, alpha)
    ranks = () if most is None else (most, size - 1 - most)
    return interval_of(shift, ordered_sums(minus_baseline, plus_candidate, ranks, triangle=False))


def paired_p_outside(pairs: Sequence[tuple[float, float]], margin: float) -> float | None:
    """The p-value of "the ratio is within [1/(1+margin), 1+margin]"; None below 6 blocks.

    It is at most alpha exactly if the interval of `paired_ratio` is entirely outside.
    """
    differences = _differences(pairs)
    if len(differences) < MINIMUM_REPEATS:
        return None
    if not 0.0 <= margin < math.inf:
        raise ValueError(f"a margin must be at least 0, not {margin}")
    edge = (math.log1p(margin) + ROUNDING) * 2.0  # of the sums of two differences
    _, not_above = count_sums(differences, differences, edge, triangle=True)
    below, _ = count_sums(differences, differences, -edge, triangle=True)
    # The number of sums not beyond the edge that most of them are beyond.
    against = min(not_above, table_size(len(differences), len(differences), triangle=True) - below)
    return min(1.0, 2.0 * signed_rank_tail(len(differences), against))


def interval_of(estimate: float, ends: Sequence[float]) -> RatioInterval:
    """The ratio and its interval, from logarithms; without `ends`, there is no interval."""
    return RatioInterval(_exp(estimate), _exp(ends[0]) if ends else None, _exp(ends[1]) if ends else None)


def _differences(pairs: Sequence[tuple[float, float]]) -> list[float]:
    """Logarithms of candidate over baseline, ascending. Computed separately, so that swapped sides give exactly the
    negative."""
    if not pairs:
        raise ValueError("no blocks to compare")
    return sorted(logarithm(candidate) - logarithm(baseline) for baseline, candidate in pairs)


def _sides(baseline: Sequence[float], candidate: Sequence[float]) -> tuple[list[float], list[float]]:
    """Minus the logarithms of the baseline, and those of the candidate, both ascending; their sums are the
    differences."""
    if not baseline or not candidate:
        raise ValueError("a side of the comparison has no values")
    return sorted(-logarithm(value) for value in baseline), sorted(logarithm(value) for value in candidate)


def logarithm(value: float) -> float:
    """Its natural logarithm. Raises ValueError for a value that is not positive and finite."""
    if not 0.0 < value < math.inf:
        raise ValueError(f"a ratio needs positive and finite values, not {value}")
    return math.log(value)


def _exp(difference: float) -> float:
    if abs(difference) > 700.0:
        raise ValueError(f"values that differ by a factor of e^{abs(difference):.0f} cannot be compared")
    return math.exp(difference)


def _check_error(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"an error probability must be between 0 and 1, not {alpha}")


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


_FEWEST_TURNS = 3


def pair_of_block(
    baseline: float, candidate: float, baseline_turns: Sequence[float] = (), candidate_turns: Sequence[float] = ()
) -> tuple[float, float]:
    """(baseline, candidate) of one block, whose quotient is the ratio of the block.

    Without turns, these are the values of the two repeats. With turns, the ratio is the median of the ratios turn by
    turn, and the candidate is the baseline times that: disturbances affect neighbouring turns of both sides, while the
    medians of the two processes may come from different times. Values not above zero have no ratios.
    """
    turns = list(zip(baseline_turns, candidate_turns, strict=False))
    if len(turns) < _FEWEST_TURNS or not all(first > 0 and second > 0 for first, second in turns):
        return baseline, candidate
    return baseline, baseline * math.exp(median(math.log(second / first) for first, second in turns))


def verdict(
    low: float | None,
    high: float | None,
    margin: float,
    higher_is_better: bool,
    narrow: tuple[float, float] | None = None,
) -> Verdict:
    """The verdict on candidate over baseline.

    `same`: the interval is within [1/(1+margin), 1+margin], edges included. Entirely outside: `faster` or `slower`, by
    the direction of the figure. Across an edge, or no interval: `ambiguous`.

    `narrow` is given where equivalence is asked for: the interval with twice the error, so that each of its ends alone
    has the error of the interval (two one-sided tests: Schuirmann, J. Pharmacokinet. Biopharm. 15, 1987). `equivalent`
    if it is within the edges; there is no `same` then.
    """
    if low is None or high is None:
        return Verdict.AMBIGUOUS
    upper_edge = (1.0 + margin) * (1.0 + ROUNDING)
    lower_edge = 1.0 / upper_edge
    inside_low, inside_high = narrow or (low, high)
    if lower_edge <= inside_low and inside_high <= upper_edge:
        return Verdict.SAME if narrow is None else Verdict.EQUIVALENT
    if low > upper_edge:
        return Verdict.FASTER if higher_is_better else Verdict.SLOWER
    if high < lower_edge:
        return Verdict.SLOWER if higher_is_better else Verdict.FASTER
    return Verdict.AMBIGUOUS
