"""When an experiment has enough repeats: planned looks, never peeking.

A rule that looks after every repeat stops at the first lucky interval, and one that waits for a small standard
deviation spends its whole budget on a noisy machine (nvbench issue 61). So there are at most five looks, at fixed
numbers of repeats, and the error of 5 % is divided equally (Bonferroni: 1 % each, hence 99 % intervals at each look):
the probability that any of the intervals that may stop the experiment misses the median stays below 5 %. Repeats that
depend on the one before have wider intervals, or none, so that they do not stop an experiment early.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from seatrial.model.frozen import Frozen
from seatrial.stats.dependence import dependence
from seatrial.stats.interval import MINIMUM_REPEATS, median_interval

LOOKS = (8, 12, 18, 27, 40)
"""Numbers of repeats at which the precision is checked. Eight is the smallest with a 99 % interval."""

_LOOK_CONFIDENCE = 1.0 - 0.05 / len(LOOKS)


class Stop(StrEnum):
    """Why no more repeats are made."""

    PRECISE = "precise"  # every figure's interval is narrow enough
    BUDGET = "budget"  # the next repeat would exceed the time budget
    COMPLETE = "complete"  # the maximum number was made


class StoppingRule(Frozen):
    """`precision`: half width of the interval relative to the median (0.01 is 1 %); `budget_s`: time of all repeats;
    `maximum`: the largest number of repeats; `minimum`: repeats that are made regardless of the budget."""

    precision: float = 0.01
    budget_s: float = 20.0
    maximum: int = LOOKS[-1]
    minimum: int = MINIMUM_REPEATS

    def decide(
        self, figures: Sequence[Sequence[float]], spent_s: float, next_s: float, *, n: int | None = None
    ) -> Stop | None:
        """The reason to stop after these repeats, or None to continue.

        `figures` has, for each figure, the values of all repeats so far, in order of time, all of the same length;
        `spent_s` is their time, `next_s` the expected time of the next. Only the planned looks count: values between
        looks are never used to decide. So with the number of repeats in `n`, values up to the last look suffice.
        """
        if n is None:
            n = max((len(values) for values in figures), default=0)
        if n < self.minimum:
            return None
        for look in LOOKS:
            if n >= look and all(self._is_precise(values[:look]) for values in figures):
                return Stop.PRECISE
        if n >= self.maximum:
            return Stop.COMPLETE
        if spent_s + next_s > self.budget_s:
            return Stop.BUDGET
        return None

    def _is_precise(self, values: Sequence[float]) -> bool:
        interval = median_interval(values, _LOOK_CONFIDENCE, dependence(values))
        if interval is None:
            return False
        low, high = interval
        middle = abs(low + high) / 2.0
        return (high - low) / 2.0 <= self.precision * middle
