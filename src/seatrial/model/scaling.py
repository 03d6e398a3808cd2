"""How a figure changes with the number of workers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from seatrial.model.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Value
from seatrial.model.units import Unit

Interval = tuple[float, float]

_NUMBER = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?")


def workers_of(value: Value | None) -> float | None:
    """The number of workers that a value of an axis stands for, positive; None if it is not one. The value of an
    environment variable is text that holds the number."""
    if isinstance(value, str):
        value = float(value) if _NUMBER.fullmatch(value.strip()) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        return None
    return float(value)


class ScalingPoint(Frozen):
    """One number of workers. `value` and `ci95` are of the raw figure; `reason` states why they are missing.

    `speedup` is relative to the baseline, by the figure's direction; for weak scaling it is that of the work, which
    grows with the workers. `efficiency` is the speedup over the growth of workers (weak: time of the baseline over
    time, or rate per worker).
    """

    workers: float
    experiment: str
    value: float | None
    ci95: Interval | None = None
    n_repeats: int = 0
    speedup: float | None = None
    speedup_ci95: Interval | None = None
    efficiency: float | None = None
    efficiency_ci95: Interval | None = None
    reason: str = ""
    parameters: Mapping[str, Value] | None = None


class Fit(Frozen):
    """A law fitted to the speedups: `parameter` is its one constant (Amdahl, Gustafson: the serial share); `residuals`
    are (workers, measured minus fitted speedup); `ceiling` its largest speedup.

    `ci95` is the interval of the constant. It is None with fewer than six blocks of repeats, and if the law does not
    describe the points: then `misfit` is the number of workers where it fails most clearly.
    """

    law: Literal["amdahl", "gustafson"]
    parameter: float
    residuals: tuple[tuple[float, float], ...]
    ceiling: float | None
    ci95: Interval | None = None
    misfit: float | None = None


class ScalingResult(Frozen):
    """One figure along one axis.

    `crossing` is the number of workers at which the efficiency falls below `EFFICIENT`, interpolated on a logarithmic
    axis, None if it does not within the measured range; `efficient_to` is the last point before it. `crossing_bounds`
    are the numbers of workers between which it falls for certain: up to the first, every interval is above `EFFICIENT`
    (None: not even at the smallest), and that of the second is below (None: none is). With fewer than five points there
    are no fits, and `note` says so.
    """

    benchmark: str
    figure: str
    kind: Literal["strong", "weak"]
    along: str
    parameters: Mapping[str, Value]
    unit: Unit
    better: Better
    baseline_workers: float
    points: tuple[ScalingPoint, ...]
    fits: tuple[Fit, ...]
    efficient_to: float | None
    crossing: float | None
    note: str = ""
    crossing_bounds: tuple[float | None, float | None] = (None, None)


EFFICIENT = 0.8
"""The customary threshold below which more workers count as wasted."""
