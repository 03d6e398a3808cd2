"""The size of a difference, worded so that more is always better: "16 % faster [14, 18]".

The model keeps the ratio of the raw figure. Users ask how much faster B is: for a figure where lower is better, that is
baseline over candidate. A time ratio of 0.86 is then "16 % faster", as is a rate ratio of 1.16.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seatrial.model.benchmark import Better
from seatrial.model.comparison import Comparison, Verdict
from seatrial.model.units import Unit

Interval = tuple[float, float]

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
_OF_SPEED: tuple[Unit, ...] = ("s", "B/s", "flop/s", "op/s", "Hz")
_TIMES = 2.0
"""From this advantage on, a factor is easier to read than a percentage."""
_MOST_DECIMALS = 4
_WIDE_PERCENT = 3.0
"""In an interval this wide (percentage points), tenths are meaningless."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Candidate over baseline, inverted if lower is better: above 1, the candidate is better.

    `plain` and `family` are the intervals of the model, inverted likewise, or None.
    """

    advantage: float
    plain: Interval | None
    family: Interval | None


def effect_of(comparison: Comparison) -> Effect | None:
    """The effect of a comparison; None if the ratio is not a positive number."""
    ratio = _oriented(comparison.ratio, comparison.better)
    if ratio is None:
        return None
    better = comparison.better
    return Effect(
        ratio, _oriented_interval(comparison.ci95, better), _oriented_interval(comparison.ci95_family, better)
    )


def margin_edges(margin: float) -> Interval:
    """The ratios between which two sides count as the same; inverting the ratio does not change them."""
    return 1 / (1 + margin), 1 + margin


def effect_words(comparison: Comparison) -> str:
    """The effect with the interval behind the verdict: "16 % faster [14, 18]", "+0.3 % [-0.4, +0.9]"."""
    effect = effect_of(comparison)
    if effect is None:
        return "no ratio"
    verdict = comparison.verdict
    interval = effect.family
    if verdict in (Verdict.SAME, Verdict.AMBIGUOUS):
        return signed_words(effect.advantage, interval, comparison.margin)
    fast, slow, good = ("faster", "slower", "fast") if is_speed(comparison.unit) else ("better", "worse", "good")
    if verdict is Verdict.FASTER and effect.advantage >= _TIMES:
        decimals = _decimals((effect.advantage, *(interval or ())), interval, least=2 if effect.advantage < 10 else 1)
        return f"{effect.advantage:.{decimals}f} times as {good}{_bracket(interval, decimals)}"
    sign = 1 if verdict is Verdict.FASTER else -1
    percent = sign * (effect.advantage - 1) * 100
    ends = None if interval is None else _ordered([sign * (end - 1) * 100 for end in interval])
    decimals = _decimals_of_percent(percent, ends, comparison.margin)
    return f"{percent:.{decimals}f} % {fast if sign > 0 else slow}{_bracket(ends, decimals)}"


def signed_words(advantage: float, interval: Interval | None, margin: float) -> str:
    """An effect without a verdict: "+1.8 % [-0.5, +4.1]", or "+1.8 %, no interval"."""
    percent = (advantage - 1) * 100
    ends = None if interval is None else ((interval[0] - 1) * 100, (interval[1] - 1) * 100)
    decimals = _decimals_of_percent(percent, ends, margin)
    if ends is None:
        return f"{signed(percent, decimals)} %, no interval"
    return f"{signed(percent, decimals)} % [{signed(ends[0], decimals)}, {signed(ends[1], decimals)}]"


def signed(value: float, decimals: int) -> str:
    """A number with its sign (a true minus), without a sign for zero."""
    text = f"{abs(value):.{decimals}f}"
    if float(text) == 0:
        return text
    return f"{MINUS if value < 0 else '+'}{text}"


def ratio_words(ratio: float | None, interval: Interval | None = None) -> str:
    """A ratio of raw figures for tables, with enough digits to separate the ends of the interval."""
    if ratio is None or not math.isfinite(ratio):
        return "unknown"
    return f"{ratio:.{_decimals((ratio,), interval, least=3)}f}"


def interval_words(interval: Interval | None) -> str:
    """An interval of a ratio: "0.847 to 0.877"; "none" if there is none."""
    if interval is None:
        return "none"
    decimals = _decimals(interval, interval, least=3)
    return f"{interval[0]:.{decimals}f} to {interval[1]:.{decimals}f}"


def margin_words(margin: float) -> str:
    """A margin: "2 %", "0.5 %"."""
    return f"{margin * 100:.4g} %"


def is_speed(unit: Unit) -> bool:
    """Whether "faster" applies; joules, watts and bytes are better or worse."""
    return unit in _OF_SPEED


def word_of(comparison: Comparison) -> str:
    """The verdict in words: "better" for watts and joules, not "faster"."""
    return verdict_word(comparison.verdict, [comparison])


def verdict_word(verdict: Verdict, comparisons: Iterable[Comparison]) -> str:
    """The same for several comparisons."""
    if all(is_speed(one.unit) for one in comparisons):
        return verdict.value
    return {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}.get(verdict, verdict.value)


def _oriented(value: float, better: Better) -> float | None:
    if not (math.isfinite(value) and value > 0):
        return None
    oriented = value if better is Better.HIGHER else 1 / value
    return oriented if math.isfinite(oriented) else None


def _oriented_interval(interval: Interval | None, better: Better) -> Interval | None:
    if interval is None:
        return None
    ends = [_oriented(end, better) for end in interval]
    known = [end for end in ends if end is not None]
    return _ordered(known) if len(known) == len(ends) else None


def _ordered(ends: Sequence[float]) -> Interval:
    return min(ends), max(ends)


def _bracket(ends: Interval | None, decimals: int) -> str:
    return "" if ends is None else f" [{_plain(ends[0], decimals)}, {_plain(ends[1], decimals)}]"


def _plain(value: float, decimals: int) -> str:
    text = f"{abs(value):.{decimals}f}"
    return f"{MINUS}{text}" if value < 0 and float(text) else text


def _decimals_of_percent(percent: float, ends: Interval | None, margin: float) -> int:
    """Enough decimals for one digit of the interval's width, and so that no end seems to lie on the margin."""
    if ends is None:
        return 0 if abs(percent) >= 10 else 1
    edges = [(edge - 1) * 100 for edge in margin_edges(margin)]
    is_coarse = abs(percent) >= 10 and ends[1] - ends[0] >= _WIDE_PERCENT
    least = 0 if is_coarse or ends[1] - ends[0] >= 10 else 1
    for decimals in range(_decimals((percent,), ends, least), _MOST_DECIMALS):
        if all(
            f"{end:.{decimals}f}" != f"{edge:.{decimals}f}" for end in ends for edge in edges if abs(end - edge) > 1e-9
        ):
            return decimals
    return _MOST_DECIMALS


def _decimals(values: Sequence[float], ends: Interval | None, least: int) -> int:
    if ends is None or not 0 < ends[1] - ends[0] < math.inf:
        return least
    half = (ends[1] - ends[0]) / 2
    return min(max(least, -math.floor(math.log10(half))), _MOST_DECIMALS)
