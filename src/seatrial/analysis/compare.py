"""Comparisons: pairs of figures become ratios with intervals, and families of them verdicts.

Interleaved measurements are compared block by block, all points of a curve together; others by sessions. The interval
of a family holds for all its members at once and gives the verdict. Step-down p-values add differences beyond that: by
Holm's procedure (1979) between experiments, by the maximum statistic over the points of a curve.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from seatrial.analysis.grouped import grouped
from seatrial.analysis.match import Match, MeasuredSide, Sequential, Terms, comparison_of, side_of
from seatrial.benchmarks import declared_figure
from seatrial.model.benchmark.benchmark import Better, Role
from seatrial.model.results.figure_result import RepeatValue, numbers
from seatrial.model.spelling import show_percent
from seatrial.model.study.comparison import Comparison, Design, Side, Stopped, Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import LEAST_SESSIONS, MINIMUM_REPEATS, Timed, alternating_sessions, runs
from seatrial.stats.max_t import adjusted_p, holm
from seatrial.stats.ratio import (
    ROUNDING,
    RatioInterval,
    coarsest,
    half_steps,
    independent_ratio,
    pair_of_block,
    verdict,
    widened,
)
from seatrial.stats.sequential import ALPHA, LOOKS, Pairs, Replay, Steps, both_intervals, narrow_intervals, replay_curve

Block = tuple[RepeatValue, RepeatValue]

_HARDLY_WAITS = 0.01


def blocks_of_match(match: Match) -> list[Block]:
    """The repeats of both sides in each block that has both, in order of time; none if the sides were measured apart,
    or one is a published value."""
    baseline, candidate = match.baseline, match.candidate
    if not isinstance(baseline, MeasuredSide) or not isinstance(candidate, MeasuredSide):
        return []
    blocks = _blocks(baseline, candidate)
    fewest = min(baseline.figure.n_repeats, candidate.figure.n_repeats)
    return blocks if len(blocks) >= MINIMUM_REPEATS or len(blocks) == fewest else []


def compare_blocks(matches: Sequence[Match], blocks: Sequence[Sequence[Block]], terms: Terms) -> list[Comparison]:
    """The comparisons of one figure of two experiments at all points of a curve, which have the same blocks.

    `p_family` is adjusted for the points of the curve, not yet for other curves of the family.
    """
    points = [
        [pair_of_block(first.value, second.value, first.turns, second.turns) for first, second in own] for own in blocks
    ]
    steps = [[half_steps(first.resolution, second.resolution) for first, second in own] for own in blocks]
    rule = matches[0].rule
    found = _unplanned(points, steps, terms) if rule is None else _planned(points, steps, rule, matches[0], terms)
    p_values = _p_values(points, found, terms.margin)
    return [
        _comparison(match, own, pairs, result, p, terms)
        for match, own, pairs, result, p in zip(matches, blocks, points, found, p_values, strict=True)
    ]


def _planned(
    points: Sequence[Pairs], steps: Sequence[Steps], rule: Sequential, match: Match, terms: Terms
) -> list[Replay]:
    # Another figure decided the number of blocks of a secondary one, so it is read at their end.
    is_finished = rule.is_spent or len(points[0]) >= rule.maximum or match.is_secondary
    return replay_curve(
        points,
        terms.margin,
        match.better is Better.HIGHER,
        terms.family,
        rule.ends,
        is_finished=is_finished,
        steps=steps,
        equivalence=terms.equivalence,
    )


def _unplanned(points: Sequence[Pairs], steps: Sequence[Steps], terms: Terms) -> list[Replay]:
    """Existing blocks that were not made for this comparison: read once."""
    tests = [BlockTest(pairs, coarsest(own, len(pairs))) for pairs, own in zip(points, steps, strict=True)]
    intervals = both_intervals(tests, ALPHA, terms.family, equivalence=terms.equivalence)
    return [
        replace(
            Replay.of(test, terms.margin, ALPHA),
            family=RatioInterval(test.ratio(ALPHA).ratio, *(ends or (None, None))),
            narrow=narrow_intervals(test, narrow) if terms.equivalence else None,
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
    match: Match, blocks: Sequence[Block], pairs: Pairs, result: Replay, p: float | None, terms: Terms
) -> Comparison:
    used, rule = blocks[: result.blocks], match.rule
    stopped = Stopped.NOT_PLANNED if rule is None else _stopped(result, rule, match)
    design = Design(result.blocks, () if rule is None else LOOKS, stopped, result.alpha, result.statistic)
    baseline, candidate = match.baseline, match.candidate
    if not isinstance(baseline, MeasuredSide) or not isinstance(candidate, MeasuredSide):
        raise TypeError("a published value has no blocks")
    sides = (side_of(baseline, [first for first, _ in used]), side_of(candidate, [second for _, second in used]))
    intervals, pairs = (result.plain, result.family), pairs[: result.blocks]
    steps, narrow = result.half_steps, result.narrow
    return comparison_of(match, sides, intervals, terms, design, p, pairs, half_steps=steps, narrow=narrow)


def _stopped(result: Replay, rule: Sequential, match: Match) -> Stopped:
    if result.stopped_at_look is not None:
        return Stopped.DECIDED
    if result.blocks >= rule.maximum:
        return Stopped.MAXIMUM
    if match.is_secondary:
        return Stopped.NOT_PLANNED
    return Stopped.BUDGET if rule.is_spent else Stopped.UNFINISHED


def _blocks(baseline: MeasuredSide, candidate: MeasuredSide) -> list[Block]:
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


def compared(matches: Sequence[Match], margin: float, *, equivalence: bool = False) -> tuple[Comparison, ...]:
    """The comparison of each match, in their order. A family is one figure of one benchmark over all matches.
    `equivalence`: the margin is one of equivalence."""
    families = grouped(((match.benchmark, match.figure), n) for n, match in enumerate(matches))
    found: dict[int, Comparison] = {}
    for own in families.values():
        terms = Terms(margin, len(own), equivalence)
        comparisons: dict[int, Comparison] = {}
        curves = 0
        for curve, blocks in _curves(own, matches):
            comparisons |= _compare(curve, blocks, matches, terms)
            curves += 1
        found |= _step_down(comparisons, curves)
    return _with_waiting([found[n] for n in range(len(matches))], matches)


def _with_waiting(comparisons: Sequence[Comparison], matches: Sequence[Match]) -> tuple[Comparison, ...]:
    """The comparisons, those of an input pipeline with how long the steps of both sides waited for it: a pipeline that
    is slower and still ready in time costs nothing."""
    roles = [None if (own := declared_figure(one.benchmark, one.figure)) is None else own.role for one in matches]
    busy = {
        _sides(match): one for match, one, role in zip(matches, comparisons, roles, strict=True) if role is Role.BUSY
    }
    return tuple(
        one
        if role is not Role.INPUT_PIPELINE or (beside := busy.get(_sides(match))) is None
        else replace(one, note="; ".join(filter(None, (_waited(beside), one.note))))
        for one, match, role in zip(comparisons, matches, roles, strict=True)
    )


def _sides(match: Match) -> tuple[str, str]:
    first, second = (
        side.experiment if isinstance(side, MeasuredSide) else side.name for side in (match.baseline, match.candidate)
    )
    return first, second


def _waited(busy: Comparison) -> str:
    shares = [max(0.0, 1.0 - side.median) for side in (busy.baseline, busy.candidate)]
    said = "the steps did not wait for it" if max(shares) < _HARDLY_WAITS else "the steps waited for it"
    return f"{said} ({show_percent(shares[0])} of their time, and {show_percent(shares[1])})"


Curve = tuple[int, ...]
"""The positions of the matches of one curve."""


def _curves(places: Sequence[int], matches: Sequence[Match]) -> Iterator[tuple[Curve, list[list[Block]]]]:
    """The matches of a family, in curves whose points have the same experiments and blocks, each with the blocks of its
    points. A match without blocks is alone."""
    sides = grouped(
        (
            tuple(
                side.experiment if isinstance(side, MeasuredSide) else ""
                for side in (matches[n].baseline, matches[n].candidate)
            ),
            n,
        )
        for n in places
    )
    for of_sides in sides.values():
        blocks = {n: blocks_of_match(matches[n]) for n in of_sides}
        made = ((tuple((first.repeat, second.repeat) for first, second in own), n) for n, own in blocks.items())
        for curve in grouped(((repeats or n), n) for repeats, n in made).values():
            yield tuple(curve), [blocks[n] for n in curve]


def _compare(
    curve: Curve, blocks: Sequence[Sequence[Block]], matches: Sequence[Match], terms: Terms
) -> dict[int, Comparison]:
    if blocks[0]:
        return dict(zip(curve, compare_blocks([matches[n] for n in curve], blocks, terms), strict=True))
    (place,) = curve
    match = matches[place]
    if isinstance(match.baseline, Side) or isinstance(match.candidate, Side):
        return {place: _with_reference(match, terms)}
    return {place: compare_apart(match, match.baseline, match.candidate, terms)}


def _with_reference(match: Match, terms: Terms) -> Comparison:
    """A published value has no repeats: a ratio without a verdict."""
    baseline, candidate = (
        side if isinstance(side, Side) else side_of(side, side.figure.repeats)
        for side in (match.baseline, match.candidate)
    )
    ratio = RatioInterval(candidate.median / baseline.median, None, None)
    design = Design(0, (), Stopped.NOT_PLANNED, ALPHA)
    narrow = (ratio, ratio) if terms.equivalence else None
    return comparison_of(match, (baseline, candidate), (ratio, ratio), terms, design, narrow=narrow)


def _step_down(found: dict[int, Comparison], curves: int) -> dict[int, Comparison]:
    """The same comparisons with adjusted p-values; for a difference that these find although its simultaneous interval
    overlaps the margin, the interval ends at the margin (Strassburger & Bretz 2008: the bounds of a step-down procedure
    end where the rejected hypothesis begins)."""
    if curves == len(found):
        adjusted = dict(zip(found, holm([one.p_family for one in found.values()]), strict=True))
    else:
        adjusted = {n: None if one.p_family is None else min(1.0, one.p_family * curves) for n, one in found.items()}
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
        comparison, ci95_family=interval, verdict=verdict(*interval, comparison.margin, higher_is_better=higher)
    )


def compare_apart(match: Match, baseline: MeasuredSide, candidate: MeasuredSide, terms: Terms) -> Comparison:
    """The ratio with the interval of these sessions; a verdict only from enough alternating sessions."""
    sides = (side_of(baseline, baseline.figure.repeats), side_of(candidate, candidate.figure.repeats))
    timed = (_timed(baseline.figure.repeats), _timed(candidate.figure.repeats))
    sessions = alternating_sessions(
        *timed,
        is_one_machine=bool(baseline.hosts) and len({*baseline.hosts, *candidate.hosts}) == 1,
    )
    files = (baseline.sessions, candidate.sessions)
    first_in, second_in = (max(n, len(runs(own)), len(sessions)) for n, own in zip(files, timed, strict=True))
    made_in = (first_in, second_in)
    steps = half_steps(baseline.figure.resolution, candidate.figure.resolution)
    if len(sessions) >= LEAST_SESSIONS:
        test = BlockTest(sessions, steps)
        design = Design(0, (), Stopped.NOT_PLANNED, ALPHA, test.statistic, sessions=len(sessions), made_in=made_in)
        intervals, p = (test.ratio(ALPHA), test.ratio(ALPHA / terms.family)), test.p_outside(terms.margin)
        narrow = None
        if terms.equivalence:
            (both,) = both_intervals([test], ALPHA, terms.family, equivalence=True)
            narrow = narrow_intervals(test, both[1])
        return comparison_of(match, sides, intervals, terms, design, p, sessions, half_steps=steps, narrow=narrow)
    first, second = (numbers(side.values) for side in sides)
    plain = widened(independent_ratio(first, second, ALPHA), steps)
    if min(len(first), len(second)) < MINIMUM_REPEATS:
        plain = RatioInterval(plain.ratio, None, None)
    design = Design(0, (), Stopped.NOT_PLANNED, ALPHA, sessions=max(1, len(sessions)), made_in=made_in)
    none = RatioInterval(plain.ratio, None, None)
    narrow = (none, none) if terms.equivalence else None
    return comparison_of(match, sides, (plain, none), terms, design, half_steps=steps, narrow=narrow)


def _timed(repeats: Sequence[RepeatValue]) -> list[Timed]:
    return [Timed(repeat.t0, repeat.order, repeat.value) for repeat in repeats]
