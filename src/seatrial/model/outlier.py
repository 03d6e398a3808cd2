"""An outlier: of many that should be alike, the odd one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.parameter import Value


@dataclass(frozen=True, slots=True)
class Outlier:
    """`what` is the node, repeat or rank; `ratio` its value over the median of its kind.

    `sureness` is one minus the p-value of so odd a value among so many that are alike, after the number of values that
    were screened is counted; `false_alarm_rate` is the chance that a screen of this size names anything where all are
    alike.
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
