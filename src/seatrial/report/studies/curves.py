"""One sentence for many points of a curve with the same verdict: "slower at all 14 points"."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.comparison import Comparison, Verdict
from seatrial.model.study_result import Compared
from seatrial.report.studies.effect import Effect, effect_of, is_speed, margin_words, signed
from seatrial.report.studies.verdicts import ORDER, Statement, is_apart, more_repeats, short, statements, varying
from seatrial.report.units import count, label

_FEWEST = 3
"""With fewer points, each has its own sentence."""


def spoken(compared: Sequence[Compared]) -> list[Statement]:
    """The verdicts to be read: as `statements`, but points of a curve with the same verdict are one statement."""
    made = statements(compared)
    curves: dict[object, list[Statement]] = {}
    for one in made:
        comparison = one.comparison
        sides = (comparison.baseline.experiments, comparison.candidate.experiments)
        key = (comparison.benchmark, comparison.figure, *sides) if all(sides) else id(one)
        curves.setdefault(key, []).append(one)
    found: list[Statement] = []
    for curve in curves.values():
        if len(varying([one.comparison.parameters for one in curve])) != 1:
            found += curve
            continue
        for verdict in ORDER:
            same = [one for one in curve if one.comparison.verdict is verdict]
            found += same if len(same) < _FEWEST else [_of_points(same, len(curve))]
    place = {id(one.comparison): n for n, one in enumerate(made)}
    return sorted(found, key=lambda one: place[id(one.comparison)])


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
    first = comparisons[0]
    base, candidate = short(first.baseline.name), short(first.candidate.name)
    effects = [effect for one in comparisons if (effect := effect_of(one)) is not None]
    match first.verdict:
        case Verdict.FASTER | Verdict.SLOWER:
            is_up = first.verdict is Verdict.FASTER
            words = ("faster", "slower") if is_speed(first.unit) else ("better", "worse")
            word, sign = (words[0], 1) if is_up else (words[1], -1)
            return f"{candidate} is {_percents(effects, sign)} {word}{_ends(effects, sign)} than {base}"
        case Verdict.SAME:
            same = f"{candidate} and {base} are the same within {margin_words(first.margin)}"
            return f"{same} ({_signed(effects)}{_ends(effects)})"
    if all(is_apart(one) for one in comparisons):
        return f"no verdict on {candidate} against {base}: these sessions differ by {_signed(effects)}"
    if all(one.ci95_family is None for one in comparisons):
        return f"no verdict on {candidate} against {base}: {_signed(effects)}, no interval"
    return f"{candidate} against {base} is ambiguous: {_signed(effects)}{_ends(effects)}"


def _percents(effects: Sequence[Effect], sign: int) -> str:
    """A range of differences, all in one direction: "40 to 60 %"."""
    low, *_, high = sorted(sign * (effect.advantage - 1) * 100 for effect in effects)
    decimals = 0 if low >= 10 else 1
    return _range(f"{low:.{decimals}f}", f"{high:.{decimals}f}")


def _ends(effects: Sequence[Effect], sign: int = 0) -> str:
    """The ends of all simultaneous intervals together: " [38, 55]"; "" if a point has none. `sign` 0: with signs."""
    intervals = [effect.family for effect in effects if effect.family is not None]
    if len(intervals) < len(effects) or not intervals:
        return ""
    ends = sorted((sign or 1) * (end - 1) * 100 for interval in intervals for end in interval)
    decimals = 0 if ends[-1] - ends[0] >= 10 else 1
    low, high = (signed(end, decimals) if sign == 0 else f"{end:.{decimals}f}" for end in (ends[0], ends[-1]))
    return f" [{low}, {high}]"


def _signed(effects: Sequence[Effect]) -> str:
    ordered = sorted((effect.advantage - 1) * 100 for effect in effects)
    return _range(signed(ordered[0], 1), signed(ordered[-1], 1)) if ordered else "no ratio"


def _range(low: str, high: str) -> str:
    return f"{low} %" if low == high else f"{low} to {high} %"


def _places(comparisons: Sequence[Comparison]) -> str:
    """The points, by the one parameter that varies: "size 1 KiB to size 32 KiB"."""
    settings = [one.parameters for one in comparisons]
    (name,) = varying(settings)
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
