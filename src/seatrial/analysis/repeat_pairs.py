"""The ratio of two points of a sweep, by pairs of repeats if they were interleaved."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import FigureResult
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval, half_steps, independent_ratio, widened

Blocks = Mapping[tuple[str, int], str]
"""(experiment, repeat) -> the block in which the repeat was made. Missing: not interleaved."""

Pairs = tuple[tuple[float, float], ...]


class PointRatio(Frozen):
    """Candidate over baseline of the raw figure. `pairs` are the pairs used; empty: unpaired."""

    interval: RatioInterval
    pairs: Pairs

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval, or None if there are too few repeats."""
        low, high = self.interval.low, self.interval.high
        return None if low is None or high is None else (low, high)


class MeasuredPoint(Frozen):
    """A figure of the experiment with this id."""

    experiment: str
    figure: FigureResult


def pairs_of(baseline: MeasuredPoint, candidate: MeasuredPoint, blocks: Blocks) -> Pairs:
    """(baseline, candidate) of the repeats that were made in one block or, at two points inside one program, in one
    process. Several repeats in a block are paired in order."""
    waiting: dict[tuple[str, object], list[float]] = {}
    for repeat in baseline.figure.repeats:
        place = _place(baseline, candidate, repeat.repeat, baseline.experiment, blocks)
        if place is not None:
            waiting.setdefault(place, []).append(repeat.value)
    pairs: list[tuple[float, float]] = []
    for repeat in candidate.figure.repeats:
        place = _place(baseline, candidate, repeat.repeat, candidate.experiment, blocks)
        if place is not None and waiting.get(place):
            pairs.append((waiting[place].pop(0), repeat.value))
    return tuple(pairs)


def point_ratio(
    baseline: MeasuredPoint, candidate: MeasuredPoint, blocks: Blocks, alpha: float = 0.05
) -> PointRatio | None:
    """The ratio with its interval of error `alpha`; None if a value is not positive, so no ratio exists.

    Pairs are used if there are at least six, with at least half of the repeats of the shorter side; otherwise all
    repeats, unpaired.
    """
    sides = [point.figure.values for point in (baseline, candidate)]
    if not all(side and all(0.0 < value < float("inf") for value in side) for side in sides):
        return None
    steps = half_steps(baseline.figure.resolution, candidate.figure.resolution)
    pairs = pairs_of(baseline, candidate, blocks)
    if len(pairs) >= MINIMUM_REPEATS and 2 * len(pairs) >= min(map(len, sides)):
        return PointRatio(BlockTest(pairs, steps).ratio(alpha), pairs)
    return PointRatio(widened(independent_ratio(sides[0], sides[1], alpha), steps), ())


def _place(
    baseline: MeasuredPoint, candidate: MeasuredPoint, repeat: int, experiment: str, blocks: Blocks
) -> tuple[str, object] | None:
    if baseline.experiment == candidate.experiment:
        return "process", repeat
    block = blocks.get((experiment, repeat))
    return None if block is None else ("block", block)
