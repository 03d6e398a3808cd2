"""Comparison of sides that were measured side by side, in blocks: all points of a curve together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.analysis.match import Match, Measured, Sequential, comparison_of, side_of
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.figure_result import RepeatValue
from seatrial.model.study.comparison import Comparison, Design, Stopped
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.max_t import adjusted_p
from seatrial.stats.ratio import ROUNDING, RatioInterval, coarsest, half_steps, pair_of_block
from seatrial.stats.sequential import ALPHA, LOOKS, Pairs, Replay, Steps, both_intervals, narrow_intervals, replay_curve

Block = tuple[RepeatValue, RepeatValue]


def blocks_of_match(match: Match) -> list[Block]:
    """The repeats of both sides in each block that has both, in order of time; none if the sides were measured apart,
    or one is a published value."""
    baseline, candidate = match.baseline, match.candidate
    if not isinstance(baseline, Measured) or not isinstance(candidate, Measured):
        return []
    blocks = _blocks(baseline, candidate)
    fewest = min(baseline.figure.n_repeats, candidate.figure.n_repeats)
    return blocks if len(blocks) >= MINIMUM_REPEATS or len(blocks) == fewest else []


def compare_blocks(
    matches: Sequence[Match],
    blocks: Sequence[Sequence[Block]],
    margin: float,
    family: int,
    *,
    equivalence: bool = False,
) -> list[Comparison]:
    """The comparisons of one figure of two experiments at all points of a curve, which have the same blocks.

    `p_family` is adjusted for the points of the curve, not yet for other curves of the family.
    """
    points = [
        [pair_of_block(first.value, second.value, first.turns, second.turns) for first, second in own] for own in blocks
    ]
    steps = [[half_steps(first.resolution, second.resolution) for first, second in own] for own in blocks]
    rule = matches[0].rule
    if rule is None:
        found = _unplanned(points, steps, margin, family, equivalence)
    else:
        found = _planned(points, steps, margin, family, rule, matches[0], equivalence)
    p_values = _p_values(points, found, margin)
    return [
        _comparison(match, own, pairs, result, p, rule, margin, family)
        for match, own, pairs, result, p in zip(matches, blocks, points, found, p_values, strict=True)
    ]


def _planned(
    points: Sequence[Pairs],
    steps: Sequence[Steps],
    margin: float,
    family: int,
    rule: Sequential,
    match: Match,
    equivalence: bool,
) -> list[Replay]:
    # Another figure decided the number of blocks of a secondary one, so it is read at their end.
    is_finished = rule.is_spent or len(points[0]) >= rule.maximum or match.is_secondary
    higher = match.better is Better.HIGHER
    return replay_curve(
        points, margin, higher, family, rule.ends, is_finished=is_finished, steps=steps, equivalence=equivalence
    )


def _unplanned(
    points: Sequence[Pairs], steps: Sequence[Steps], margin: float, family: int, equivalence: bool
) -> list[Replay]:
    """Existing blocks that were not made for this comparison: read once."""
    tests = [BlockTest(pairs, coarsest(own, len(pairs))) for pairs, own in zip(points, steps, strict=True)]
    intervals = both_intervals(tests, ALPHA, family, equivalence=equivalence)
    return [
        replace(
            Replay.of(test, margin, ALPHA),
            family=RatioInterval(test.ratio(ALPHA).ratio, *(ends or (None, None))),
            narrow=narrow_intervals(test, narrow) if equivalence else None,
        )
        for test, (ends, narrow) in zip(tests, intervals, strict=True)
    ]


def _p_values(points: Sequence[Pairs], found: Sequence[Replay], margin: float) -> list[float | None]:
    """The p-value of each point, adjusted for the number of points by the maximum statistic over the same blocks."""
    if len(points) == 1:
        return [found[0].p_outside]
    edges = [math.log1p(margin) + result.half_steps + ROUNDING for result in found]
    logs = [[math.log(candidate) - math.log(baseline) for baseline, candidate in pairs] for pairs in points]
    adjusted = {n: adjusted_p([own[:n] for own in logs], edges) for n in {result.blocks for result in found}}
    values: list[float | None] = []
    for place, result in enumerate(found):
        p = adjusted[result.blocks][place]
        values.append(None if p is None or result.p_outside is None else min(1.0, p * ALPHA / result.alpha))
    return values


def _comparison(
    match: Match,
    blocks: Sequence[Block],
    pairs: Sequence[tuple[float, float]],
    result: Replay,
    p: float | None,
    rule: Sequential | None,
    margin: float,
    family: int,
) -> Comparison:
    used = blocks[: result.blocks]
    stopped = Stopped.NOT_PLANNED if rule is None else _stopped(result, rule, match)
    design = Design(result.blocks, () if rule is None else LOOKS, stopped, result.alpha, result.statistic)
    baseline, candidate = match.baseline, match.candidate
    if not isinstance(baseline, Measured) or not isinstance(candidate, Measured):
        raise TypeError("a published value has no blocks")
    sides = (side_of(baseline, [first for first, _ in used]), side_of(candidate, [second for _, second in used]))
    pairs = pairs[: result.blocks]
    intervals = (result.plain, result.family)
    return comparison_of(
        match,
        sides,
        intervals,
        margin,
        family,
        design,
        p,
        pairs,
        half_steps=result.half_steps,
        narrow=result.narrow,
    )


def _stopped(result: Replay, rule: Sequential, match: Match) -> Stopped:
    if result.stopped_at_look is not None:
        return Stopped.DECIDED
    if result.blocks >= rule.maximum:
        return Stopped.MAXIMUM
    if match.is_secondary:
        return Stopped.NOT_PLANNED
    return Stopped.BUDGET if rule.is_spent else Stopped.UNFINISHED


def _blocks(baseline: Measured, candidate: Measured) -> list[Block]:
    if not baseline.blocks or not candidate.blocks:
        return []
    of_baseline = {
        baseline.blocks[repeat.repeat]: repeat for repeat in baseline.figure.repeats if repeat.repeat in baseline.blocks
    }
    pairs = [
        (of_baseline[block], repeat)
        for repeat in candidate.figure.repeats
        if (block := candidate.blocks.get(repeat.repeat)) in of_baseline and block is not None
    ]
    return sorted(pairs, key=lambda pair: min(pair[0].t0, pair[1].t0))
