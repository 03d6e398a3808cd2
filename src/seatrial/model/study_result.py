"""What a study came to: everything that its page and its answer on the command line say."""

from __future__ import annotations

from dataclasses import dataclass

from seatrial.model.best_of import BestOfResult
from seatrial.model.breakdown import Breakdown
from seatrial.model.comparison import Comparison
from seatrial.model.difference import Difference
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.scaling import ScalingResult
from seatrial.model.study import Study


@dataclass(frozen=True, slots=True)
class Compared:
    """All comparisons of two sides with the fairness list. `scope` says in one sentence what the verdicts hold for.

    `lost` names what was measured on one side only, with the reason; `is_told` is False where a side states nothing
    about its machine, so that nothing could be seen to differ. `breakdowns` say where a difference sits, by what probes
    recorded.
    """

    baseline: str
    candidate: str
    comparisons: tuple[Comparison, ...]
    differences: tuple[Difference, ...]
    scope: str = ""
    lost: tuple[str, ...] = ()
    is_told: bool = True
    breakdowns: tuple[Breakdown, ...] = ()

    @property
    def unintended(self) -> tuple[Difference, ...]:
        """The differences that nobody asked for."""
        return tuple(difference for difference in self.differences if not difference.intended)


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A study with its experiments in planned order and what follows from them. One `Compared` for each value that is
    held against the baseline."""

    study: Study
    results: tuple[ExperimentResult, ...]
    compared: tuple[Compared, ...] = ()
    scaling: tuple[ScalingResult, ...] = ()
    best_of: tuple[BestOfResult, ...] = ()
    spent_s: float = 0.0
