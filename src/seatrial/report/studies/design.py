"""Whether a comparison was fair: how and where it was made, why it stopped, what else differed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.analysis.missing_cpus import missing_of_sides
from seatrial.analysis.stretches import is_apart, repeats_made
from seatrial.model.results.no_cpu import worst_of
from seatrial.model.spelling import count, few_names, label
from seatrial.model.study.comparison import Comparison, Difference, Stopped, Verdict
from seatrial.model.study.result import Compared
from seatrial.model.study.study import distinguishing
from seatrial.report.blocks import Aspect
from seatrial.report.studies.effect import effect_of, margin_words, range_words
from seatrial.report.studies.verdicts import FEWEST_REPEATS, ORDER, Statement, more_repeats, sentence_of, statements
from seatrial.stats.sequential import ALPHA

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


_MOST_NAMES = 4

_WHY = {
    Stopped.DECIDED: "the interval was conclusive at a planned look",
    Stopped.BUDGET: "the budget was spent",
    Stopped.MAXIMUM: "the maximum number of repeats was reached",
    Stopped.UNFINISHED: "the run was interrupted (the same command continues it); verdicts are read at planned looks",
    Stopped.NOT_PLANNED: "existing repeats were compared; their number was not planned for this",
}


def design_lines(compared: Sequence[Compared]) -> list[Aspect]:
    """The design of all comparisons together."""
    comparisons = [comparison for one in compared for comparison in one.comparisons]
    if not comparisons:
        return [Aspect("Scope", text) for text in scopes(compared)]
    lines = [aspect(comparisons) for aspect in (_order, _place, _looks, _stopped, _margin, _errors)]
    return [*filter(None, lines), *(Aspect("Scope", text) for text in scopes(compared))]


def scopes(compared: Sequence[Compared]) -> list[str]:
    """The distinct sentences on the validity of the verdicts."""
    return [scope for scope in dict.fromkeys(one.scope.strip() for one in compared) if scope]


def unintended_first(compared: Sequence[Compared]) -> list[tuple[Compared, Difference]]:
    """All differences with their pair of sides, unintended ones first."""
    pairs = [(one, difference) for one in compared for difference in one.differences]
    return sorted(pairs, key=lambda pair: pair[1].intended)


def fairness_headline(compared: Sequence[Compared]) -> str:
    """The number of unintended differences: "2 unintended differences", or that there are none; after the sides that
    had no CPU."""
    missing = missing_of_sides(each for one in compared for each in one.comparisons)
    if missing:
        several = ", and others had none for part of it" if len(missing) > 1 else ""
        return f"{worst_of(missing).short}{several}: the ratios include this. {_differences_counted(compared)}"
    return _differences_counted(compared)


def _differences_counted(compared: Sequence[Compared]) -> str:
    unintended = sum(len(one.unintended) for one in compared)
    if unintended:
        return f"{count(unintended, 'unintended difference')} between the sides"
    if not any(one.comparisons for one in compared):
        return "Nothing was compared"
    if not all(one.is_described for one in compared):
        return "Other differences are unknown: one side has no data about its machine"
    return "No differences found other than the intended ones"


def _order(comparisons: Sequence[Comparison]) -> Aspect:
    measured = [one for one in comparisons if not one.baseline.is_reference and not one.candidate.is_reference]
    if not measured:
        return Aspect("Order", "measured repeats against a published value, which has no repeats", True)
    together = [one for one in measured if one.design.is_interleaved]
    apart = len(measured) - len(together)
    if not apart:
        text = f"interleaved, {_numbers([one.design.blocks for one in together], 'block')} of one repeat per side in "
        return Aspect("Order", text + "random order: drift of the machine affects both sides equally")
    text = "not interleaved: the sides were measured apart, so a change of the machine may affect only one of them"
    if together:
        text = f"{apart} of {len(measured)} comparisons are {text}; the rest are interleaved in blocks"
    repeats = _numbers([repeats_made(one) for one in measured], "repeat")
    return Aspect("Order", f"{text}; {repeats} per side", True)


def _place(comparisons: Sequence[Comparison]) -> Aspect:
    base = list(dict.fromkeys(host for one in comparisons for host in one.baseline.hosts))
    candidate = list(dict.fromkeys(host for one in comparisons for host in one.candidate.hosts))
    if not base or not candidate:
        return Aspect("Node", "unknown for at least one side", True)
    if set(base) != set(candidate):
        both = f"{few_names(base, _MOST_NAMES)} is compared with {few_names(candidate, _MOST_NAMES)}"
        text = f"two machines: {both}; a verdict is about these machines, not only about the setting"
        return Aspect("Node", text, True)
    if len(base) == 1:
        return Aspect("Node", f"the same for both sides: {base[0]}")
    return Aspect("Node", f"the same {len(base)} nodes for both sides: {few_names(base, _MOST_NAMES)}")


def _looks(comparisons: Sequence[Comparison]) -> Aspect | None:
    looks = list(dict.fromkeys(one.design.looks for one in comparisons if one.design.looks))
    if not looks:
        return Aspect("Looks", "none planned: the interval was computed once, over all repeats")
    when = f"with {len(looks)} different schedules"
    if len(looks) == 1:
        *first, last = map(str, looks[0])
        when = f"after {' and '.join(filter(None, (', '.join(first), last)))} blocks"
    between = "" if len(looks) == 1 else ","
    return Aspect("Looks", f"planned{between} {when}; the intervals account for every look")


def _stopped(comparisons: Sequence[Comparison]) -> Aspect | None:
    counts = Counter(one.design.stopped for one in comparisons)
    if len(counts) == 1:
        (why,) = counts
        return Aspect("Stopped", _WHY[why] if why is Stopped.NOT_PLANNED else f"because {_WHY[why]}")
    reasons = "; ".join(f"{counts[stopped]} because {_WHY[stopped]}" for stopped in Stopped if counts[stopped])
    return Aspect("Stopped", reasons)


def _margin(comparisons: Sequence[Comparison]) -> Aspect:
    margins = sorted({one.margin for one in comparisons})
    families = sorted({one.family for one in comparisons})
    alphas = [f"{alpha * 100:.3g}" for alpha in sorted({one.design.alpha for one in comparisons})]
    asked = [one.asks_equivalence for one in comparisons]
    inside = [] if all(asked) else ["`same` if the interval is entirely inside it"]
    if any(asked):
        inside.append(
            "`equivalent` if the 90 % interval is entirely inside it (two one-sided tests, each with the whole error "
            "rate)"
        )
    text = (
        f"{' or '.join(map(margin_words, margins))}. A verdict is {', '.join(inside)}, "
        "`faster` or `slower` if entirely outside, else undecided (`ambiguous` in JSON): the interval "
        "allows more than one verdict. "
        f"The intervals are for an error rate of {_ends(alphas)} %"
    )
    text += f", divided by the family of {_ends(families)} comparisons." if families != [1] else "."
    few = [one for one in comparisons if 0 < repeats_made(one) < FEWEST_REPEATS]
    if few:
        text += f" {len(few)} of {len(comparisons)} have fewer than {FEWEST_REPEATS} repeats and therefore no interval."
    return Aspect("Margin", text)


def _ends(ordered: Sequence[object]) -> str:
    return f"{ordered[0]}" if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _errors(comparisons: Sequence[Comparison]) -> Aspect | None:
    """How often any verdict of the page is wrong."""
    families = len({(one.benchmark, one.figure) for one in comparisons if one.ci95_family is not None})
    if not families:
        return None
    share = f"{ALPHA * 100:.3g} %"
    if families == 1:
        return Aspect("Errors", f"in at most {share} of such studies, any verdict is wrong")
    most = ALPHA * families
    page = f"in at most {most * 100:.3g} % of such studies" if most < 1 else "a wrong one among them must be expected"
    text = (
        f"the verdicts on one figure of one benchmark are a family, with any of them wrong in at most {share} of such "
    )
    return Aspect("Errors", f"{text}studies; of all {families} families together, {page}")


def _numbers(values: Iterable[int], noun: str) -> str:
    ordered = sorted(values)
    low, high = ordered[0], ordered[-1]
    return count(low, noun) if low == high else f"{low} to {high} {noun}s"
