"""What is published about an experiment: its outcome and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.benchmark import Better
from seatrial.model.experiment import Experiment
from seatrial.model.limit import Limit
from seatrial.model.outcome import Outcome
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


@dataclass(frozen=True, slots=True)
class RepeatValue:
    """The value of one repeat, with what is needed to find its record and to see drift."""

    repeat: int
    order: int
    t0: float
    value: float


@dataclass(frozen=True, slots=True)
class FigureResult:
    """One figure of one experiment at one point.

    `median` and `ci95` (distribution-free interval of the median, None below 6 repeats) are over repeats; `minimum` and
    `maximum` are over all samples. `limit` is the physical limit, else a measured ceiling, else one of basis unknown.
    """

    name: str
    point: Mapping[str, Value]
    unit: Unit
    better: Better
    work: str
    median: float
    ci95: tuple[float, float] | None
    minimum: float
    maximum: float
    n_samples: int
    limit: Limit | None
    repeats: tuple[RepeatValue, ...]

    @property
    def n_repeats(self) -> int:
        """How many repeats stand behind it."""
        return len(self.repeats)

    @property
    def fraction_of_limit(self) -> float | None:
        """The share of the limit that the median reaches (for a figure that is better lower: limit over median)."""
        if self.limit is None or not self.limit.value or not self.median:
            return None
        if self.better is Better.HIGHER:
            return self.median / self.limit.value
        return self.limit.value / self.median


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """One experiment as shown: outcome first, figures only where it is ok. `reused`: nothing had to be run for it."""

    id: str
    experiment: Experiment
    question: str
    outcome: Outcome
    figures: tuple[FigureResult, ...] = ()
    reused: bool = False
    notes: tuple[str, ...] = ()
