"""The answer of a study, as values: what its comparisons, scaling and sweeps state together.

`report.studies.answer_words` makes the sentence that the terminal, the page and the JSON share.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.comparison import Breakdown, Verdict
from seatrial.model.study.result import BestOfResult
from seatrial.model.units import Unit

Interval = tuple[float, float]


class Undecided(StrEnum):
    """Why a comparison has no verdict."""

    FEW = "too few repeats for an interval"
    WIDE = "the interval allows more than one verdict"
    NOISE = "the interval is wide against the margin"
    AT_MARGIN = "the interval is narrow, and the estimate at the edge of the margin"
    APART = "the sides were measured apart"
    PUBLISHED = "a side is a published value"
    UNFINISHED = "the run has not come to its end"


class Stretch(Frozen):
    """Points of curves with the same verdict on two sides.

    `along` is the numeric setting that varies within a curve (None: a single point, or points of several curves) and
    `values` are those of the points, in order; `total` counts all points of the curve, and `is_first` and `is_last` say
    whether the stretch begins and ends where the curve does. `where` are the other settings that distinguish the curve.
    `figures` have all of this in common; `restated` are others that say the same, such as the rate of a time. `axis` is
    what the sides are values of ("": two folders). `ratios` are the smallest and the largest ratio, candidate over
    baseline of the raw figure (None: no ratio is a positive number); `ci95_family` the hull of the intervals behind the
    verdicts (None: a point has none; of `equivalent`, those with twice the error). `why` is None exactly if there is a
    verdict; then `made` are the fewest repeats of each side, and `needed` those that may decide (None: unknown, or more
    will not help).
    """

    benchmark: str
    figures: tuple[str, ...]
    unit: Unit
    better: Better
    baseline: str
    candidate: str
    axis: str
    margin: float
    verdict: Verdict
    along: str | None
    values: tuple[Value, ...]
    points: int
    total: int
    is_first: bool
    is_last: bool
    where: Mapping[str, Value]
    ratios: Interval | None
    ci95_family: Interval | None
    why: Undecided | None = None
    made: tuple[int, int] = (0, 0)
    needed: int | None = None
    restated: tuple[str, ...] = ()

    @property
    def comparisons(self) -> int:
        """How many comparisons the stretch stands for."""
        return self.points * len(self.figures)


class Efficiency(Frozen):
    """The efficiencies of figures at one number of workers: the smallest and the largest, and the hull of their
    intervals (None: one has none)."""

    workers: float
    values: Interval
    ci95: Interval | None


class Reach(Frozen):
    """How far figures scale by their intervals alone: an efficiency without an interval decides nothing.

    `efficient` is the last point up to which every interval is above the threshold (None: not even the first point
    after the baseline), `below` the first one after it whose interval is below (None: none is), `undecided` those in
    between or, if there is none below, all that follow. `last` is the largest number of workers with an efficiency.
    `lost` are those without a result, `points` counts the others, `made` are the fewest repeats of an undecided point
    and `needed` the repeats that may decide it (None: unknown). `unjudged` are points that had no CPU, or whose
    baseline had none: they are in none of the others.
    """

    benchmark: str
    figures: tuple[str, ...]
    kind: Literal["strong", "weak"]
    along: str
    parameters: Mapping[str, Value]
    baseline_workers: float
    efficient: Efficiency | None
    below: Efficiency | None
    undecided: tuple[Efficiency, ...]
    last: Efficiency | None
    lost: tuple[float, ...]
    points: int
    made: int = 0
    needed: int | None = None
    unjudged: tuple[Efficiency, ...] = ()


class Span(Frozen):
    """The lowest and the highest median of a figure in a study that neither compares nor scales; without a verdict.

    `low_at` and `high_at` are the settings that vary.
    """

    benchmark: str
    figure: str
    unit: Unit
    better: Better
    points: int
    low: float
    low_at: Mapping[str, Value]
    high: float
    high_at: Mapping[str, Value]


class Answer(Frozen):
    """What a study says about its question.

    `asked` counts its comparisons, efficiencies or contenders, `undecided` those among them without a verdict. `more_s`
    is the estimated time of the repeats that may decide `decidable` of these, in seconds, `budget_s` the budget of the
    whole study with them, and `maximum` the maximum number of repeats that it needs, if more than the study has; each
    is None if it is unknown.
    `no_cpu` are the experiments, of `measured`, whose programs were ready to run without a CPU: what qualifies the
    answer first; `beside` is what else used CPUs meanwhile, if it was much.
    `not_compared` says what was to be compared and could not be. `outcomes` counts experiments by outcome.
    """

    asked: int = 0
    undecided: int = 0
    decidable: int = 0
    more_s: float | None = None
    budget_s: float | None = None
    maximum: int | None = None
    stretches: tuple[Stretch, ...] = ()
    reaches: tuple[Reach, ...] = ()
    best: tuple[BestOfResult, ...] = ()
    spans: tuple[Span, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    not_compared: tuple[str, ...] = ()
    outcomes: Mapping[str, int] = {}
    no_cpu: tuple[NoCpu, ...] = ()
    measured: int = 0
    beside: str = ""
