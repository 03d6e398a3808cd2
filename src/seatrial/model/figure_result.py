"""What is published about an experiment: its outcome and its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.benchmark import ALL_OF_IT, Attainable, Better
from seatrial.model.experiment import Experiment
from seatrial.model.limit import Limit
from seatrial.model.outcome import Outcome
from seatrial.model.outlier import Screening
from seatrial.model.parameter import Value
from seatrial.model.units import Unit


@dataclass(frozen=True, slots=True)
class RepeatValue:
    """The value of one repeat, with what is needed to find its record and to see drift.

    `turns` are the values of its samples where it took turns with others: the n-th was made right beside the n-th of
    each of them.
    """

    repeat: int
    order: int
    t0: float
    value: float
    turns: tuple[float, ...] = ()


def share_of(value: float, limit: Limit | None, better: Better) -> float | None:
    """The share of the limit that a value reaches (for a figure that is better lower: limit over value), or None."""
    if limit is None or not limit.value or not value:
        return None
    return value / limit.value if better is Better.HIGHER else limit.value / value


@dataclass(frozen=True, slots=True)
class FigureResult:
    """One figure of one experiment at one point.

    `median` and `ci95` (distribution-free interval of the median, None below 6 repeats) are over repeats, which stand
    in order of time; `minimum` and `maximum` are over all samples. `limit` is the physical limit, else a measured
    ceiling, else one of basis unknown. Where each repeat has a limit of its own (that of its clock),
    `fraction_of_limit` is the median of the repeats' shares, and `limit` that of the repeat whose share lies nearest to
    it: so `fraction_of_limit` need not be `median` over `limit` to the last digit.

    `attainable` and `one_limit_over` are those that the figure declares; see `Figure`. `customary` is the median as the
    users of an application say it, "" where that is no different.
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
    fraction_of_limit: float | None = None
    attainable: Attainable = ALL_OF_IT
    one_limit_over: tuple[str, ...] = ()
    customary: str = ""

    @property
    def n_repeats(self) -> int:
        """How many repeats stand behind it."""
        return len(self.repeats)

    @property
    def share_of_attainable(self) -> float | None:
        """The share of what can be counted of the limit: what thresholds are held against."""
        return None if self.fraction_of_limit is None else self.fraction_of_limit / self.attainable.share


@dataclass(frozen=True, slots=True)
class ExperimentResult:
    """One experiment as shown: outcome first, figures only where it is ok. `reused`: nothing had to be run for it.
    `screening` is there where its figures are of pairs of ranks, which should be alike."""

    id: str
    experiment: Experiment
    question: str
    outcome: Outcome
    figures: tuple[FigureResult, ...] = ()
    reused: bool = False
    notes: tuple[str, ...] = ()
    screening: Screening | None = None
