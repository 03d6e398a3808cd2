"""The ratio of candidate to baseline, with its distribution-free interval.

Everything is computed on logarithms, so that swapping the sides inverts ratio and interval. For blocks, the differences
of the two sides are assumed to be symmetric around the true one: with random order in a block, this holds for identical
programs with any noise. The estimate is the Hodges-Lehmann median of the means of all pairs of differences; the
interval runs between two of these means, by the signed-rank distribution. For sides measured separately, the same is
done with all differences between a value of one side and a value of the other, by the Mann-Whitney distribution or, if
more conservative, the test for unequal spread (Hodges & Lehmann, Ann. Math. Stat. 34, 1963; Hollander, Wolfe & Chicken,
3rd ed., sections 3.3, 4.3 and 4.4). Intervals are closed, so equal values and zero differences only make them more
conservative (Noether, JASA 62, 1967).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from seatrial.model.frozen import Frozen
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.placements import two_sample_tail
from seatrial.stats.ranks import critical, signed_rank_critical, signed_rank_tail
from seatrial.stats.sums import count_sums, doubled_placements, ordered_sums, table_size

ROUNDING = 1e-12
"""A ratio that exceeds an edge of the margin by less is on the edge: logarithms are rounded."""


class RatioInterval(Frozen):
    """Candidate over baseline. The ends are None if there are too few values for the error."""

    ratio: float
    low: float | None
    high: float | None


def paired_ratio(pairs: Sequence[tuple[float, float]], alpha: float) -> RatioInterval:
    """Estimate and interval of error `alpha` from blocks, each (baseline, candidate).

    No interval below 6 blocks, or if 2^(1 - blocks) > alpha. Raises ValueError without blocks, or for a value that is
    not positive and finite.
    """
    _check_error(alpha)
    differences = _differences(pairs)
    n = len(differences)
    size = table_size(n, n, triangle=True)
    most = signed_rank_critical(n, alpha) if n >= MINIMUM_REPEATS else None
    ranks = [*_middle(size), *_ends(most, size)]
    means = [total / 2.0 for total in ordered_sums(differences, differences, ranks, triangle=True)]
    return interval_of((means[0] + means[1]) / 2.0, means[2:])


def independent_ratio(baseline: Sequence[float], candidate: Sequence[float], alpha: float) -> RatioInterval:
    """Estimate and interval of error `alpha` from two sides that were measured separately.

    No interval if a side has fewer than 6 values, or if 2^(1 - fewest values) > alpha. Raises ValueError for an empty
    side, or a value that is not positive and finite.
    """
    _check_error(alpha)
    minus_baseline, plus_candidate = _sides(baseline, candidate)
    n, m = len(minus_baseline), len(plus_candidate)
    shift = _shift(minus_baseline, plus_candidate)
    most = None
    if min(n, m) >= MINIMUM_REPEATS:
        most = critical(_independent_tail(minus_baseline, plus_candidate, shift), n * m // 2, alpha)
    return interval_of(shift, ordered_sums(minus_baseline, plus_candidate, _ends(most, n * m), triangle=False))


def paired_p_outside(pairs: Sequence[tuple[float, float]], margin: float) -> float | None:
    """The p-value of "the ratio is within [1/(1+margin), 1+margin]"; None below 6 blocks.

    It is at most alpha exactly if the interval of `paired_ratio` is entirely outside.
    """
    differences = _differences(pairs)
    if len(differences) < MINIMUM_REPEATS:
        return None
    against = _count_against(differences, differences, margin, 2.0, triangle=True)
    return min(1.0, 2.0 * signed_rank_tail(len(differences), against))


def independent_p_outside(baseline: Sequence[float], candidate: Sequence[float], margin: float) -> float | None:
    """As `paired_p_outside`, for `independent_ratio`; None if a side has fewer than 6 values."""
    minus_baseline, plus_candidate = _sides(baseline, candidate)
    if min(len(minus_baseline), len(plus_candidate)) < MINIMUM_REPEATS:
        return None
    against = _count_against(minus_baseline, plus_candidate, margin, 1.0, triangle=False)
    tail = _independent_tail(minus_baseline, plus_candidate, _shift(minus_baseline, plus_candidate))
    return min(1.0, 2.0 * tail(against))


def interval_of(estimate: float, ends: Sequence[float]) -> RatioInterval:
    """The ratio and its interval, from logarithms; without `ends`, there is no interval."""
    return RatioInterval(_exp(estimate), _exp(ends[0]) if ends else None, _exp(ends[1]) if ends else None)


def _middle(size: int) -> tuple[int, int]:
    return (size - 1) // 2, size // 2


def _ends(most: int | None, size: int) -> tuple[int, ...]:
    """Ranks of the ends of an interval that excludes `most` on each side."""
    return () if most is None else (most, size - 1 - most)


def _shift(minus_baseline: Sequence[float], plus_candidate: Sequence[float]) -> float:
    """The median of all differences between the sides."""
    ranks = _middle(table_size(len(minus_baseline), len(plus_candidate), triangle=False))
    return sum(ordered_sums(minus_baseline, plus_candidate, ranks, triangle=False)) / 2.0


def _independent_tail(
    minus_baseline: Sequence[float], plus_candidate: Sequence[float], shift: float
) -> Callable[[int], float]:
    return two_sample_tail(*doubled_placements(minus_baseline, plus_candidate, shift))


def _count_against(a: Sequence[float], b: Sequence[float], margin: float, terms: float, *, triangle: bool) -> int:
    """The number of sums not beyond the edge of the margin that most of them are beyond."""
    if not 0.0 <= margin < math.inf:
        raise ValueError(f"a margin must be at least 0, not {margin}")
    edge = (math.log1p(margin) + ROUNDING) * terms
    _, not_above = count_sums(a, b, edge, triangle=triangle)
    below, _ = count_sums(a, b, -edge, triangle=triangle)
    return min(not_above, table_size(len(a), len(b), triangle=triangle) - below)


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
