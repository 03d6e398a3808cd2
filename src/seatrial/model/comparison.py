"""A comparison: one figure on two sides, the interval of their ratio, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from seatrial.model.benchmark import Better
from seatrial.model.figure_result import RepeatValue
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


class Verdict(StrEnum):
    """What a comparison comes to. `same` and the two that differ need an interval; without one it is ambiguous."""

    FASTER = "faster"
    SAME = "same"
    SLOWER = "slower"
    AMBIGUOUS = "ambiguous"


class Stopped(StrEnum):
    """Why a comparison has as many repeats as it has."""

    DECIDED = "decided"  # at a planned look the interval told
    BUDGET = "budget"  # the time was spent
    MAXIMUM = "maximum"  # the largest number of repeats was made
    UNFINISHED = "unfinished"  # neither: the run was interrupted, and the same command goes on
    NOT_PLANNED = "not planned"  # repeats that were not made for this comparison: their number was fixed otherwise


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison. `name` is what people call it ("nontemporal true", a folder, a reference).

    `values` are the repeats that the comparison uses, in order of time; `experiments` the ids behind them. A published
    reference has `median` alone.
    """

    name: str
    median: float
    values: tuple[RepeatValue, ...] = ()
    experiments: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    is_reference: bool = False


@dataclass(frozen=True, slots=True)
class Design:
    """How the repeats behind a comparison were made.

    `blocks` counts pairs made side by side in random order (0: the two sides were measured apart). `looks` are
    the numbers of blocks at which it was, or would have been, looked at. `alpha` is the error that the interval rests
    on, before the family is counted.
    """

    blocks: int
    looks: tuple[int, ...]
    stopped: Stopped
    alpha: float

    @property
    def is_interleaved(self) -> bool:
        """Whether a drift of the machine falls on both sides alike."""
        return self.blocks > 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One figure at one point, candidate over baseline.

    `parameters` are those that both sides share. `ratio` is candidate over baseline of the raw figure, whichever way it
    is better: for blocks the Hodges-Lehmann estimate over pairs, else over all pairs of the two sides. `ci95` is for
    this comparison alone; `ci95_family` holds for all comparisons of the family at once and for all looks, and gives
    the verdict. Both are None where there are too few repeats, or none (a reference). `p_family` is the Holm-adjusted
    p-value of "the ratio lies within the margin". `note` says what limits the verdict.
    """

    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    unit: Unit
    better: Better
    baseline: Side
    candidate: Side
    ratio: float
    ci95: tuple[float, float] | None
    ci95_family: tuple[float, float] | None
    verdict: Verdict
    margin: float
    n_repeats: int
    family: int
    design: Design
    p_family: float | None = None
    pairs: tuple[tuple[float, float], ...] = field(default=())
    note: str = ""
