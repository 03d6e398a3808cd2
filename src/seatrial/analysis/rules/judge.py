"""Whether a figure is as expected. The rules and the page's verdict line ask here, so that they cannot disagree.

A figure is **low** when its median stays below `LOW_SHARE` of a physical limit. Protocol, refresh and page misses cost
a sound machine 5-20 % of the raw rate of DRAM, PCIe or its FMA units, so a quarter is more than they explain; the same
threshold serves every unit. Two guards against false alarms:

* measured ceilings never make a figure low: they are what another program reached, not what the machine owes;
* where several points of a benchmark share one ceiling (one thread and all of them below the same DRAM), the ceiling is
  judged by the best of them: the others show what a setting costs, which is not a defect. A limit whose derivation
  quotes that of another ("1 of 2 sockets; all: ...") is a part of the same ceiling.

A figure is **unsteady** when the 95 % interval of its median is wider than `UNSTEADY_WIDTH`, or when its repeats fall
into two levels: then the median stands for neither of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from statistics import median

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.limit import IMPOSSIBLE_ABOVE, Basis
from seatrial.model.outcome import State

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

CeilingKey = tuple[str, str, str]
"""Benchmark, figure, and the derivation that the limits under this ceiling have in common."""


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
        self._best: dict[CeilingKey, float] = {}
        self._derivations: dict[tuple[str, str], set[str]] = {}
        pairs = [(result, figure) for result in results for figure in result.figures if _is_physical(figure)]
        for result, figure in pairs:
            about = (result.experiment.benchmark, figure.name)
            self._derivations.setdefault(about, set()).add(_derivation(figure))
        for result, figure in pairs:
            key, share = self.ceiling(result, figure), figure.fraction_of_limit
            if key is not None and share is not None:
                self._best[key] = max(share, self._best.get(key, 0.0))

    def ceiling(self, result: ExperimentResult, figure: FigureResult) -> CeilingKey | None:
        """What figures under one and the same physical limit have in common; None where there is no such limit."""
        if not _is_physical(figure):
            return None
        about = (result.experiment.benchmark, figure.name)
        own = _derivation(figure)
        quoted = [derivation for derivation in self._derivations.get(about, ()) if derivation in own]
        return (*about, min(quoted, key=len, default=own))

    def is_low(self, result: ExperimentResult, figure: FigureResult) -> bool:
        """Whether this is the best point under its physical limit, and stays far below it all the same."""
        key, share = self.ceiling(result, figure), figure.fraction_of_limit
        return key is not None and share is not None and share < LOW_SHARE and share >= self._best[key]

    def figure(self, result: ExperimentResult, figure: FigureResult) -> Judgement:
        """The judgement of one figure of an `ok` experiment."""
        if self.is_low(result, figure):
            return Judgement.DEFECT
        if is_unsteady(figure):
            return Judgement.UNSTEADY
        share = figure.fraction_of_limit
        key = self.ceiling(result, figure)
        if share is None or (share if key is None else self._best[key]) < LOW_SHARE:
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
    instead of 3 called 10 to 20 % of such noise two levels (tests/analysis/test_rules_judge.py repeats the trial).
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


def _derivation(figure: FigureResult) -> str:
    return "" if figure.limit is None else figure.limit.derivation


def _is_physical(figure: FigureResult) -> bool:
    return figure.limit is not None and figure.limit.value is not None and figure.limit.basis is Basis.PHYSICAL
