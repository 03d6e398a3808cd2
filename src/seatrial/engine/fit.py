"""What fits into a budget, as found before anything is built or measured."""

from __future__ import annotations

from seatrial.model.frozen import Frozen
from seatrial.plan.points import Point


class Item(Frozen):
    """Points of one entry, the repeats that each needs at least, and the time for these and missing builds, in
    seconds."""

    points: tuple[Point, ...]
    minimum: int
    least_s: float


class Fit(Frozen):
    """What fits into a budget, in the order of importance. All times are in seconds and estimated.

    `needed_s` is what the fitting ones take, from the start of the command, with the minimum of repeats; `all_s` what
    everything would, of which `builds_s` are for building programs. `holds`: the budget can be kept; else everything is
    measured with the minimum of repeats.
    """

    budget_s: float
    fitting: tuple[Item, ...]
    left_out: tuple[Item, ...]
    needed_s: float
    all_s: float
    builds_s: float = 0.0
    holds: bool = True
