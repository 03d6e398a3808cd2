"""What a container costs, as extra time for the same work, beside the margin.

A time of 1.03 and a rate of 1/1.03 are both 3 % of extra time. The interval is the one that gives the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.comparison import Comparison
from seatrial.model.frozen import Frozen
from seatrial.report.studies.effect import (
    Interval,
    effect_of,
    is_speed,
    margin_words,
    signed,
    word_of,
)

_TIMES = 2.0


class Overhead(Frozen):
    """One figure: extra time as a share, its interval, and the margin, with the same in words."""

    subject: str
    comparison: Comparison
    extra: float
    interval: Interval | None

    @property
    def words(self) -> str:
        """The extra time: "+1.8 %"; from a factor of two on "x 2.31"."""
        return _words(self.extra)

    @property
    def interval_words(self) -> str:
        """Its interval: "-0.5 to +4.1 %"; "none"."""
        if self.interval is None:
            return "none"
        decimals = _decimals(max(map(abs, self.interval)))
        low, high = (_words(end, decimals) for end in self.interval)
        return f"{low.removesuffix(' %')} to {high}" if low.endswith("%") and high.endswith("%") else f"{low} to {high}"

    @property
    def margin(self) -> str:
        """The margin: "2 %"."""
        return margin_words(self.comparison.margin)

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        return word_of(self.comparison)


def overheads(comparisons: Sequence[Comparison], subjects: Sequence[str]) -> list[Overhead]:
    """One for each time or rate with a ratio, in their order; secondary figures are left out."""
    found = []
    for one, subject in zip(comparisons, subjects, strict=True):
        effect = effect_of(one)
        if effect is None or one.is_secondary or not is_speed(one.unit):
            continue
        ends = None if effect.family is None else (1 / effect.family[1] - 1, 1 / effect.family[0] - 1)
        found.append(Overhead(subject, one, 1 / effect.advantage - 1, ends))
    return found


def _words(extra: float, decimals: int | None = None) -> str:
    if extra >= _TIMES - 1:
        return f"\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{1 + extra:.3g}"
    return f"{signed(extra * 100, _decimals(extra) if decimals is None else decimals)} %"


def _decimals(extra: float) -> int:
    """The decimals of a percentage: three digits at most."""
    percent = abs(extra) * 100
    return 0 if percent >= 10 else 1 if percent >= 1 else 2
