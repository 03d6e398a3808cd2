"""When a comparison is decided: planned looks with an error of their own, and the end.

Whoever looks after each block and stops at the first lucky interval is wrong in 14-28 % of cases instead of 5. So there
are four looks, at numbers of blocks fixed beforehand, and the end, which the budget or the largest number of repeats
brings. The error of 5 % is shared out among them; the sum of the shares bounds the whole, whatever the distribution
(Bonferroni), and however the intervals of the same blocks depend on each other. Each share is divided by the number of
comparisons in the family, so that the intervals hold for all of them at once.

All is computed from the blocks alone: the engine that asks whether to stop and the reader that asks later what came of
it get the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.model.comparison import Verdict
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval, paired_p_outside, paired_ratio
from seatrial.stats.verdict import verdict

ALPHA = 0.05
"""The chance that any interval which may decide any comparison of a family misses the true ratio."""

LOOKS = (12, 16, 24, 36)
"""Numbers of blocks at which a comparison is looked at."""

LOOK_ALPHA = 0.0025
"""The share of a look."""

_END_SHARE = 0.8
"""What an end takes of what is left. The rest is for those who then give more time: their next end takes as much of it.
With 0.8 the first end has an interval from six blocks on (2 / 2^6 = 0.03125)."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a comparison of blocks.

    `plain` is the 95 % interval of this comparison alone, `family` the one that holds for the family and all looks at
    once and gives the verdict; both are over the first `blocks`, and `plain` lies within `family`. `alpha` is the error
    of this look or end before the family divides it. `p_outside` is the p-value of "the ratio lies within the margin",
    raised for the looks: at most ALPHA / family exactly where the verdict is that the sides differ; None below six
    blocks. `stopped_at_look` is the look that decided, None if the end had to.
    """

    plain: RatioInterval
    family: RatioInterval
    verdict: Verdict
    blocks: int
    alpha: float
    p_outside: float | None
    stopped_at_look: int | None


def end_alpha(ends: int = 1) -> float:
    """The share of the `ends`-th end; all of them and the looks together stay below ALPHA."""
    if ends < 1:
        raise ValueError(f"ends are counted from 1, not {ends}")
    left = ALPHA - LOOK_ALPHA * len(LOOKS)
    return float(left * _END_SHARE * (1.0 - _END_SHARE) ** (ends - 1))


def least_blocks(family: int, ends: int = 1) -> int:
    """How many blocks give each of `family` comparisons an interval at an end: 2^(1 - blocks) <= alpha / family."""
    blocks = MINIMUM_REPEATS
    while 2.0 ** (1 - blocks) > end_alpha(ends) / family:
        blocks += 1
    return blocks


def replay(
    pairs: Sequence[tuple[float, float]], margin: float, higher_is_better: bool, family: int, ends: int = 1
) -> Replay:
    """The answer of these blocks, each (baseline, candidate), in order of time.

    It is that of the first planned look that decides, else that of the end over all blocks. `family` is the number of
    comparisons that are judged together. `ends` is 1 at the first end, 2 where a budget had ended this comparison
    before and more time was given, and so on. ValueError: no blocks, or values that are not positive and finite.
    """
    if family < 1:
        raise ValueError(f"a family has at least one comparison, not {family}")
    for look in LOOKS:
        if look > len(pairs):
            break
        seen = paired_ratio(pairs[:look], LOOK_ALPHA / family)
        told = verdict(seen.low, seen.high, margin, higher_is_better)
        if told is not Verdict.AMBIGUOUS:
            return _answer(pairs[:look], margin, seen, told, LOOK_ALPHA, look)
    alpha = end_alpha(ends)
    seen = paired_ratio(pairs, alpha / family)
    return _answer(pairs, margin, seen, verdict(seen.low, seen.high, margin, higher_is_better), alpha, None)


def is_decided_now(pairs: Sequence[tuple[float, float]], margin: float, higher_is_better: bool, family: int) -> bool:
    """Whether to make no more blocks, as far as this comparison goes: it is time for a planned look, and this look or
    an earlier one decides. Comparisons that share blocks stop when this is true for each of them."""
    return len(pairs) in LOOKS and replay(pairs, margin, higher_is_better, family).stopped_at_look is not None


def _answer(
    pairs: Sequence[tuple[float, float]],
    margin: float,
    family: RatioInterval,
    told: Verdict,
    alpha: float,
    look: int | None,
) -> Replay:
    p = paired_p_outside(pairs, margin)
    return Replay(
        plain=paired_ratio(pairs, ALPHA),
        family=family,
        verdict=told,
        blocks=len(pairs),
        alpha=alpha,
        p_outside=None if p is None else min(1.0, p * ALPHA / alpha),
        stopped_at_look=look,
    )
