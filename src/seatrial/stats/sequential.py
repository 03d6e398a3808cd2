"""Sequential decision of a comparison: planned looks, each with its share of the error, and the end.

Looking after each block and stopping at the first conclusive interval is wrong in 14-28 % of cases instead of 5 %. So
there are four looks, at fixed numbers of blocks, and the end, when the budget or the maximum number of repeats is
reached. The error of 5 % is divided among them; the sum of the shares bounds the total for any distribution and any
dependence between the intervals (Bonferroni). Each share is divided by the number of comparisons in the family, so that
the intervals hold for all of them at once.

Everything is computed from the blocks alone: the engine that decides whether to stop and a later reader get the same
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.model.comparison import Statistic, Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval
from seatrial.stats.verdict import verdict

ALPHA = 0.05
"""The probability that any interval that may decide a comparison of the family misses the true ratio."""

LOOKS = (12, 16, 24, 36)
"""Numbers of blocks of the planned looks."""

LOOK_ALPHA = 0.0025
"""The error share of a look."""

_END_SHARE = 0.8
"""The fraction of the remaining error that an end uses. The rest is for later ends, if the user adds more time.
With 0.8, the first end has an interval from six blocks on (2 / 2^6 = 0.03125)."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a comparison of blocks.

    `plain` is the 95 % interval of this comparison alone; `family` holds for the family and all looks at once and gives
    the verdict. Both are over the first `blocks`, and `plain` is within `family`. `alpha` is the error of this look or
    end before division by the family. `p_outside` is the p-value of "the ratio is within the margin", adjusted for the
    looks: at most ALPHA / family exactly if the verdict is that the sides differ; None below six blocks.
    `stopped_at_look` is the look that decided, None for the end. `statistic` is what the blocks were tested with.
    """

    plain: RatioInterval
    family: RatioInterval
    verdict: Verdict
    blocks: int
    alpha: float
    p_outside: float | None
    stopped_at_look: int | None
    statistic: Statistic


def end_alpha(ends: int = 1) -> float:
    """The error share of the `ends`-th end; all ends and looks together stay below ALPHA."""
    if ends < 1:
        raise ValueError(f"ends are counted from 1, not {ends}")
    left = ALPHA - LOOK_ALPHA * len(LOOKS)
    return float(left * _END_SHARE * (1.0 - _END_SHARE) ** (ends - 1))


def least_blocks(family: int, ends: int = 1) -> int:
    """The blocks needed for an interval of each of `family` comparisons at an end: 2^(1 - blocks) <= alpha / family."""
    blocks = MINIMUM_REPEATS
    while 2.0 ** (1 - blocks) > end_alpha(ends) / family:
        blocks += 1
    return blocks


def replay(
    pairs: Sequence[tuple[float, float]], margin: float, higher_is_better: bool, family: int, ends: int = 1
) -> Replay:
    """The result of these blocks, each (baseline, candidate), in order of time.

    It is that of the first conclusive look, else that of the end over all blocks. `family` is the number of comparisons
    in the family. `ends` is 1 at the first end, 2 if a budget ended this comparison before and more time was added, and
    so on. Raises ValueError without blocks, or for values that are not positive and finite.
    """
    if family < 1:
        raise ValueError(f"a family has at least one comparison, not {family}")
    for look in LOOKS:
        if look > len(pairs):
            break
        test = BlockTest(pairs[:look])
        seen = test.ratio(LOOK_ALPHA / family)
        decision = verdict(seen.low, seen.high, margin, higher_is_better)
        if decision is not Verdict.AMBIGUOUS:
            return _result(test, look, margin, seen, decision, LOOK_ALPHA, look)
    alpha = end_alpha(ends)
    test = BlockTest(pairs)
    seen = test.ratio(alpha / family)
    decision = verdict(seen.low, seen.high, margin, higher_is_better)
    return _result(test, len(pairs), margin, seen, decision, alpha, None)


def is_decided_now(pairs: Sequence[tuple[float, float]], margin: float, higher_is_better: bool, family: int) -> bool:
    """Whether this comparison needs no more blocks: a planned look is due, and it or an earlier one is conclusive.
    Comparisons that share blocks stop when this is true for all of them."""
    return len(pairs) in LOOKS and replay(pairs, margin, higher_is_better, family).stopped_at_look is not None


def _result(
    test: BlockTest,
    blocks: int,
    margin: float,
    family: RatioInterval,
    decision: Verdict,
    alpha: float,
    look: int | None,
) -> Replay:
    p = test.p_outside(margin)
    return Replay(
        plain=test.ratio(ALPHA),
        family=family,
        verdict=decision,
        blocks=blocks,
        alpha=alpha,
        p_outside=None if p is None else min(1.0, p * ALPHA / alpha),
        stopped_at_look=look,
        statistic=test.statistic,
    )
