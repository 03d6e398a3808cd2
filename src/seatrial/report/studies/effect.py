"""The size of a difference: "16 % higher [14, 18]", of the raw figure like the ratio beside it.

Ratio and percent are both candidate over baseline of the raw figure, for either direction: a time ratio of 0.86 is
"14 % lower", and 1.16 is "16 % higher". Whether that is faster or slower is the verdict's word. Charts draw the
same ratio; where lower is better their axis runs from high to low, so that right is always better.

What a container costs, as extra time for the same work, beside the margin.

A time of 1.03 and a rate of 1/1.03 are both 3 % of extra time. The interval is the one that gives the verdict.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.study.comparison import Comparison, Verdict
from seatrial.model.units import Unit

Interval = tuple[float, float]

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
UNDECIDED = "undecided"
"""The word for the verdict `ambiguous`: two sides that are not distinguished are not the same."""
_OF_SPEED: tuple[Unit, ...] = ("s", "B/s", "flop/s", "op/s", "Hz")
_PER_TIME = re.compile(r"/(?:s|min|h|hour|d|day)$|^[A-Z]+PS$")
"""Labels of users that are rates: "LUP/s", "ns/day", "GUPS"."""
_TIMES = 2.0
"""From this advantage on, a factor is easier to read than a percentage."""
_SURELY_TIMES = 3.0
"""From here on, also beside a smaller one."""
_MOST_DECIMALS = 4
_WIDE_PERCENT = 3.0
"""In an interval this wide (percentage points), tenths are meaningless."""


class Effect(Frozen):
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
        ratio, _oriented_interval(comparison.plain, better), _oriented_interval(comparison.simultaneous, better)
    )


def size_of(comparison: Comparison) -> float:
    """How large the effect is in either direction; 0 without a ratio."""
    effect = effect_of(comparison)
    return abs(math.log(effect.advantage)) if effect is not None else 0.0


def margin_edges(margin: float) -> Interval:
    """The ratios between which two sides count as the same; inverting the ratio does not change them."""
    return 1 / (1 + margin), 1 + margin


def effect_words(comparison: Comparison) -> str:
    """The effect with the interval behind the verdict: "16 % higher [14, 18]", "+0.3 % [-0.4, +0.9]"."""
    if not _is_positive(comparison.ratio):
        return "no ratio"
    known = comparison.simultaneous
    interval = known if known is not None and all(map(_is_positive, known)) else None
    if comparison.verdict in (Verdict.SAME, Verdict.EQUIVALENT, Verdict.AMBIGUOUS):
        return signed_words(comparison.ratio, interval, comparison.margin)
    return change_words(comparison.ratio, interval, comparison.margin)


def change_words(ratio: float, interval: Interval | None, margin: float) -> str:
    """A change of a known direction: "14 % lower [12, 16]", from a factor of two on "higher by a factor of 2.31"."""
    higher = "higher" if ratio >= 1 else "lower"
    factor = factor_of(ratio)
    if factor >= _TIMES:
        ends = None if interval is None else _ordered([end if ratio >= 1 else 1 / end for end in interval])
        decimals = _decimals((factor, *(ends or ())), ends, least=2 if factor < 10 else 1)
        return f"{higher} by a factor of {factor:.{decimals}f}{_bracket(ends, decimals)}"
    sign = 1 if ratio >= 1 else -1
    percent = sign * (ratio - 1) * 100
    ends = None if interval is None else _ordered([sign * (end - 1) * 100 for end in interval])
    decimals = _decimals_of_percent(percent, ends, margin)
    return f"{percent:.{decimals}f} % {higher}{_bracket(ends, decimals)}"


def signed_words(ratio: float, interval: Interval | None, margin: float) -> str:
    """A change whose direction is unknown: "+1.8 % [-0.5, +4.1]", "+1.8 %, no interval"."""
    if factor_of(ratio) >= _TIMES:
        return change_words(ratio, interval, margin) + ("" if interval is not None else ", no interval")
    percent = (ratio - 1) * 100
    ends = None if interval is None else ((interval[0] - 1) * 100, (interval[1] - 1) * 100)
    decimals = _decimals_of_percent(percent, ends, margin)
    if ends is None:
        return f"{signed(percent, decimals)} %, no interval"
    return f"{signed(percent, decimals)} % [{signed(ends[0], decimals)}, {signed(ends[1], decimals)}]"


def range_words(ratios: Interval, hull: Interval | None, *, has_direction: bool) -> str:
    """Several changes together, from the smallest to the largest: "40 to 53 % lower [39, 53]", where the brackets are
    the ends of all intervals; without a direction "+1.0 to +3.0 % [-2, +9]"."""
    low, high = ratios
    factors = sorted(map(factor_of, ratios))
    if (factors[0] >= _TIMES or factors[1] >= _SURELY_TIMES) and (low >= 1) == (high >= 1):
        return _factors(low, high, hull)
    sign = 1 if low >= 1 else -1
    if not has_direction or (low >= 1) != (high >= 1):
        decimals = 0 if min(abs(low - 1), abs(high - 1)) >= 0.1 else 1
        shown = [f"{signed((ratio - 1) * 100, decimals)} %" for ratio in ratios]
        ends = None if hull is None else [(end - 1) * 100 for end in hull]
        bracket = "" if ends is None else f" [{', '.join(signed(end, _coarse(ends)) for end in ends)}]"
        return f"{shown[0] if shown[0] == shown[1] else f'{shown[0][:-2]} to {shown[1]}'}{bracket}"
    percents = sorted(sign * (ratio - 1) * 100 for ratio in ratios)
    decimals = 0 if percents[0] >= 10 else 1
    first, last = (f"{percent:.{decimals}f}" for percent in percents)
    bracket = ""
    if hull is not None:
        known = _ordered([sign * (end - 1) * 100 for end in hull])
        bracket = _bracket(known, _coarse(known))
    return f"{first if first == last else f'{first} to {last}'} % {'higher' if sign > 0 else 'lower'}{bracket}"


def _factors(low: float, high: float, hull: Interval | None) -> str:
    is_up = low >= 1
    first, last = (f"{factor:.1f}" for factor in sorted(map(factor_of, (low, high))))
    ends = None if hull is None else _ordered([end if is_up else 1 / end for end in hull])
    factors = first if first == last else f"{first} to {last}"
    return f"{'higher' if is_up else 'lower'} by a factor of {factors}{_bracket(ends, 1)}"


def _coarse(percents: Sequence[float]) -> int:
    """The decimals of the ends of an interval in percent."""
    return 0 if max(percents) - min(percents) >= 10 else 1


def factor_of(ratio: float) -> float:
    """How many times larger one side is than the other, at least 1; `ratio` is positive."""
    return max(ratio, 1 / ratio)


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


RATIO_RULE = (
    "A ratio is the median over pairs of repeats (Hodges-Lehmann), so that it can differ from the ratio of the two "
    "medians beside it."
)
_SEEN = 0.005


def ratio_rule(ratios: Iterable[tuple[float | None, float | None, float | None]]) -> str:
    """What a ratio is, if one of these visibly differs from the ratio of the values beside it (ratio, candidate,
    baseline); "" if none does."""
    known = [(ratio, a, b) for ratio, a, b in ratios if ratio and a and b]
    return RATIO_RULE if any(abs(ratio * b / a - 1) > _SEEN for ratio, a, b in known) else ""


def asks_equivalence(comparisons: Iterable[Comparison]) -> bool:
    """Whether any of them was tested for equivalence."""
    return any(one.asks_equivalence for one in comparisons)


def alike_words(verdict: Verdict, margin: float) -> str:
    """That two sides do not differ by more than the margin: "the same within 2 %", "equivalent within 2 %"."""
    return f"{'equivalent' if verdict is Verdict.EQUIVALENT else 'the same'} within {margin_words(margin)}"


def margin_words(margin: float) -> str:
    """A margin: "2 %", "0.5 %"."""
    return f"{margin * 100:.4g} %"


def noise_words(margin: float, made: int, needed: int) -> str:
    """That the interval is wide against the margin: nothing is known of a difference that small."""
    return (
        f"the noise is too large to decide; an interval as narrow as the margin of {margin_words(margin)} needs about "
        f"{rounded_up(needed)} repeats ({made} made)"
    )


def rounded_up(number: int) -> int:
    """Rounded up to two digits: an extrapolation is no more exact."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def is_speed(unit: Unit) -> bool:
    """Whether "faster" applies; joules, watts and bytes are better or worse."""
    return unit in _OF_SPEED or _PER_TIME.search(unit) is not None


def word_of(comparison: Comparison) -> str:
    """The verdict in words: "better" for watts and joules, not "faster"; `ambiguous` is "undecided"."""
    return verdict_word(comparison.verdict, [comparison])


def verdict_word(verdict: Verdict, comparisons: Iterable[Comparison]) -> str:
    """The same for several comparisons."""
    if verdict is Verdict.AMBIGUOUS:
        return UNDECIDED
    if all(is_speed(one.unit) for one in comparisons):
        return verdict.value
    return {Verdict.FASTER: "better", Verdict.SLOWER: "worse"}.get(verdict, verdict.value)


def _is_positive(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _oriented(value: float, better: Better) -> float | None:
    if not _is_positive(value):
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
        decimals = _percent_decimals(max(map(abs, self.interval)))
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
    return f"{signed(extra * 100, _percent_decimals(extra) if decimals is None else decimals)} %"


def _percent_decimals(extra: float) -> int:
    """The decimals of a percentage: three digits at most."""
    percent = abs(extra) * 100
    return 0 if percent >= 10 else 1 if percent >= 1 else 2
