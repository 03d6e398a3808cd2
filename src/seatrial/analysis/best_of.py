"""The winner of a sweep, and whether it is significantly the best.

Every other contender is compared with the winner, each interval at an error of 5 % over the number of these
comparisons. That is the idea of multiple comparisons with the best (Hsu, "Multiple Comparisons: Theory and Methods",
1996, chapter 4): a contender that is not the best is called so only if it beats the true best in a comparison of the
two, and there are k - 1 such. So the true best is the winner or tied with it in at least 95 % of all sweeps,
although the winner was chosen from the same data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, auto

from seatrial.analysis.sweep import Blocks, Given, MeasuredPoint, PointRatio, Sweep, SweepPoint, point_ratio, sweeps
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import label
from seatrial.model.study.comparison import Comparison, Design, Side, Stopped
from seatrial.model.study.result import BestOfResult, Contender
from seatrial.model.study.study import DEFAULT_MARGIN
from seatrial.stats.interval import least_repeats
from seatrial.stats.ratio import verdict

_ALPHA = 0.05

Costs = Mapping[str, tuple[int, float]]
"""Experiment -> (its repeats, the seconds that all of them took), with any outcome."""


def best_of(
    results: Sequence[ExperimentResult],
    over: Sequence[str],
    figure: str,
    blocks: Blocks,
    costs: Costs,
    given: Given | None = None,
) -> tuple[BestOfResult, ...]:
    """One for each combination of settings that are not swept; contenders by median, best first, failed ones last.

    The median of the winner is biased: of many equal contenders, the luckiest wins. Only a new measurement gives an
    unbiased value. A tie is a contender that the simultaneous interval does not distinguish from the winner; one with
    too few repeats for an interval is untested. `given` has axes that are not parameters.
    """
    return tuple(_result(sweep, tuple(over), blocks, costs) for sweep in sweeps(results, over, figure, given))


def winners_of(results: Sequence[ExperimentResult], best: Collection[BestOfResult]) -> tuple[ExperimentResult, ...]:
    """The results of the winning experiments: for a scaling of the best settings."""
    won = {r.contenders[0].experiment for r in best if r.contenders and r.contenders[0].median is not None}
    return tuple(result for result in results if result.id in won)


class _Ranked(Frozen):
    """A contender with its figure."""

    point: SweepPoint
    figure: FigureResult

    @property
    def measured(self) -> MeasuredPoint:
        return MeasuredPoint(self.point.result.id, self.figure)


def _result(sweep: Sweep, over: tuple[str, ...], blocks: Blocks, costs: Costs) -> BestOfResult:
    ranked = [_Ranked(point, point.figure) for point in sweep.points if point.figure is not None]
    better = ranked[0].figure.better
    ranked.sort(key=lambda one: one.figure.median, reverse=better is Better.HIGHER)
    ranked, ratios = _led_by_the_best(ranked, blocks, better)
    failed = [point for point in sweep.points if point.figure is None]
    ids = dict.fromkeys(point.result.id for point in sweep.points)
    places = {place: _place(ratio, better) for place, ratio in enumerate(ratios, 1)}
    is_paired = any(ratio is not None and ratio.pairs for ratio in ratios)
    return BestOfResult(
        benchmark=sweep.benchmark,
        figure=sweep.figure,
        over=over,
        parameters={name: value for name, value in sweep.shared.items() if name not in over},
        unit=ranked[0].figure.unit,
        better=better,
        contenders=tuple(_contender(point, sweep, over) for point in (*(one.point for one in ranked), *failed)),
        gap=_gap(ranked, ratios[0], sweep, over, blocks) if ratios else None,
        is_beyond_noise=bool(places) and all(place is _Place.BEHIND for place in places.values()),
        tied=tuple(n for n, place in places.items() if place in (_Place.TIED, _Place.AHEAD)),
        untested=tuple(n for n, place in places.items() if place is _Place.UNTESTED),
        needed=least_repeats(_ALPHA / len(ratios), is_paired) if ratios else 0,
        cost_s=sum(costs[key][1] for key in ids if key in costs),
        repeats=sum(costs[key][0] for key in ids if key in costs),
    )


class _Place(Enum):
    """A contender against the leader, by the simultaneous interval of their ratio."""

    BEHIND = auto()
    TIED = auto()
    AHEAD = auto()
    UNTESTED = auto()


def _place(ratio: PointRatio | None, better: Better) -> _Place:
    ends = None if ratio is None else ratio.interval.ends
    if ends is None:
        return _Place.UNTESTED
    if ends[0] <= 1.0 <= ends[1]:
        return _Place.TIED
    return _Place.AHEAD if (ends[0] > 1.0) == (better is Better.HIGHER) else _Place.BEHIND


def _led_by_the_best(
    ranked: list[_Ranked], blocks: Blocks, better: Better
) -> tuple[list[_Ranked], list[PointRatio | None]]:
    """The contenders, the leader first, and the ratio of each other one over it.

    The leader has the best median, unless a contender is ahead of it block by block: then that one leads. If they go
    round in a circle, the last leader stays, and whoever is ahead of it counts as tied.
    """
    rivals = len(ranked) - 1
    led: set[int] = set()
    while True:
        leader = ranked[0]
        led.add(id(leader))
        ratios = [point_ratio(leader.measured, one.measured, blocks, _ALPHA / rivals) for one in ranked[1:]]
        ahead = [
            one
            for one, ratio in zip(ranked[1:], ratios, strict=True)
            if _place(ratio, better) is _Place.AHEAD and id(one) not in led
        ]
        if not ahead:
            return ranked, ratios
        ranked = [ahead[0], *(one for one in ranked if one is not ahead[0])]


def _contender(point: SweepPoint, sweep: Sweep, over: Sequence[str]) -> Contender:
    """With its own settings: the axes of the sweep first, then those that follow from them."""
    own = {name: point.settings[name] for name in over}
    own |= {name: value for name, value in point.settings.items() if sweep.shared.get(name) != value}
    figure, outcome = point.figure, point.result.outcome
    if figure is None:
        return Contender(own, point.result.id, None, None, 0, f"{outcome.state}: {outcome.reason}".rstrip(": "))
    return Contender(own, point.result.id, figure.median, figure.ci95, figure.n_repeats)


def _gap(
    ranked: Sequence[_Ranked], ratio: PointRatio | None, sweep: Sweep, over: Sequence[str], blocks: Blocks
) -> Comparison | None:
    """The runner-up over the winner; None if a value is not positive, so no ratio exists."""
    winner, second = ranked[0], ranked[1]
    plain = point_ratio(winner.measured, second.measured, blocks, _ALPHA)
    if ratio is None or plain is None:
        return None
    low, high = ratio.interval.low, ratio.interval.high
    figure = winner.figure
    rivals = len(ranked) - 1
    return Comparison(
        benchmark=sweep.benchmark,
        figure=sweep.figure,
        parameters={name: value for name, value in sweep.shared.items() if name not in over},
        unit=figure.unit,
        better=figure.better,
        baseline=_side(winner, over),
        candidate=_side(second, over),
        ratio=ratio.interval.ratio,
        ci95=plain.interval.ends,
        ci95_family=ratio.interval.ends,
        verdict=verdict(low, high, DEFAULT_MARGIN, figure.better is Better.HIGHER),
        margin=DEFAULT_MARGIN,
        n_repeats=len(ratio.pairs) or min(winner.figure.n_repeats, second.figure.n_repeats),
        family=rivals,
        design=Design(len(ratio.pairs), (), Stopped.NOT_PLANNED, _ALPHA),
        pairs=ratio.pairs,
        note="" if low is not None else "too few repeats for an interval with this number of contenders",
    )


def _side(one: _Ranked, over: Sequence[str]) -> Side:
    name = " ".join(label(axis, one.point.settings[axis]) for axis in over)
    return Side(name, one.figure.median, one.figure.repeats, (one.point.result.id,))
