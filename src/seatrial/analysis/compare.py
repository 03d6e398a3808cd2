"""Comparisons: pairs of figures become ratios with intervals, and families of them verdicts.

Interleaved measurements are compared block by block, all points of a curve together; others by sessions. The interval
of a family holds for all its members at once and gives the verdict. Step-down p-values add differences beyond that: by
Holm's procedure (1979) between experiments, by the maximum statistic over the points of a curve.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.analysis.compare_blocks import Block, blocks_of_match, compare_blocks
from seatrial.analysis.match import Match, Measured, comparison_of, side_of
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.figure_result import RepeatValue, numbers
from seatrial.model.study.comparison import Comparison, Design, Side, Stopped, Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.max_t import holm
from seatrial.stats.ratio import RatioInterval, half_steps, independent_ratio, verdict, widened
from seatrial.stats.sequential import ALPHA, both_intervals, narrow_intervals
from seatrial.stats.sessions import LEAST_SESSIONS, Timed, alternating_sessions


def compared(matches: Sequence[Match], margin: float, *, equivalence: bool = False) -> tuple[Comparison, ...]:
    """The comparison of each match, in their order. A family is one figure of one benchmark over all matches.
    `equivalence`: the margin is one of equivalence."""
    families = Counter((match.benchmark, match.figure) for match in matches)
    found: dict[int, Comparison] = {}
    for family, size in families.items():
        own = [n for n, match in enumerate(matches) if (match.benchmark, match.figure) == family]
        curves = _curves(own, matches)
        comparisons: dict[int, Comparison] = {}
        for curve, blocks in curves.items():
            comparisons |= _compare(curve, blocks, matches, margin, size, equivalence)
        found |= _step_down(comparisons, list(curves))
    return tuple(found[n] for n in range(len(matches)))


Curve = tuple[int, ...]
"""The places of the matches of one curve."""


def _curves(places: Sequence[int], matches: Sequence[Match]) -> dict[Curve, list[list[Block]]]:
    """The matches of a family, in curves whose points have the same blocks: curve -> the blocks of each point. A match
    without blocks is alone."""
    curves: dict[object, list[int]] = {}
    blocks = {n: blocks_of_match(matches[n]) for n in places}
    for n in places:
        made = tuple((first.repeat, second.repeat) for first, second in blocks[n])
        sides = [
            side.experiment if isinstance(side, Measured) else ""
            for side in (matches[n].baseline, matches[n].candidate)
        ]
        curves.setdefault((*sides, made) if made else n, []).append(n)
    return {tuple(own): [blocks[n] for n in own] for own in curves.values()}


def _compare(
    curve: Curve,
    blocks: Sequence[Sequence[Block]],
    matches: Sequence[Match],
    margin: float,
    family: int,
    equivalence: bool,
) -> dict[int, Comparison]:
    if blocks[0]:
        found = compare_blocks([matches[n] for n in curve], blocks, margin, family, equivalence=equivalence)
        return dict(zip(curve, found, strict=True))
    (place,) = curve
    match = matches[place]
    if isinstance(match.baseline, Side) or isinstance(match.candidate, Side):
        return {place: _with_reference(match, margin, family, equivalence)}
    return {place: compare_apart(match, match.baseline, match.candidate, margin, family, equivalence=equivalence)}


def _with_reference(match: Match, margin: float, family: int, equivalence: bool) -> Comparison:
    """A published value has no repeats: a ratio without a verdict."""
    baseline, candidate = (
        side if isinstance(side, Side) else side_of(side, side.figure.repeats)
        for side in (match.baseline, match.candidate)
    )
    ratio = RatioInterval(candidate.median / baseline.median, None, None)
    design = Design(0, (), Stopped.NOT_PLANNED, ALPHA)
    narrow = (ratio, ratio) if equivalence else None
    return comparison_of(match, (baseline, candidate), (ratio, ratio), margin, family, design, narrow=narrow)


def _step_down(found: dict[int, Comparison], curves: Sequence[Curve]) -> dict[int, Comparison]:
    """The same comparisons with adjusted p-values; for a difference that these find although its simultaneous interval
    overlaps the margin, the interval ends at the margin (Strassburger & Bretz 2008: the bounds of a step-down procedure
    end where the rejected hypothesis begins)."""
    if len(curves) == len(found):
        adjusted = dict(zip(found, holm([one.p_family for one in found.values()]), strict=True))
    else:
        adjusted = {
            n: None if one.p_family is None else min(1.0, one.p_family * len(curves)) for n, one in found.items()
        }
    return {n: _decided(one, adjusted[n]) for n, one in found.items()}


def _decided(comparison: Comparison, p: float | None) -> Comparison:
    comparison = replace(comparison, p_family=p)
    interval = comparison.ci95_family
    if p is None or p > ALPHA or interval is None or comparison.verdict is not Verdict.AMBIGUOUS:
        return comparison
    low, high = interval
    upper, lower = 1.0 + comparison.margin, 1.0 / (1.0 + comparison.margin)
    if comparison.ratio > upper and high > upper:
        interval = (max(low, math.nextafter(upper, math.inf)), high)
    elif comparison.ratio < lower and low < lower:
        interval = (low, min(high, math.nextafter(lower, 0.0)))
    plain = comparison.ci95
    if plain is None or plain[0] < interval[0] or plain[1] > interval[1]:
        return comparison  # its own interval does not support it: leave it open
    higher = comparison.better is Better.HIGHER
    return replace(
        comparison,
        ci95_family=interval,
        verdict=verdict(*interval, comparison.margin, higher_is_better=higher),
    )


def compare_apart(
    match: Match, baseline: Measured, candidate: Measured, margin: float, family: int, *, equivalence: bool = False
) -> Comparison:
    """The ratio with the interval of these sessions; a verdict only from enough alternating sessions."""
    sides = (side_of(baseline, baseline.figure.repeats), side_of(candidate, candidate.figure.repeats))
    sessions = alternating_sessions(
        _timed(baseline.figure.repeats),
        _timed(candidate.figure.repeats),
        is_one_machine=bool(baseline.hosts) and len({*baseline.hosts, *candidate.hosts}) == 1,
    )
    steps = half_steps(baseline.figure.resolution, candidate.figure.resolution)
    if len(sessions) >= LEAST_SESSIONS:
        test = BlockTest(sessions, steps)
        design = Design(0, (), Stopped.NOT_PLANNED, ALPHA, test.statistic, sessions=len(sessions))
        intervals, p = (test.ratio(ALPHA), test.ratio(ALPHA / family)), test.p_outside(margin)
        narrow = None
        if equivalence:
            (both,) = both_intervals([test], ALPHA, family, equivalence=True)
            narrow = narrow_intervals(test, both[1])
        return comparison_of(
            match, sides, intervals, margin, family, design, p, sessions, half_steps=steps, narrow=narrow
        )
    first, second = (numbers(side.values) for side in sides)
    plain = widened(independent_ratio(first, second, ALPHA), steps)
    if min(len(first), len(second)) < MINIMUM_REPEATS:
        plain = RatioInterval(plain.ratio, None, None)
    design = Design(0, (), Stopped.NOT_PLANNED, ALPHA, sessions=max(1, len(sessions)))
    none = RatioInterval(plain.ratio, None, None)
    narrow = (none, none) if equivalence else None
    return comparison_of(match, sides, (plain, none), margin, family, design, half_steps=steps, narrow=narrow)


def _timed(repeats: Sequence[RepeatValue]) -> list[Timed]:
    return [Timed(repeat.t0, repeat.order, repeat.value) for repeat in repeats]
