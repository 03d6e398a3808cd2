"""Whether a figure is as expected: used by the rules and the page's verdict line, so they cannot disagree.

A figure is **low** if its median is below `LOW_SHARE` of the attainable share of a physical limit. Protocol, refresh
and page misses cost a healthy machine 5-20 % of the raw rate of DRAM, PCIe or its FMA units, so a loss of a quarter
needs another cause; all units use the same threshold. Three guards against false alarms:

* work that is not counted is not a loss: plain stores move a third to a half more bytes than STREAM counts, so the
share
  is relative to the figure's `attainable` share;
* a measured ceiling never makes a figure low, because it is what another program reached, nor does an unconfirmed
limit; * if several experiments share one limit (one thread and all threads, under the same DRAM; see
  `Figure.one_limit_over`), only the best is judged: the others show the cost of a setting, which is not a defect.

A figure is **unsteady** if the 95 % interval of its median is wider than `UNSTEADY_WIDTH`, or if its repeats fall into
two levels: the median then represents neither.

Figures of programs that were ready to run without a CPU are not judged: they describe fewer CPUs than those of the
limit (docs/adr/0063).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from statistics import median

from seatrial.model.benchmark.parameter import Value
from seatrial.model.machine.limit import IMPOSSIBLE_ABOVE
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.sample import State
from seatrial.model.spelling import show_percent

LOW_SHARE = 0.75
FAR_BELOW = 0.2
"""Below this share of a limit, a figure is a finding even if the limit is unconfirmed."""
ABOVE_CEILING = IMPOSSIBLE_ABOVE
UNSTEADY_WIDTH = 0.10
LEVELS_APART = 0.05
"""Two levels closer than this share of the median are not reported."""

_FEWEST_FOR_LEVELS = 8
_GAP_OVER_CLUSTER = 3.0
"""Below these, gaps as wide as between two levels occur by chance; see `levels`."""
_SMALLEST_LEVEL = 0.2
"""A level holds at least this share of the repeats; fewer are outliers, which the interval covers."""

Settings = frozenset[tuple[str, Value]]
OneLimit = tuple[str, Settings]
"""Key of a physical limit: the benchmark, and all settings that affect the limit."""


class Judgement(StrEnum):
    """The judgement of a figure or of a whole experiment, from bad to good."""

    DEFECT = "defect"
    UNSTEADY = "unsteady"
    UNJUDGED = "unjudged"  # measured, but no physical limit states what to expect, or it had no CPU
    EXPECTED = "expected"
    NOT_MEASURED = "not measured"


class Judge:
    """Judges the figures of one machine relative to all of them."""

    def __init__(self, results: Sequence[ExperimentResult]) -> None:
        self._best: dict[tuple[OneLimit, str], float] = {}
        for result in results:
            for figure in result.figures if result.no_cpu is None else ():
                one, share = under(result, figure), figure.share_of_attainable
                if one is not None and share is not None:
                    key = one, figure.name
                    self._best[key] = max(share, self._best.get(key, 0.0))

    def is_low(self, result: ExperimentResult, figure: FigureResult) -> bool:
        """Whether this figure is the best under its physical limit, and still far below it."""
        one, share = under(result, figure), figure.share_of_attainable
        if result.no_cpu is not None:
            return False
        return one is not None and share is not None and share < LOW_SHARE and share >= self._best[one, figure.name]

    def figure(self, result: ExperimentResult, figure: FigureResult) -> Judgement:
        """The judgement of one figure of an `ok` experiment."""
        if result.no_cpu is not None:
            return Judgement.UNJUDGED
        if self.is_low(result, figure):
            return Judgement.DEFECT
        if is_unsteady(figure) and not figure.is_secondary:
            return Judgement.UNSTEADY
        share = figure.share_of_attainable
        one = under(result, figure)
        if share is None or (share if one is None else self._best[one, figure.name]) < LOW_SHARE:
            return Judgement.UNJUDGED
        return Judgement.EXPECTED

    def experiment(self, result: ExperimentResult) -> Judgement:
        """The judgement of an experiment: that of its worst figure, or of its outcome.

        An experiment with at least one figure that can be judged is not `unjudged`.
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
    """The key of the figure's physical limit; None if it has none.

    Environments are not part of it: a compiler does not affect the limits of the machine.
    """
    if figure.limit is None or not figure.limit.is_physical:
        return None
    return settings_of_limit(result, figure)


def settings_of_limit(result: ExperimentResult, figure: FigureResult) -> OneLimit:
    """The benchmark and the settings that affect the figure's limit, whatever that rests on."""
    settings = {**result.experiment.parameters, **figure.point}
    affecting = frozenset((name, value) for name, value in settings.items() if name not in figure.one_limit_over)
    return result.experiment.benchmark, affecting


def relative_width(figure: FigureResult) -> float | None:
    """Width of the 95 % interval over the median, or None if there is no interval."""
    if figure.ci95 is None or figure.median == 0:
        return None
    return abs((figure.ci95[1] - figure.ci95[0]) / figure.median)


def is_wide(figure: FigureResult) -> bool:
    """Whether the interval is too wide for conclusions."""
    width = relative_width(figure)
    return width is not None and width > UNSTEADY_WIDTH


def is_unsteady(figure: FigureResult) -> bool:
    """Whether the repeats spread too widely or fall into two levels."""
    return is_wide(figure) or levels(figure.values) is not None


def unsteady_words(figure: FigureResult) -> str:
    """What qualifies an unsteady figure, to follow a statement about it: "; it is unsteady: ..."; else ""."""
    if levels(figure.values) is not None:
        return "; it is unsteady: its repeats fall into two levels"
    if is_wide(figure):
        return f"; it is unsteady: its interval is as wide as {show_percent(relative_width(figure))} of its median"
    return ""


def levels(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """The values of the low and the high level, or None if there are not two levels.

    There are two if the widest gap between sorted neighbours (with enough values on either side) is over three times as
    wide as either of the clusters it separates, and wider than `LEVELS_APART` of the median. Unimodal noise does that
    in at most 1.2 % of cases at 8 repeats (exponential; normal: 0.2 %), and almost never from 10 on; with a factor of 1
    instead of 3, it would in 10 to 20 % of cases (simulated in test_rules_expectation.py).
    """
    n = len(values)
    if n < _FEWEST_FOR_LEVELS:
        return None
    ordered = sorted(values)
    fewest = max(2, round(n * _SMALLEST_LEVEL))
    gap, cut = max((ordered[cut] - ordered[cut - 1], cut) for cut in range(fewest, n - fewest + 1))
    low, high = ordered[:cut], ordered[cut:]
    cluster = max(low[-1] - low[0], high[-1] - high[0])
    if gap > _GAP_OVER_CLUSTER * cluster and gap > LEVELS_APART * abs(median(ordered)):
        return low, high
    return None
