"""The results of a study: everything that its page and the command line show."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.best_of import BestOfResult
from seatrial.model.breakdown import Breakdown
from seatrial.model.comparison import Comparison
from seatrial.model.container_contrast import ContainerContrast
from seatrial.model.difference import Difference
from seatrial.model.figure_result import ExperimentResult
from seatrial.model.frozen import Frozen
from seatrial.model.needed_budget import NeededBudget
from seatrial.model.scaling import ScalingResult
from seatrial.model.study import Study


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

    @property
    def unintended(self) -> tuple[Difference, ...]:
        """The differences that are not part of the comparison."""
        return tuple(difference for difference in self.differences if not difference.intended)


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
