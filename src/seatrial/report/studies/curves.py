"""One sentence for many points of a curve with the same verdict: "slower at all 14 points"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.analysis.stretches import is_apart
from seatrial.model.spelling import count, label
from seatrial.model.study.comparison import Comparison, Verdict
from seatrial.model.study.result import Compared
from seatrial.model.study.study import distinguishing
from seatrial.report.studies.effect import effect_of, range_words
from seatrial.report.studies.verdicts import ORDER, Statement, more_repeats, sentence_of, statements

_DIFFER = (Verdict.FASTER, Verdict.SLOWER)
_FEWEST = 3
"""With fewer points, each has its own sentence."""


def spoken(compared: Sequence[Compared]) -> list[Statement]:
    """The verdicts to be read: as `statements`, but points of a curve with the same verdict are one statement, and of
    secondary figures only those that differ."""
    made = [one for one in statements(compared) if not one.comparison.is_secondary or one.comparison.verdict in _DIFFER]
    curves: dict[object, list[Statement]] = {}
    for one in made:
        comparison = one.comparison
        sides = (comparison.baseline.experiments, comparison.candidate.experiments)
        key = (comparison.benchmark, comparison.figure, *sides) if all(sides) else id(one)
        curves.setdefault(key, []).append(one)
    found: list[Statement] = []
    for curve in curves.values():
        if len(distinguishing([one.comparison.parameters for one in curve])) != 1:
            found += curve
            continue
        for verdict in ORDER:
            same = [one for one in curve if one.comparison.verdict is verdict]
            found += same if len(same) < _FEWEST else [_of_points(same, len(curve))]
    place = {id(one.comparison): n for n, one in enumerate(made)}
    said: set[str] = set()  # advice and notes that several have in common are with the first of them only
    ordered = sorted(found, key=lambda one: place[id(one.comparison)])
    return [
        replace(one, hint="".join(said_once([one.hint], said)), note="".join(said_once([one.note], said)))
        for one in ordered
    ]


def said_once(texts: Iterable[str], said: set[str]) -> list[str]:
    """The texts that were not said before, without empty ones; adds them to `said`."""
    fresh = [text for text in dict.fromkeys(texts) if text and text not in said]
    said.update(fresh)
    return fresh


def _of_points(same: Sequence[Statement], points: int) -> Statement:
    """The statement of several points with the same verdict. The first one, with the largest difference, stands for
    them."""
    comparisons = [one.comparison for one in same]
    first = comparisons[0]
    where = f"at all {points} points" if len(same) == points else f"at {len(same)} of {points} points"
    sentence = f"{_sentence(comparisons)} {where} ({_places(comparisons)})"
    notes = "; ".join(dict.fromkeys(one.note for one in same if one.note))
    return Statement(first, first.figure, sentence, _hint(comparisons), notes)


def _sentence(comparisons: Sequence[Comparison]) -> str:
    changes = _changes(comparisons)
    apart = f"these sessions differ by {changes}" if all(map(is_apart, comparisons)) else ""
    return sentence_of(comparisons[0], changes, apart)


def _changes(comparisons: Sequence[Comparison]) -> str:
    """The smallest and the largest change, with the ends of all simultaneous intervals together if each point has
    one."""
    ratios = [one.ratio for one in comparisons if effect_of(one) is not None]
    if not ratios:
        return "no ratio"
    intervals = [one.simultaneous for one in comparisons]
    ends = [end for interval in intervals if interval is not None for end in interval]
    hull = (min(ends), max(ends)) if len(ends) == 2 * len(comparisons) else None
    has_direction = comparisons[0].verdict in (Verdict.FASTER, Verdict.SLOWER)
    words = range_words((min(ratios), max(ratios)), hull, has_direction=has_direction)
    return words if hull is not None or is_apart(comparisons[0]) else f"{words}, no interval"


def _places(comparisons: Sequence[Comparison]) -> str:
    """The points, by the one parameter that varies: "size 1 KiB to size 32 KiB"."""
    settings = [one.parameters for one in comparisons]
    (name,) = distinguishing(settings)
    values = [point[name] for point in settings if name in point]
    numbers = sorted(value for value in values if isinstance(value, int | float) and not isinstance(value, bool))
    if len(numbers) < len(settings):
        return ", ".join(label(name, value) for value in values)
    return f"{label(name, numbers[0])} to {label(name, numbers[-1])}"


def _hint(comparisons: Sequence[Comparison]) -> str:
    """The advice, if it is the same for all points."""
    hints = list(dict.fromkeys(more_repeats(one) for one in comparisons))
    if len(hints) == 1:
        return hints[0]
    if comparisons[0].verdict is not Verdict.AMBIGUOUS:
        return ""
    return f"The table shows the {count(len(comparisons), 'point')} one by one."
