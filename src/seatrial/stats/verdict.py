"""The verdict of an interval of a ratio."""

from __future__ import annotations

from seatrial.model.comparison import Verdict
from seatrial.stats.ratio import ROUNDING


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
