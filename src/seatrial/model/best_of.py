"""The winner of a sweep, and whether it truly won."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.benchmark import Better
from seatrial.model.comparison import Comparison
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


@dataclass(frozen=True, slots=True)
class Contender:
    """One point of the sweep: what was set, and what it reached (None: `reason`)."""

    parameters: Mapping[str, Value]
    experiment: str
    median: float | None
    ci95: tuple[float, float] | None
    n_repeats: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BestOfResult:
    """The contenders of one point of the other axes, best first.

    `gap` compares the runner-up (candidate) with the winner (baseline), its interval simultaneous over all contenders
    against the winner; `is_beyond_noise` says whether that interval leaves out 1. `tied` are those whose interval does
    not. `cost_s` is what all repeats of the search took, in seconds; `repeats` how many they were.
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
