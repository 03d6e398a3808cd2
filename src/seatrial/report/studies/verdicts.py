"""One sentence for each verdict, and advice for ambiguous ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seatrial.model.benchmark import Better
from seatrial.model.comparison import Comparison, Stopped, Verdict
from seatrial.model.parameter import Value
from seatrial.model.study_result import Compared
from seatrial.report.studies.effect import (
    effect_of,
    effect_words,
    is_speed,
    margin_edges,
    margin_words,
    signed_words,
    verdict_word,
    word_of,
)
from seatrial.report.units import count, label
from seatrial.stats.least_repeats import least_repeats
from seatrial.stats.sessions import LEAST_SESSIONS
from seatrial.stats.verdict import verdict as verdict_of

FEWEST_REPEATS = 6
"""With fewer, there is no 95 % interval of a median or a ratio."""

_TOO_MANY = 30.0
"""More repeats are not suggested beyond this multiple of those made."""

_LONGEST_NAME = 60

ORDER = (Verdict.SLOWER, Verdict.FASTER, Verdict.AMBIGUOUS, Verdict.SAME)
"""The most important first."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A verdict in words. `subject` is what was compared, `sentence` says it.

    `hint` is advice if there is no verdict, `note` a limitation.
    """

    comparison: Comparison
    subject: str
    sentence: str
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
    """The result in one line: the only verdict, or the number of each."""
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    if not comparisons:
        return "Nothing was compared: no figure was measured on two sides"
    if len(comparisons) == 1:
        return verdict_sentence(comparisons[0])
    counts = Counter(one.verdict for one in comparisons)
    numbers = ", ".join(
        f"{counts[verdict]} {verdict_word(verdict, comparisons)}" for verdict in ORDER if counts[verdict]
    )
    if len(compared) == 1:
        return f"{short(compared[0].candidate)} against {short(compared[0].baseline)}: {numbers}"
    return f"{len(comparisons)} comparisons: {numbers}"


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
    if is_apart(comparison):
        return f"no verdict on {candidate} against {base}: {_apart_words(comparison)}"
    if _is_open(comparison):
        return f"no verdict on {candidate} against {base}: {effect}"
    return f"{candidate} against {base} is ambiguous: {effect}{_reach(comparison)}"


def more_repeats(comparison: Comparison) -> str:
    """Advice that may resolve an ambiguous comparison; "" if there is a verdict, or nothing helps."""
    if comparison.verdict is not Verdict.AMBIGUOUS:
        return ""
    if comparison.baseline.is_reference or comparison.candidate.is_reference:
        return "A published value has no interval: only the ratio is known, not a verdict."
    if is_apart(comparison):
        return (
            "Measured apart: drift of the machine cannot be told from the change. For a verdict, run both sides in one "
            f"study (`seatrial run STUDY` with a `compare` section), or in {LEAST_SESSIONS} sessions each, in "
            "alternation."
        )
    if comparison.design.stopped is Stopped.UNFINISHED:
        return "The same command continues the study."
    noun = "block" if comparison.design.is_interleaved else "repeat per side"
    made = repeats_made(comparison)
    if _is_open(comparison):
        return _to_an_interval(comparison, made, noun)
    needed = _needed(comparison, made)
    if needed is None:
        return (
            f"The estimate is at the edge of the margin of {margin_words(comparison.margin)}: more repeats may never "
            "decide. Consider whether a difference of this size matters, and set `margin` accordingly."
        )
    more = _rounded(needed - made)
    return (
        f"About {count(more, f'more {noun}', f'more {_plural(noun)}')} might decide, if spread and estimate "
        f"stay the same ({made} were made)."
    )


def short(name: str) -> str:
    """A name shortened for a sentence; headings and tables have the full name."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1].rstrip()}…"


def repeats_made(comparison: Comparison) -> int:
    """The number of repeats behind the interval: blocks, or the repeats of the smaller side."""
    if comparison.design.is_interleaved:
        return comparison.design.blocks
    if comparison.design.sessions is not None and not is_apart(comparison):
        return comparison.design.sessions
    return min(len(comparison.baseline.values), len(comparison.candidate.values))


def subjects(compared: Sequence[Compared]) -> list[str]:
    """The subject of each comparison, by what distinguishes them: benchmark, figure, parameters, the two sides."""
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    everything = [one.parameters for one in comparisons]
    distinct = varying(everything)
    several = {
        "benchmark": len({one.benchmark for one in comparisons}) > 1,
        "baseline": len({one.baseline.name for one in comparisons}) > 1,
        "candidate": len({one.candidate.name for one in comparisons}) > 1,
    }
    names = []
    for one in comparisons:
        words = [one.benchmark] if several["benchmark"] else []
        words += [one.figure, *(label(name, one.parameters[name]) for name in distinct if name in one.parameters)]
        if several["candidate"] or several["baseline"]:
            against = f" against {one.baseline.name}" if several["baseline"] else ""
            words.append(f"{one.candidate.name}{against}")
        names.append(" · ".join(words))
    return names


def varying(everything: Sequence[Mapping[str, Value]]) -> list[str]:
    """The settings that vary."""
    names = dict.fromkeys(name for settings in everything for name in settings)
    return [name for name in names if any(settings.get(name) != everything[0].get(name) for settings in everything)]


def shared(everything: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """The settings that are equal everywhere."""
    if not everything:
        return {}
    differ = set(varying(everything))
    return {name: value for name, value in everything[0].items() if name not in differ}


def is_apart(comparison: Comparison) -> bool:
    """Whether the sides were measured apart, in too few sessions for a verdict."""
    sessions = comparison.design.sessions
    return sessions is not None and sessions < LEAST_SESSIONS


def session_verdict(comparison: Comparison) -> Verdict:
    """What the interval of the measured sessions alone would say: it holds for these, not for the next ones."""
    low, high = comparison.ci95 or (None, None)
    return verdict_of(low, high, comparison.margin, higher_is_better=comparison.better is Better.HIGHER)


def _apart_words(comparison: Comparison) -> str:
    """The difference between the sessions that were measured: "these two sessions differ by +5.0 % [+4.1, +5.9]"."""
    effect = effect_of(comparison)
    sessions = comparison.design.sessions or 1
    which = "these two sessions differ" if sessions == 1 else f"these {sessions} sessions per side differ"
    if effect is None:
        return f"{which}, without a ratio"
    return f"{which} by {signed_words(effect.advantage, effect.plain, comparison.margin)}"


def _is_open(comparison: Comparison) -> bool:
    """Whether there is no interval for a verdict."""
    effect = effect_of(comparison)
    return effect is None or effect.family is None


def _size(comparison: Comparison) -> float:
    effect = effect_of(comparison)
    return abs(math.log(effect.advantage)) if effect is not None else 0.0


def _reach(comparison: Comparison) -> str:
    """The verdicts that the interval allows."""
    effect = effect_of(comparison)
    if effect is None or effect.family is None:
        return ""
    low, high = margin_edges(comparison.margin)
    faster, slower = ("faster", "slower") if is_speed(comparison.unit) else ("better", "worse")
    may_be = [slower] if effect.family[0] < low else []
    may_be += ["the same"] if effect.family[1] > low and effect.family[0] < high else []
    may_be += [faster] if effect.family[1] > high else []
    return f", consistent with {' or '.join(may_be)}" if len(may_be) > 1 else ""


def _contradiction(comparison: Comparison) -> str:
    """A warning if verdict and interval contradict each other."""
    effect = effect_of(comparison)
    low, high = margin_edges(comparison.margin)
    family = effect.family if effect is not None else None
    if family is None:
        return " (a verdict without an interval: do not trust it)"
    supported = {
        Verdict.FASTER: family[0] > high,
        Verdict.SLOWER: family[1] < low,
        # The ends may be inverted, so an end on the edge may be beyond it by a rounding error.
        Verdict.SAME: family[0] >= low * (1 - 1e-12) and family[1] <= high * (1 + 1e-12),
    }
    return "" if supported[comparison.verdict] else " (the interval contradicts this: do not trust it)"


def _to_an_interval(comparison: Comparison, made: int, noun: str) -> str:
    least = least_repeats(comparison.design.alpha / max(comparison.family, 1), comparison.design.is_interleaved)
    if made >= least:
        return ""
    family = f" of {comparison.family} comparisons" if comparison.family > 1 else ""
    return (
        f"An interval{f' for a family{family}' if family else ''} needs {least} {_plural(noun)}; "
        f"{made} {'was' if made == 1 else 'were'} made."
    )


def _needed(comparison: Comparison, made: int) -> int | None:
    """The repeats needed for the nearest verdict, as the width falls with the root of their number; or None."""
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
    """Rounded up to two digits: an extrapolation is no more exact."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return -(-number // step) * step


def _plural(noun: str) -> str:
    return "blocks" if noun == "block" else "repeats per side"


NOT_COMPARED = "not compared"


def verdict_rows(compared: Compared) -> list[tuple[str, str, str]]:
    """(what was compared, verdict, ratio with its interval) of each comparison; (what, NOT_COMPARED, why) of what was
    to be compared and was not."""
    rows = []
    for one in compared.comparisons:
        settings = " ".join(label(name, value) for name, value in one.parameters.items())
        what = f"{one.benchmark} {one.figure} {settings}: {compared.candidate} against {compared.baseline}"
        ends = one.ci95_family
        interval = "no interval" if ends is None else f"interval {ends[0]:.4g} to {ends[1]:.4g}"
        rows.append((what, one.verdict.value, f"ratio {one.ratio:.4g}, {interval}, {count(one.n_repeats, 'repeat')}"))
    lost = (f"{compared.candidate} against {compared.baseline}", NOT_COMPARED)
    return [*rows, *((*lost, why) for why in compared.lost)]
