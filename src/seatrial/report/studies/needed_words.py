"""What the undecided comparisons of a study still need, in words for the page: repeats, time, budget."""

from __future__ import annotations

from seatrial.model.answer import Answer, Undecided
from seatrial.model.durations import budget_for, duration
from seatrial.report.studies.effect import UNDECIDED
from seatrial.report.units import count


def needed_words(answer: Answer) -> str:
    """How many are undecided, the repeats and the time that may decide them, and the budget to give; without a full
    stop. "" if nothing is undecided, or if no time is known to help."""
    if not answer.undecided or answer.more_s is None:
        return ""
    some = "" if answer.decidable == answer.undecided else f"; for {answer.decidable} of them"
    text = f"{answer.undecided} of {answer.asked} {UNDECIDED}{some}: {_repeats(answer)}{_time(answer)}"
    if answer.budget_s is None:
        return text
    maximum = "" if answer.maximum is None else f" and `max: {answer.maximum}` in the study"
    budget = budget_for(answer.budget_s)
    return f"{text}. With --budget {budget}{maximum}, the same command goes on from these repeats"


def _repeats(answer: Answer) -> str:
    """The most repeats that one of them needs; "" if it is a matter of time only."""
    needs = [
        (one.needed, min(one.made))
        for one in answer.stretches
        if one.why in (Undecided.FEW, Undecided.WIDE) and one.needed is not None
    ]
    needs += [(one.needed, one.made) for one in answer.reaches if one.needed is not None]
    if not needs:
        return ""
    needed, made = max(needs)
    return f"about {count(needed, 'repeat')} needed ({made} made), "


def _time(answer: Answer) -> str:
    return f"about {duration(answer.more_s or 0.0)} more"
