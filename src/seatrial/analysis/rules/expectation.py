"""Whether a figure is as expected. The rules and the page's verdict line ask here, so that they cannot disagree.

A figure is **low** when its median stays below `LOW_SHARE` of what can be counted of a physical limit. Protocol,
refresh and page misses cost a sound machine 5-20 % of the raw rate of DRAM, PCIe or its FMA units, so a quarter is more
than they explain; the same threshold serves every unit. Three guards against false alarms:

* what the counted work cannot reach by its nature is no loss: plain stores move a third to a half more than STREAM
  counts, so the share of the limit is taken of the figure's `attainable` share;
* measured ceilings never make a figure low, for they are what another program reached and not what the machine owes;
  nor do limits that are not `confirmed`;
* where the points of a benchmark stand under one limit (one thread and all of them before the same DRAM, see
  `Figure.one_limit_over`), the best of them is judged: the others show what a setting costs, which is not a defect.

A figure is **unsteady** when the 95 % interval of its median is wider than `UNSTEADY_WIDTH`, or when its repeats fall
into two levels: then the median stands for neither of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from statistics import median

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.limit import IMPOSSIBLE_ABOVE
from seatrial.model.outcome import State
from seatrial.model.parameter import Value

LOW_SHARE = 0.75
ABOVE_CEILING = IMPOSSIBLE_ABOVE
UNSTEADY_WIDTH = 0.10
LEVELS_APART = 0.05
"""Two levels closer than this share of the median are not worth a finding."""

_FEWEST_FOR_LEVELS = 8
_GAP_OVER_HEAP = 3.0
"""Below these, gaps as wide as those of two levels turn up by chance; see `levels`."""
_SMALLEST_LEVEL = 0.2
"""A level holds at least this share of the repeats; fewer are outliers, which the interval already covers."""

Settings = frozenset[tuple[str, Value]]
OneLimit = tuple[str, Settings]
"""What points under one physical limit have in common: the benchmark, and all settings that move the limit."""


class Judgement(StrEnum):
    """What can be said of a figure, or of an experiment as a whole, from bad to good."""

    DEFECT = "defect"
    UNSTEADY = "unsteady"
    UNJUDGED = "unjudged"  # measured, but no physical limit says what this point ought to reach
    EXPECTED = "expected"
    NOT_MEASURED = "not measured"


class Judge:
    """Judges the figures of one machine in the light of all of them."""

    def __init__(self, results: Sequence[ExperimentResult]) -> None:
        self._best: dict[tuple[OneLimit, str], float] = {}
        for result in results:
            for figure in result.figures:
                one, share = under(result, figure), figure.share_of_attainable
                if one is not None and share is not None:
                    key = one, figure.name
                    self._best[key] = max(share, self._best.get(key, 0.0))

    def is_low(self, result: ExperimentResult, figure: FigureResult) -> bool:
        """Whether this is the best point under its physical limit, and stays far below it all the same."""
        one, share = under(result, figure), figure.share_of_attainable
        return one is not None and share is not None and share < LOW_SHARE and share >= self._best[one, figure.name]

    def figure(self, result: ExperimentResult, figure: FigureResult) -> Judgement:
        """The judgement of one figure of an `ok` experiment."""
        if self.is_low(result, figure):
            return Judgement.DEFECT
        if is_unsteady(figure):
            return Judgement.UNSTEADY
        share = figure.share_of_attainable
        one = under(result, figure)
        if share is None or (share if one is None else self._best[one, figure.name]) < LOW_SHARE:
            return Judgement.UNJUDGED
        return Judgement.EXPECTED

    def experiment(self, result: ExperimentResult) -> Judgement:
        """The judgement of an experiment: its worst figure, or what its outcome says.

        An experiment of which at least one figure can be judged is not `unjudged`.
        """
        if result.outcome.state in (State.SKIPPED, State.UNSUPPORTED):
            return Judgement.NOT_MEASURED
        if not result.outcome.is_ok:
            return Judgement.DEFECT
        found = {self.figure(result, figure) for figure in result.figures}
        for judgement in (Judgement.DEFECT, Judgement.UNSTEADY, Judgement.EXPECTED):
            if judgement in found:
                return judgement
        return Judgement.UNJUDGED


def under(result: ExperimentResult, figure: FigureResult) -> OneLimit | None:
    """What this figure has in common with all others under the same physical limit; None where it has none.

    Environments are left out: a compiler moves no limit of the machine.
    """
    if figure.limit is None or not figure.limit.is_physical:
        return None
    settings = {**result.experiment.parameters, **figure.point}
    moving = frozenset((name, value) for name, value in settings.items() if name not in figure.one_limit_over)
    return result.experiment.benchmark, moving


def relative_width(figure: FigureResult) -> float | None:
    """Width of the 95 % interval over the median, or None where there is no interval."""
    if figure.ci95 is None or figure.median == 0:
        return None
    return abs((figure.ci95[1] - figure.ci95[0]) / figure.median)


def is_wide(figure: FigureResult) -> bool:
    """Whether the interval is too wide to rest anything on."""
    width = relative_width(figure)
    return width is not None and width > UNSTEADY_WIDTH


def is_unsteady(figure: FigureResult) -> bool:
    """Whether the repeats spread so widely, or fall into two levels, that the median says little."""
    return is_wide(figure) or levels([repeat.value for repeat in figure.repeats]) is not None


def levels(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """The low and the high level of values that fall into two, else None.

    They do where the widest gap between sorted neighbours (with enough values on either side) is over three times as
    wide as either of the two heaps that it parts, and wider than `LEVELS_APART` of the median. One-humped noise does
    that in at most 1.2 % of cases at 8 repeats (exponential; normal: 0.2 %), and hardly ever from 10 on; a factor of 1
    instead of 3 called 10 to 20 % of such noise two levels (test_rules_expectation.py repeats the trial).
    """
    n = len(values)
    if n < _FEWEST_FOR_LEVELS:
        return None
    ordered = sorted(values)
    fewest = max(2, round(n * _SMALLEST_LEVEL))
    gap, cut = max((ordered[cut] - ordered[cut - 1], cut) for cut in range(fewest, n - fewest + 1))
    low, high = ordered[:cut], ordered[cut:]
    heap = max(low[-1] - low[0], high[-1] - high[0])
    if gap > _GAP_OVER_HEAP * heap and gap > LEVELS_APART * abs(median(ordered)):
        return low, high
    return None
