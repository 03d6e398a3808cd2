"""One sentence for each verdict, and what to do about those that are none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatrial.model.comparison import Comparison, Verdict
from seatrial.model.parameter import Value
from seatrial.model.study_result import Compared
from seatrial.report.studies.effect import (
    effect_of,
    effect_words,
    is_speed,
    margin_edges,
    margin_words,
    verdict_word,
    word_of,
)
from seatrial.report.units import count, label

FEWEST_REPEATS = 6
"""Below it there is no 95 % interval of a median, nor of a ratio."""

_TOO_MANY = 30.0
"""Beyond so many times the repeats made, more of them are no advice."""

_LONGEST_NAME = 60

ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.AMBIGUOUS, Verdict.SAME)
"""What must not be missed first."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict in words. `subject` is what was compared, `said` the sentence without its interval's explanation.

    `hint` says what would help where there is no verdict, `note` what limits it.
    """

    comparison: Comparison
    subject: str
    said: str
    hint: str
    note: str

    @property
    def word(self) -> str:
        """The verdict alone."""
        return word_of(self.comparison)


def statements(compared: Sequence[Compared]) -> list[Statement]:
    """All verdicts: slower first, then faster, ambiguous, same; within each the largest difference first."""
    names = subjects(compared)
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    made = [
        Statement(one, name, verdict_sentence(one), more_repeats(one), one.note)
        for one, name in zip(comparisons, names, strict=True)
    ]
    return sorted(made, key=lambda each: (ORDER.index(each.comparison.verdict), -_size(each.comparison)))


def headline(compared: Sequence[Compared]) -> str:
    """The answer in one line: the only verdict, or how many of each."""
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    if not comparisons:
        return "Nothing could be compared: no figure was measured on both sides"
    if len(comparisons) == 1:
        return verdict_sentence(comparisons[0])
    counts = Counter(one.verdict for one in comparisons)
    told = ", ".join(f"{counts[verdict]} {verdict_word(verdict, comparisons)}" for verdict in ORDER if counts[verdict])
    if len(compared) == 1:
        return f"{short(compared[0].candidate)} against {short(compared[0].baseline)}: {told}"
    return f"{len(comparisons)} comparisons: {told}"


def verdict_sentence(comparison: Comparison) -> str:
    """The verdict with its interval, without a full stop: "B is 16 % faster [14, 18]"."""
    base, candidate = short(comparison.baseline.name), short(comparison.candidate.name)
    effect = effect_words(comparison)
    margin = margin_words(comparison.margin)
    match comparison.verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            against = "" if effect.endswith("]") else f" than {base}"
            return f"{candidate} is {effect}{against}{_contradiction(comparison)}"
        case Verdict.SAME:
            return f"{candidate} and {base} are the same within {margin}: {effect}{_contradiction(comparison)}"
    if _is_open(comparison):
        return f"no verdict on {candidate} against {base}: {effect}"
    return f"{candidate} against {base} is ambiguous: {effect}{_reach(comparison)}"


def more_repeats(comparison: Comparison) -> str:
    """What might turn an ambiguous comparison into a verdict; "" if there is one, or nothing helps."""
    if comparison.verdict is not Verdict.AMBIGUOUS:
        return ""
    if comparison.baseline.is_reference or comparison.candidate.is_reference:
        return "A published value has no interval: what can be said is the ratio, not a verdict."
    noun = "block" if comparison.design.is_interleaved else "repeat of each side"
    made = repeats_made(comparison)
    if _is_open(comparison):
        return _to_an_interval(comparison, made, noun)
    needed = _needed(comparison, made)
    if needed is None:
        return (
            f"The estimate lies on the edge of the margin of {margin_words(comparison.margin)}: more repeats may never "
            "tell. Ask whether a difference of this size matters, and set `margin` by that."
        )
    more = _rounded(needed - made)
    return (
        f"About {count(more, f'more {noun}', f'more {_plural(noun)}')} might tell, if spread and estimate "
        f"stay as they are ({made} were made)."
    )


def short(name: str) -> str:
    """A name as it stands in a sentence; the whole of it stands in headings and tables."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1].rstrip()}…"


def repeats_made(comparison: Comparison) -> int:
    """The repeats behind the interval: blocks, or those of the smaller side."""
    if comparison.design.is_interleaved:
        return comparison.design.blocks
    return min(len(comparison.baseline.values), len(comparison.candidate.values))


def subjects(compared: Sequence[Compared]) -> list[str]:
    """What each comparison is about, by what tells them apart: benchmark, figure, parameters, the two sides."""
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    everything = [one.parameters for one in comparisons]
    telling = varying(everything)
    several = {
        "benchmark": len({one.benchmark for one in comparisons}) > 1,
        "baseline": len({one.baseline.name for one in comparisons}) > 1,
        "candidate": len({one.candidate.name for one in comparisons}) > 1,
    }
    names = []
    for one in comparisons:
        words = [one.benchmark] if several["benchmark"] else []
        words += [one.figure, *(label(name, one.parameters[name]) for name in telling if name in one.parameters)]
        if several["candidate"] or several["baseline"]:
            against = f" against {one.baseline.name}" if several["baseline"] else ""
            words.append(f"{one.candidate.name}{against}")
        names.append(" · ".join(words))
    return names


def varying(everything: Sequence[Mapping[str, Value]]) -> list[str]:
    """The settings that are not the same everywhere."""
    names = dict.fromkeys(name for settings in everything for name in settings)
    return [name for name in names if any(settings.get(name) != everything[0].get(name) for settings in everything)]


def shared(everything: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """The settings that are the same everywhere."""
    if not everything:
        return {}
    differ = set(varying(everything))
    return {name: value for name, value in everything[0].items() if name not in differ}


def _is_open(comparison: Comparison) -> bool:
    """Whether there is no interval that a verdict could rest on."""
    effect = effect_of(comparison)
    return effect is None or effect.family is None


def _size(comparison: Comparison) -> float:
    effect = effect_of(comparison)
    return abs(math.log(effect.advantage)) if effect is not None else 0.0


def _reach(comparison: Comparison) -> str:
    """Which answers the interval leaves open."""
    effect = effect_of(comparison)
    if effect is None or effect.family is None:
        return ""
    low, high = margin_edges(comparison.margin)
    faster, slower = ("faster", "slower") if is_speed(comparison.unit) else ("better", "worse")
    may_be = [slower] if effect.family[0] < low else []
    may_be += ["the same"] if effect.family[1] > low and effect.family[0] < high else []
    may_be += [faster] if effect.family[1] > high else []
    return f", which leaves open {' or '.join(may_be)}" if len(may_be) > 1 else ""


def _contradiction(comparison: Comparison) -> str:
    """Words of alarm where verdict and interval disagree: no page may say one and show the other."""
    effect = effect_of(comparison)
    low, high = margin_edges(comparison.margin)
    family = effect.family if effect is not None else None
    if family is None:
        return " (a verdict without an interval: do not trust it)"
    supported = {
        Verdict.FASTER: family[0] > high,
        Verdict.SLOWER: family[1] < low,
        # The ends are turned by a division, so that an end on the edge may lie a rounding beyond it.
        Verdict.SAME: family[0] >= low * (1 - 1e-12) and family[1] <= high * (1 + 1e-12),
    }
    return "" if supported[comparison.verdict] else " (the interval does not bear this out: do not trust it)"


def _to_an_interval(comparison: Comparison, made: int, noun: str) -> str:
    least = least_repeats(comparison.design.alpha / max(comparison.family, 1), comparison.design.is_interleaved)
    if made >= least:
        return ""
    family = f" of {comparison.family} comparisons" if comparison.family > 1 else ""
    return (
        f"An interval{f' for a family{family}' if family else ''} needs {least} {_plural(noun)}; "
        f"{made} {'was' if made == 1 else 'were'} made."
    )


def least_repeats(alpha: float, is_paired: bool) -> int:
    """The fewest repeats of each side at which a rank test can be as sure as `alpha` asks, two-sided; at least six.

    The most extreme order has the probability 2^-n among signed ranks of n pairs, and 1 / C(2n, n) among the ranks of n
    and n values (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, chapters 3 and 4).
    """
    n = FEWEST_REPEATS
    while 2.0 / (2**n if is_paired else math.comb(2 * n, n)) > alpha and n < 1000:
        n += 1
    return n


def _needed(comparison: Comparison, made: int) -> int | None:
    """How many repeats the nearest verdict would take, as the width falls with the root of their number; or None."""
    effect = effect_of(comparison)
    if effect is None or effect.family is None or made < 1:
        return None
    middle = abs(math.log(effect.advantage))
    half = max(math.log(end / effect.advantage) * sign for end, sign in zip(effect.family, (-1, 1), strict=True))
    room = abs(middle - math.log1p(comparison.margin))
    if room <= 0 or half <= 0 or half / room > math.sqrt(_TOO_MANY):
        return None
    return max(made + 1, math.ceil(made * (half / room) ** 2))


def _rounded(number: int) -> int:
    """Upwards to two digits: an extrapolation is worth no more."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def _plural(noun: str) -> str:
    return "blocks" if noun == "block" else "repeats of each side"
