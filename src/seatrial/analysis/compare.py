"""Comparisons: pairs of figures become ratios with intervals, and families of them verdicts.

Interleaved measurements are compared block by block; others by all pairs of repeats. The interval of a family holds for
all its members at once (Bonferroni), and gives the verdict; Holm's procedure (1979), which never decides less, adds
differences beyond that.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from seatrial.model.benchmark import Better
from seatrial.model.comparison import Comparison, Design, Side, Stopped, Verdict
from seatrial.model.figure_result import FigureResult, RepeatValue, RepeatValues, numbers
from seatrial.model.parameter import Value
from seatrial.model.spelling import count
from seatrial.model.units import Unit
from seatrial.stats.block_test import BlockTest
from seatrial.stats.holm import holm
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval, independent_p_outside, independent_ratio
from seatrial.stats.sequential import ALPHA, LOOKS, replay
from seatrial.stats.turns import pair_of_block
from seatrial.stats.verdict import verdict


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of one experiment, as a side of a comparison. `blocks` maps a repeat to its block."""

    name: str
    experiment: str
    figure: FigureResult
    hosts: tuple[str, ...] = ()
    machine: str = ""
    blocks: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sequential:
    """The stopping rule of a study. `ends` counts its budgets; `is_spent`: the last one is spent."""

    maximum: int
    ends: int = 1
    is_spent: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """Two sides of one figure, with the parameters that they share. Either may be a published value."""

    benchmark: str
    parameters: Mapping[str, Value]
    baseline: Measured | Side
    candidate: Measured | Side
    unit: Unit
    better: Better
    figure: str
    rule: Sequential | None = None


def compared(matches: Sequence[Match], margin: float) -> tuple[Comparison, ...]:
    """The comparison of each match, in their order. A family is one figure of one benchmark over all matches."""
    families = Counter((match.benchmark, match.figure) for match in matches)
    found = [_compare(match, margin, families[match.benchmark, match.figure]) for match in matches]
    for family in families:
        own = [n for n, match in enumerate(matches) if (match.benchmark, match.figure) == family]
        adjusted = _step_down([found[n] for n in own])
        for n, comparison in zip(own, adjusted, strict=True):
            found[n] = comparison
    return tuple(found)


def _compare(match: Match, margin: float, family: int) -> Comparison:
    baseline, candidate = match.baseline, match.candidate
    if isinstance(baseline, Side) or isinstance(candidate, Side):
        return _with_reference(match, margin, family)
    pairs = _pairs(baseline, candidate)
    fewest = min(baseline.figure.n_repeats, candidate.figure.n_repeats)
    if len(pairs) >= MINIMUM_REPEATS or (pairs and len(pairs) == fewest):
        return _side_by_side(match, baseline, candidate, pairs, margin, family)
    return _separately(match, baseline, candidate, margin, family)


def _side_by_side(
    match: Match,
    baseline: Measured,
    candidate: Measured,
    blocks: Sequence[tuple[RepeatValue, RepeatValue]],
    margin: float,
    family: int,
) -> Comparison:
    values = [pair_of_block(first.value, second.value, first.turns, second.turns) for first, second in blocks]
    higher = match.better is Better.HIGHER
    rule = match.rule
    if rule is None:
        test = BlockTest(values)
        plain, adjusted, p = test.ratio(ALPHA), test.ratio(ALPHA / family), test.p_outside(margin)
        design = Design(len(values), (), Stopped.NOT_PLANNED, ALPHA, test.statistic)
    else:
        seen = replay(values, margin, higher_is_better=higher, family=family, ends=rule.ends)
        blocks, values = blocks[: seen.blocks], values[: seen.blocks]
        plain, adjusted, p = seen.plain, seen.family, seen.p_outside
        stopped = _stopped(seen.stopped_at_look, len(values), rule)
        design = Design(seen.blocks, LOOKS, stopped, seen.alpha, seen.statistic)
    return _comparison(
        match,
        _side(baseline, [first for first, _ in blocks]),
        _side(candidate, [second for _, second in blocks]),
        plain,
        adjusted,
        margin,
        family,
        design,
        p,
        tuple(values),
    )


def _separately(match: Match, baseline: Measured, candidate: Measured, margin: float, family: int) -> Comparison:
    sides = (baseline.figure.repeats, candidate.figure.repeats)
    first, second = (numbers(repeats) for repeats in sides)
    plain = independent_ratio(first, second, ALPHA)
    adjusted = independent_ratio(first, second, ALPHA / family)
    enough = min(len(first), len(second)) >= MINIMUM_REPEATS
    if not enough:
        plain = adjusted = RatioInterval(plain.ratio, None, None)
    return _comparison(
        match,
        _side(baseline, sides[0]),
        _side(candidate, sides[1]),
        plain,
        adjusted,
        margin,
        family,
        Design(0, (), Stopped.NOT_PLANNED, ALPHA),
        independent_p_outside(first, second, margin) if enough else None,
        (),
    )


def _with_reference(match: Match, margin: float, family: int) -> Comparison:
    """A published value has no repeats: a ratio without a verdict."""
    baseline, candidate = (
        side if isinstance(side, Side) else _side(side, side.figure.repeats)
        for side in (match.baseline, match.candidate)
    )
    ratio = RatioInterval(candidate.median / baseline.median, None, None)
    design = Design(0, (), Stopped.NOT_PLANNED, ALPHA)
    return _comparison(match, baseline, candidate, ratio, ratio, margin, family, design, None, ())


def _comparison(
    match: Match,
    baseline: Side,
    candidate: Side,
    plain: RatioInterval,
    adjusted: RatioInterval,
    margin: float,
    family: int,
    design: Design,
    p: float | None,
    pairs: tuple[tuple[float, float], ...],
) -> Comparison:
    return Comparison(
        benchmark=match.benchmark,
        figure=match.figure,
        parameters=match.parameters,
        unit=match.unit,
        better=match.better,
        baseline=baseline,
        candidate=candidate,
        ratio=plain.ratio,
        ci95=_interval(plain),
        ci95_family=_interval(adjusted),
        verdict=verdict(adjusted.low, adjusted.high, margin, higher_is_better=match.better is Better.HIGHER),
        margin=margin,
        n_repeats=min(len(baseline.values), len(candidate.values)),
        family=family,
        design=design,
        p_family=p,
        pairs=pairs,
        note=_note(baseline, candidate, design, adjusted),
    )


def _step_down(family: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons with Holm-adjusted p-values; for a difference that Holm finds although its simultaneous
    interval overlaps the margin, the interval ends at the margin (Strassburger & Bretz 2008: the bounds of Holm's
    procedure end where the rejected hypothesis begins)."""
    adjusted = holm([comparison.p_family for comparison in family])
    return [_decided(comparison, p) for comparison, p in zip(family, adjusted, strict=True)]


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


def _pairs(baseline: Measured, candidate: Measured) -> list[tuple[RepeatValue, RepeatValue]]:
    """The repeats of both sides in each block that has both, in order of time."""
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


def _stopped(look: int | None, blocks: int, rule: Sequential) -> Stopped:
    if look is not None:
        return Stopped.DECIDED
    if blocks >= rule.maximum:
        return Stopped.MAXIMUM
    return Stopped.BUDGET if rule.is_spent else Stopped.UNFINISHED


def _side(measured: Measured, values: Sequence[RepeatValue]) -> Side:
    return Side(
        measured.name,
        median(numbers(values)),
        values if isinstance(values, RepeatValues) else tuple(values),
        (measured.experiment,),
        measured.hosts,
    )


def _interval(found: RatioInterval) -> tuple[float, float] | None:
    return None if found.low is None or found.high is None else (found.low, found.high)


def _note(baseline: Side, candidate: Side, design: Design, adjusted: RatioInterval) -> str:
    """What limits the verdict, as text."""
    if baseline.is_reference or candidate.is_reference:
        return "one side is a published value: another machine, no interval"
    notes = []
    if set(baseline.hosts) != set(candidate.hosts) and baseline.hosts and candidate.hosts:
        notes.append("two machines: the verdict holds for these two, not for other machines of the same type")
    if not design.is_interleaved:
        notes.append("measured separately: the ratio includes any drift of the machine in between")
    fewest = min(len(baseline.values), len(candidate.values))
    if fewest < MINIMUM_REPEATS:
        notes.append(f"only {count(fewest, 'repeat')} on a side: an interval needs {MINIMUM_REPEATS}")
    elif adjusted.low is None:
        notes.append(f"{fewest} repeats are too few for an interval that holds for the whole family")
    return "; ".join(notes)
