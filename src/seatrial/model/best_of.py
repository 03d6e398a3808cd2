"""The best point of a sweep, and whether its lead is significant."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.benchmark import Better
from seatrial.model.comparison import Comparison
from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


class Contender(Frozen):
    """One point of the sweep: its parameters, and the median that it reached (None: see `reason`)."""

    parameters: Mapping[str, Value]
    experiment: str
    median: float | None
    ci95: tuple[float, float] | None
    n_repeats: int
    reason: str = ""


class BestOfResult(Frozen):
    """The contenders of one point of the other axes, best first.

    `gap` compares the runner-up (candidate) with the winner (baseline), with an interval that is simultaneous over all
    contenders. `tied` are the contenders whose interval with the winner includes 1; `untested` those that have too few
    repeats for an interval, of `needed`; `is_beyond_noise`: there are others, and all of them are behind. `cost_s` is
    the time of all repeats of the sweep, in seconds; `repeats` is their number.
    """

    benchmark: str
    figure: str
    over: tuple[str, ...]
    parameters: Mapping[str, Value]
    unit: Unit
    better: Better
    contenders: tuple[Contender, ...]
    gap: Comparison | None
    is_beyond_noise: bool
    tied: tuple[int, ...]
    cost_s: float
    repeats: int
    untested: tuple[int, ...] = ()
    needed: int = 0
