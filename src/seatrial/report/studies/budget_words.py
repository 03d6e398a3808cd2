"""What a study that its budget left undecided would need, in a sentence."""

from __future__ import annotations

from seatrial.model.durations import budget_for, duration
from seatrial.model.needed_budget import NeededBudget
from seatrial.model.study import RepeatPolicy
from seatrial.report.units import count


def budget_sentence(needed: NeededBudget, policy: RepeatPolicy) -> str:
    """The budget, and the maximum number of repeats if that is too small as well."""
    undecided = f"{count(needed.undecided, 'comparison')} undecided within {duration(policy.budget_s)}"
    if needed.budget_s is None:
        return (
            f"{undecided}: which budget would decide is unknown, because a ratio is too close to the edge of the margin"
        )
    budget_s = max(needed.budget_s, policy.budget_s)
    maximum = f" and max: {needed.repeats}" if needed.repeats > policy.maximum else ""
    if needed.is_least:
        return (
            f"{undecided}: an interval of each needs a budget of about {budget_for(budget_s)}{maximum}, "
            "a verdict maybe more"
        )
    return (
        f"{undecided}: a budget of about {budget_for(budget_s)}{maximum} would probably decide "
        f"(estimated from the widths of the intervals, which shrink with the square root of the repeats)"
    )
