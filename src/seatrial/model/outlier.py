"""Outliers among values that should be equal."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.frozen import Frozen
from seatrial.model.pair_sampling import PairSampling
from seatrial.model.parameter import Value


class Outlier(Frozen):
    """`what` is the node, repeat, rank or pair of ranks; `ratio` its value over the median of its kind.

    `sureness` is one minus the p-value of such a value, adjusted for the number of screened values;
    `false_alarm_rate` is the probability that a screening of this size reports any outlier if all values are equal.
    """

    what: str
    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    value: float
    ratio: float
    sureness: float
    false_alarm_rate: float
    n: int


class FleetSpread(Frozen):
    """Nodes that truly differ in a figure, beyond the noise of their repeats.

    `spread` is the range of the middle 90 % of their medians, over the median of all; `of_noise` the probability that
    equal nodes look so different. If there are two kinds, `minority` names the nodes of the smaller one, and `kinds`
    are the ratios of both (minority, others).
    """

    benchmark: str
    figure: str
    parameters: Mapping[str, Value]
    n: int
    spread: tuple[float, float]
    of_noise: float
    minority: tuple[str, ...] = ()
    kinds: tuple[float, float] | None = None


class MeasureAgain(Frozen):
    """The nodes that are farthest from the others, and nodes drawn at random to measure beside them: new repeats of
    these show which of the former truly differ."""

    suspects: tuple[str, ...]
    controls: tuple[str, ...]
    repeats: int


class ScreenResult(Frozen):
    """The outliers of a results folder, and the figures in which its nodes truly differ.

    `again` is what a second stage would measure, if the screen was of nodes. After that second stage, `outliers` are
    those that it confirmed, and `unconfirmed` the suspects that do not differ from the controls.
    """

    outliers: tuple[Outlier, ...] = ()
    fleets: tuple[FleetSpread, ...] = ()
    again: MeasureAgain | None = None
    unconfirmed: tuple[str, ...] = ()


class Screening(Frozen):
    """The result of screening the values of one experiment: `n` were tested, of which `outliers` deviate at the
    family-wise `false_alarm_rate`. `why_not` says which values could not be tested, and why; `is_inconclusive`: none
    could. `sampling` says which of all pairs were measured, if that is known."""

    outliers: tuple[Outlier, ...]
    n: int
    of: str
    false_alarm_rate: float
    why_not: str = ""
    is_inconclusive: bool = False
    sampling: PairSampling | None = None
