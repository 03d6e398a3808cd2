"""An outlier: of many that should be alike, the odd one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.model.parameter import Value


@dataclass(frozen=True, slots=True)
class Outlier:
    """`what` is the node, repeat, rank or pair of ranks; `ratio` its value over the median of its kind.

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


@dataclass(frozen=True, slots=True)
class Screening:
    """What came of looking for odd ones among the values of one experiment: `n` were looked at, of which `outliers`
    stand apart at the family-wise `false_alarm_rate`. `why_not` says of which of them nothing could be told, and why;
    `is_untold`: of none."""

    outliers: tuple[Outlier, ...]
    n: int
    of: str
    false_alarm_rate: float
    why_not: str = ""
    is_untold: bool = False
