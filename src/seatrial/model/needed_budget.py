"""The budget that would probably decide a study."""

from __future__ import annotations

from seatrial.model.frozen import Frozen


class NeededBudget(Frozen):
    """An estimate, from the widths of the intervals and the time of the repeats so far.

    `undecided` is the number of comparisons that the budget or the maximum number of repeats left ambiguous.
    `budget_s` is the whole budget of the study with which they would probably be decided, in seconds; None if at least
    one of them is so close to an edge of its margin that no budget is known to decide it. `repeats` is the largest
    number of repeats that one of the others needs. `is_least`: some have no interval yet, and this is what
    they need for one.
    """

    undecided: int
    budget_s: float | None
    repeats: int
    is_least: bool = False
