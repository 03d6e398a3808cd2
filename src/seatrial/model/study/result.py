"""The results of a study and of a trial: all that their pages and the command line show."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal, TypedDict, TypeVar

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.parameter import JsonParams, Value
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import (
    NULL_UNLESS_FINITE,
    As,
    Count,
    Finite,
    From,
    Hidden,
    Interval,
    Keywords,
    Later,
    Number,
    published,
    shape,
)
from seatrial.model.machine.fact import Finding
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.study.comparison import Breakdown, Comparison, ContainerContrast, Difference
from seatrial.model.study.study import NeededBudget, Study
from seatrial.model.units import Unit


class Contender(Frozen):
    """One experiment of a sweep, and its figure.

    `median` None: see `reason`.
    """

    parameters: JsonParams
    experiment: str
    median: Finite
    ci95: Interval
    n_repeats: Count
    reason: str = ""


@published("BestOf")
class BestOfResult(Frozen):
    """The contenders of a sweep, best first, and whether the lead of the winner is beyond noise.

    There is one for each point of the other axes.

    `gap` compares the runner-up (candidate) with the winner (baseline), with an interval that is simultaneous over all
    contenders. `tied` are the contenders whose interval with the winner includes 1; `untested` those that have too few
    repeats for an interval, of `needed`; `is_beyond_noise`: there are others, and all of them are behind. `cost_s` is
    the time of all repeats of the sweep, in seconds; `repeats` is their number.
    """

    benchmark: str
    figure: str
    over: tuple[str, ...]
    parameters: JsonParams
    unit: Unit
    better: Better
    contenders: tuple[Contender, ...]
    gap: Comparison | None
    is_beyond_noise: bool
    tied: tuple[Count, ...]
    cost_s: Annotated[float | None, NULL_UNLESS_FINITE, Keywords(minimum=0)]
    repeats: Count
    untested: Later[
        Annotated[tuple[Count, ...], "contenders with too few repeats to be distinguished from the winner"]
    ] = ()
    needed: Later[Annotated[Count, "the repeats that a test needs"]] = 0


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
    """The figure at one number of workers.

    `value` and `ci95` are of the raw figure; `reason` states why they are missing.

    `speedup` is relative to the baseline, by the figure's direction; for weak scaling it is that of the work, which
    grows with the workers. `efficiency` is the speedup over the growth of workers (weak: time of the baseline over
    time, or rate per worker).
    """

    workers: float
    experiment: str
    value: Finite
    ci95: Interval = None
    n_repeats: Count = 0
    speedup: Finite = None
    speedup_ci95: Interval = None
    efficiency: Finite = None
    efficiency_ci95: Interval = None
    reason: str = ""
    parameters: JsonParams | None = None
    no_cpu: Later[
        Annotated[NoCpu | None, "set if its programs were ready to run without a CPU: its efficiency is not judged"]
    ] = None


@shape(tuple)
class ResidualJson(TypedDict):
    """Measured minus fitted speedup."""

    workers: Annotated[Finite, From(itemgetter(0))]
    residual: Annotated[Finite, From(itemgetter(1))]


class Fit(Frozen):
    """A scaling law fitted to the speedups.

    `parameter` is its one constant (Amdahl, Gustafson: the serial share); `residuals` are (workers, measured minus
    fitted speedup); `ceiling` its largest speedup. `ci95` is None with fewer than six blocks of repeats, and if the law
    does not describe the points.
    """

    law: Literal["amdahl", "gustafson"]
    parameter: Number
    residuals: Annotated[tuple[tuple[float, float], ...], As(list[ResidualJson])]
    ceiling: Finite
    ci95: Annotated[Interval, "of the parameter; null: too few repeats, or the law does not describe the points"] = None
    misfit: Annotated[Finite, "workers where the law fails most clearly; null: it describes the points, or no test"] = (
        None
    )


@published("Scaling")
class ScalingResult(Frozen):
    """How a figure changes with the number of workers.

    `crossing` is the number of workers at which the efficiency falls below `EFFICIENT`, interpolated on a logarithmic
    axis, None if it does not within the measured range; `efficient_to` is the last point before it. `crossing_bounds`
    are the numbers of workers between which it falls for certain (None: not even the interval at the smallest is above
    `EFFICIENT`; none is below). With fewer than five points there are no fits, and `note` says so.
    """

    benchmark: str
    figure: str
    kind: Literal["strong", "weak"]
    along: str
    parameters: JsonParams
    unit: Unit
    better: Better
    baseline_workers: Number
    points: tuple[ScalingPoint, ...]
    fits: tuple[Fit, ...]
    efficient_to: Finite
    crossing: Finite
    note: str = ""
    crossing_bounds: Later[
        Annotated[
            tuple[Finite, Finite], "workers: all intervals up to the first are above the threshold, the second is below"
        ]
    ] = (None, None)
    is_secondary: Hidden[bool] = False


def judged_points(points: Sequence[ScalingPoint], baseline_workers: float) -> list[ScalingPoint]:
    """The points whose efficiency is judged: all, but those where others took the CPUs of a program, and none if they
    took those of the baseline. Threads that wait for each other are what the scaling shows."""
    taken = {point.workers for point in points if point.no_cpu is not None and not point.no_cpu.is_own}
    return [] if baseline_workers in taken else [point for point in points if point.workers not in taken]


EFFICIENT = 0.8
"""The customary threshold below which more workers count as wasted."""


class Compared(Frozen):
    """All comparisons of two sides, with a list of what else differs. `scope` states what the verdicts hold for.

    `lost` names what was measured on one side only, with the reason; `is_described` is False if a side does not
    describe its machine, so that differences are unknown. `along` is the axis that the sides are values of ("": two
    folders). `breakdowns` show where the sides differ, as recorded by
    probes. `containers` is what a container changes; None: both sides run outside of any.
    """

    baseline: str
    candidate: str
    comparisons: tuple[Comparison, ...]
    differences: tuple[Difference, ...]
    scope: str = ""
    lost: tuple[str, ...] = ()
    is_described: bool = True
    breakdowns: tuple[Breakdown, ...] = ()
    along: str = ""
    containers: ContainerContrast | None = None

    def __repr__(self) -> str:
        from seatrial.model.results.rows import verdicts_text

        return f"<{self.candidate} against {self.baseline}: {verdicts_text(self.comparisons)}>"

    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each comparison (model/results/rows.py)."""
        from seatrial.model.results.rows import comparison_rows

        return comparison_rows(self.comparisons)

    @property
    def unintended(self) -> tuple[Difference, ...]:
        """The differences that are not part of the comparison."""
        return tuple(difference for difference in self.differences if difference.is_unintended_cause)


class StudyResult(Frozen):
    """A study with its experiments in planned order and its results. One `Compared` for each value other than the
    baseline. `spent_s` is the time so far, and `start_s` what of it another start of the command would take again (0:
    only repeats count); `repeat_s` has the mean time of a repeat of each experiment that was measured; all in seconds.
    `needed` is the budget that its ambiguous comparisons would probably need, None if there are none."""

    study: Study
    results: tuple[ExperimentResult, ...]
    compared: tuple[Compared, ...] = ()
    scaling: tuple[ScalingResult, ...] = ()
    best_of: tuple[BestOfResult, ...] = ()
    spent_s: float = 0.0
    start_s: float = 0.0
    repeat_s: Mapping[str, float] = {}
    needed: NeededBudget | None = None
    given: Mapping[str, Mapping[str, Value | None]] = {}
    """Experiment -> the values of the axes, as written in the study."""

    def __repr__(self) -> str:
        from seatrial.model.results.rows import outcomes_text, verdicts_text

        comparisons = [comparison for one in self.compared for comparison in one.comparisons]
        return f"<study {self.study.name}: {outcomes_text(self.results)}, {verdicts_text(comparisons)}>"


NOT_REQUESTED = "not requested"
"""How the need of a benchmark begins that was left out only because nobody asked for it."""


class NotMeasured(Frozen):
    """A benchmark that cannot run on this machine or in this environment, and what it needs."""

    benchmark: str
    question: str
    need: str


class RecordPlace(Frozen):
    """Where the raw record of a repeat is: a path relative to the results folder and a line, counted from 1."""

    path: str
    line: int


T_co = TypeVar("T_co", covariant=True)


class PerRepeat(Mapping[tuple[str, int], T_co]):
    """(experiment id, repeat) -> a value of that repeat, stored by experiment: a key object for each repeat would take
    more memory than the value."""

    __slots__ = ("_by_experiment",)

    def __init__(self, by_experiment: Mapping[str, Mapping[int, T_co]]) -> None:
        self._by_experiment = by_experiment

    @property
    def by_experiment(self) -> Mapping[str, Mapping[int, T_co]]:
        """Experiment -> repeat -> value."""
        return self._by_experiment

    def of(self, experiment: str) -> Mapping[int, T_co]:
        """Repeat -> value of one experiment."""
        return self._by_experiment.get(experiment, {})

    def __getitem__(self, place: tuple[str, int]) -> T_co:
        experiment, repeat = place
        return self._by_experiment[experiment][repeat]

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((experiment, repeat) for experiment, own in self._by_experiment.items() for repeat in own)

    def __len__(self) -> int:
        return sum(map(len, self._by_experiment.values()))


def of_experiment(values: Mapping[tuple[str, int], T_co], experiment: str) -> Mapping[int, T_co]:
    """Repeat -> value of one experiment."""
    if isinstance(values, PerRepeat):
        return values.of(experiment)
    return {repeat: value for (key, repeat), value in values.items() if key == experiment}


class Trial(Frozen):
    """One machine with its results and findings. `seen` is what was observed around each repeat."""

    machine: Machine
    results: tuple[ExperimentResult, ...]
    findings: tuple[Finding, ...]
    not_measured: tuple[NotMeasured, ...]
    environments: Mapping[str, Mapping[str, Any]]
    places: Mapping[tuple[str, int], RecordPlace] = {}
    """(experiment id, repeat) -> its raw record; the repeats of an experiment in order of time."""
    seen: Mapping[tuple[str, int], Mapping[str, Any]] = {}
    version: str = ""

    def __repr__(self) -> str:
        from seatrial.model.results.rows import outcomes_text

        return f"<trial of {self.machine.name or 'a machine'}: {outcomes_text(self.results)}>"
