"""The budget that would decide the comparisons that a study left ambiguous."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from seatrial.analysis.needed_repeats import needed_repeats
from seatrial.model.comparison import Comparison, Stopped, Verdict, decisive
from seatrial.model.needed_budget import NeededBudget

ROOM = 1.1
"""Repeats do not all take the same time, nor does each estimate need exactly as many."""


def needed_budget(
    comparisons: Iterable[Comparison], repeat_s: Mapping[str, float], spent_s: float
) -> NeededBudget | None:
    """What the ambiguous comparisons of a finished study still need; None if there are none.

    `repeat_s` has the mean time of a repeat by the id of its experiment, `spent_s` the time that the study took so far
    and that another start of the command takes, both in seconds. Sides that are measured in the same blocks need as
    many as the comparison that needs most.
    """
    comparisons = decisive(comparisons)
    points = Counter(map(_curve, comparisons))
    undecided = [one for one in comparisons if _is_short_of_repeats(one)]
    if not undecided:
        return None
    missing: dict[str, int] = {}
    repeats, is_known = 0, True
    for one in undecided:
        made = one.design.blocks
        needed = needed_repeats(one, points[_curve(one)])
        if needed is None:
            is_known = False
            continue
        repeats = max(repeats, needed)
        for key in (*one.baseline.experiments, *one.candidate.experiments):
            missing[key] = max(missing.get(key, 0), needed - made)
    more_s = sum(count * repeat_s.get(key, 0.0) for key, count in missing.items())
    budget_s = spent_s + ROOM * more_s if is_known else None
    return NeededBudget(len(undecided), budget_s, repeats, any(one.ci95_family is None for one in undecided))


def _curve(one: Comparison) -> Hashable:
    return (one.benchmark, one.figure, one.baseline.experiments, one.candidate.experiments)


def _is_short_of_repeats(one: Comparison) -> bool:
    """Whether a comparison is ambiguous because its blocks ended."""
    ended = one.design.stopped in (Stopped.BUDGET, Stopped.MAXIMUM)
    return one.verdict is Verdict.AMBIGUOUS and ended and one.design.is_interleaved
