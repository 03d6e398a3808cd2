"""Comparison of sides that were measured apart, in different runs."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.match import Match, Measured, comparison_of, side_of
from seatrial.model.comparison import Comparison, Design, Stopped
from seatrial.model.figure_result import RepeatValue, numbers
from seatrial.stats.block_test import BlockTest
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.stats.ratio import RatioInterval, independent_ratio
from seatrial.stats.resolution import half_steps, widened
from seatrial.stats.sequential import ALPHA, both_intervals, narrow_intervals
from seatrial.stats.sessions import LEAST_SESSIONS, Timed, alternating_sessions


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
