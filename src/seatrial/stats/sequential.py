"""Sequential decision of a comparison: planned looks, each with its share of the error, and the end.

Looking after each block and stopping at the first conclusive interval is wrong in 14-28 % of cases instead of 5 %. So
there are four looks, at fixed numbers of blocks, and the end, when the budget or the maximum number of repeats is
reached. The error of 5 % is divided among them; the sum of the shares bounds the total for any distribution and any
dependence between the intervals (Bonferroni). Each share is divided by the number of comparisons in the family, so that
the intervals hold for all of them at once.

The points of a curve (the sizes of one benchmark) share their blocks, so they are judged together.

Equivalence is two one-sided tests, each of the whole error of a look or end: the interval of twice that error, which is
the 90 % interval where the error is 5 %. A ratio on the edge of the margin or beyond is called equivalent only if the
end of the interval on its side misses it, so the shares add up to 5 % as for a difference.

Everything is computed from the blocks alone: the engine that decides whether to stop and a later reader get the same
result.

How many blocks would decide an ambiguous comparison: an estimate from the interval that it has.

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
from collections.abc import Sequence
from statistics import NormalDist

from msgspec.structs import replace

from seatrial.model.frozen import Frozen
from seatrial.model.study.comparison import Statistic, Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS, least_repeats
from seatrial.stats.ratio import RatioInterval, coarsest, verdict

Pairs = Sequence[tuple[float, float]]
"""Blocks, each (baseline, candidate), in order of time."""

Steps = Sequence[float]
"""The half steps of each block; see `seatrial.stats.ratio`. Empty: the values are not rounded."""

ALPHA = 0.05
"""The probability that any interval that may decide a comparison of the family misses the true ratio."""

LOOKS = (12, 16, 24, 36)
"""Numbers of blocks of the planned looks."""

LOOK_ALPHA = 0.0025
"""The error share of a look."""

_END_SHARE = 0.85
"""The fraction of the remaining error that an end uses. The rest is for later ends, if the user adds more time.
With 0.85, the first end has an interval from six blocks on (2 / 2^6 = 0.03125)."""


class Replay(Frozen):
    """The result of a comparison of blocks.

    `plain` is the 95 % interval of this comparison alone; `family` holds for the family and all looks at once and gives
    the verdict. Both are over the first `blocks`, and `plain` is within `family`. `alpha` is the error of this look or
    end before division by the family. `p_outside` is the p-value of "the ratio is within the margin", adjusted for the
    looks: at most ALPHA / family exactly if the verdict is that the sides differ; None below six blocks.
    `stopped_at_look` is the look that decided, None for the end. `statistic` is what the blocks were tested with.
    `half_steps` is how much wider both intervals are for rounded values, as a logarithm, on each side. `narrow` are
    both intervals with twice the error, if equivalence is asked for.
    """

    plain: RatioInterval
    family: RatioInterval
    verdict: Verdict
    blocks: int
    alpha: float
    p_outside: float | None
    stopped_at_look: int | None
    statistic: Statistic
    half_steps: float = 0.0
    narrow: tuple[RatioInterval, RatioInterval] | None = None

    @classmethod
    def of(cls, test: BlockTest, margin: float, alpha: float) -> Replay:
        """The result of a test that is read once at this error, without a simultaneous interval yet."""
        plain, p = test.ratio(ALPHA), test.p_outside(margin)
        return cls(
            plain=plain,
            family=RatioInterval(plain.ratio, None, None),
            verdict=Verdict.AMBIGUOUS,
            blocks=test.blocks,
            alpha=alpha,
            p_outside=None if p is None else min(1.0, p * ALPHA / alpha),
            stopped_at_look=None,
            statistic=test.statistic,
            half_steps=test.half_steps,
        )


def end_alpha(ends: int = 1) -> float:
    """The error share of the `ends`-th end; all ends and looks together stay below ALPHA."""
    if ends < 1:
        raise ValueError(f"ends are counted from 1, not {ends}")
    left = ALPHA - LOOK_ALPHA * len(LOOKS)
    return float(left * _END_SHARE * (1.0 - _END_SHARE) ** (ends - 1))


def next_end_alpha(alpha: float) -> float:
    """The error share of the end after one with this share."""
    return alpha * (1.0 - _END_SHARE)


def least_blocks(family: int) -> int:
    """The blocks for an interval of each of `family` comparisons at the first end: 2^(1 - blocks) <= alpha / family."""
    blocks = MINIMUM_REPEATS
    while 2.0 ** (1 - blocks) > end_alpha() / family:
        blocks += 1
    return blocks


def replay_curve(
    points: Sequence[Pairs],
    margin: float,
    higher_is_better: bool,
    family: int,
    ends: int = 1,
    *,
    is_finished: bool = True,
    steps: Sequence[Steps] = (),
    equivalence: bool = False,
) -> list[Replay]:
    """The results at all points of a curve, each with the same blocks, (baseline, candidate) in order of time.

    Each is that of the first conclusive look, else that of the end over all blocks. `family` counts all points of all
    comparisons. `ends` is 1 at the first end, 2 if the budget or the maximum number of repeats ended this comparison
    before and more was allowed, and so on. Without `is_finished`, there was no end yet: the result is that of the looks
    alone. `steps` has the half steps of the blocks of each point. `equivalence`: the margin is one of equivalence.
    Raises ValueError without blocks, or for values that are not positive and finite.

    The simultaneous interval of a point is the intersection of its own one with the range of the whole curve, each with
    half of the error. With too few blocks for intervals of so many points, it is the range alone: six blocks suffice
    for the verdict that a candidate is slower at every size.
    """
    if not points or family < len(points):
        raise ValueError(f"a family has at least one comparison and all points of its curves, not {family}")

    def result(test: BlockTest, both: Both, alpha: float, look: int | None = None) -> Replay:
        """Of these blocks at one look or end, of error `alpha`, with its simultaneous intervals."""
        once, (low, high) = Replay.of(test, margin, alpha), both[0] or (None, None)
        return replace(
            once,
            family=RatioInterval(once.plain.ratio, low, high),
            verdict=verdict(low, high, margin, higher_is_better, both[1]),
            stopped_at_look=look,
            narrow=narrow_intervals(test, both[1]) if equivalence else None,
        )

    found: dict[int, Replay] = {}
    blocks = min(len(pairs) for pairs in points)
    widths = steps or [()] * len(points)
    for look in LOOKS:
        if look > blocks or len(found) == len(points):
            break
        tests = [BlockTest(pairs[:look], coarsest(own, look)) for pairs, own in zip(points, widths, strict=True)]
        for place, both in enumerate(both_intervals(tests, LOOK_ALPHA, family, equivalence=equivalence)):
            low, high = both[0] or (None, None)
            if place not in found and verdict(low, high, margin, higher_is_better, both[1]) is not Verdict.AMBIGUOUS:
                found[place] = result(tests[place], both, LOOK_ALPHA, look)
    if len(found) < len(points):
        alpha = end_alpha(ends)
        tests = [BlockTest(pairs, coarsest(own, len(pairs))) for pairs, own in zip(points, widths, strict=True)]
        # An unfinished comparison has no simultaneous interval: one that is computed whenever somebody looks would be
        # wrong too often.
        intervals = (
            both_intervals(tests, alpha, family, equivalence=equivalence)
            if is_finished
            else [(None, None)] * len(tests)
        )
        for place, both in enumerate(intervals):
            if place not in found:
                end = result(tests[place], both, alpha)
                found[place] = end if is_finished else replace(end, p_outside=None)
    return [found[place] for place in range(len(points))]


def are_decided_now(
    points: Sequence[Pairs],
    margin: float,
    higher_is_better: bool,
    family: int,
    steps: Sequence[Steps] = (),
    *,
    equivalence: bool = False,
) -> bool:
    """Whether the points of a curve need no more blocks: a planned look is due, and it or an earlier one is conclusive
    for each. Comparisons that share blocks stop when this is true for all of them."""
    if not all(len(pairs) in LOOKS for pairs in points):
        return False
    found = replay_curve(points, margin, higher_is_better, family, steps=steps, equivalence=equivalence)
    return all(result.stopped_at_look is not None for result in found)


Both = tuple[tuple[float, float] | None, tuple[float, float] | None]
"""A simultaneous interval, and the one with twice the error; None: too few blocks, or not asked for."""


def both_intervals(tests: Sequence[BlockTest], alpha: float, family: int, *, equivalence: bool) -> list[Both]:
    """The simultaneous interval of each point of a curve; with `equivalence`, also the one with twice the error, if
    there is the other."""
    wide = simultaneous(tests, alpha, family)
    if not equivalence:
        return [(interval, None) for interval in wide]
    narrow = simultaneous(tests, 2.0 * alpha, family)
    return [(one, other if one is not None else None) for one, other in zip(wide, narrow, strict=True)]


def narrow_intervals(test: BlockTest, ends: tuple[float, float] | None) -> tuple[RatioInterval, RatioInterval]:
    """The 90 % interval of one comparison alone, and the simultaneous one with these ends."""
    plain = test.ratio(2.0 * ALPHA)
    return plain, RatioInterval(plain.ratio, *(ends or (None, None)))


def simultaneous(tests: Sequence[BlockTest], alpha: float, family: int) -> list[tuple[float, float] | None]:
    """The simultaneous interval of each point of a curve, or None: of error `alpha` over a family of comparisons, of
    which the points are a part. The method depends only on the numbers of blocks and points."""
    if len(tests) == 1:
        return [tests[0].ratio(alpha / family).ends]
    share = alpha * len(tests) / family
    if 2.0 ** (1 - min(test.blocks for test in tests)) > alpha / 2.0 / family:
        return [_range(tests, share)] * len(tests)
    whole = _range(tests, share / 2.0)
    own = [test.ratio(alpha / 2.0 / family).ends for test in tests]
    return [one if one is None or whole is None else (max(one[0], whole[0]), min(one[1], whole[1])) for one in own]


def _range(tests: Sequence[BlockTest], alpha: float) -> tuple[float, float] | None:
    """The range that contains the ratios at all points of a curve at once: the hull of their intervals, each of the
    whole error. It needs no correction for their number, since its lower end is too high only if that of the point with
    the smallest true ratio is (the intersection-union principle: Berger, Technometrics 24, 1982)."""
    intervals = [test.ratio(alpha).ends for test in tests]
    known = [ends for ends in intervals if ends is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(tests) else None


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
