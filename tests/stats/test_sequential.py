"""The sequential rule, by cases and by simulation; bench/compare_simulation.py simulates more of it."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from usual import usually

from seatrial.model.study.comparison import Verdict
from seatrial.stats.block_test import BlockTest
from seatrial.stats.ratio import paired_p_outside
from seatrial.stats.sequential import (
    ALPHA,
    LOOK_ALPHA,
    LOOKS,
    Replay,
    are_decided_now,
    end_alpha,
    least_blocks,
    replay_curve,
)

MARGIN = 0.02
DIFFERENT = (Verdict.FASTER, Verdict.SLOWER)
Pairs = list[tuple[float, float]]
Noise = Callable[[random.Random, int], float]

steady = st.floats(0.97, 1.08).flatmap(
    lambda middle: st.lists(st.tuples(st.just(1.0), st.floats(middle * 0.98, middle * 1.02)), min_size=1, max_size=45)
)


def replay(
    pairs: Pairs, margin: float, higher_is_better: bool, family: int, ends: int = 1, *, is_finished: bool = True
) -> Replay:
    """The result of a single comparison."""
    return replay_curve([pairs], margin, higher_is_better, family, ends, is_finished=is_finished)[0]


# --- the rule


def test_the_error_is_never_spent_twice() -> None:
    assert len(LOOKS) <= 4 and all(first < second for first, second in pairwise(LOOKS))
    assert LOOK_ALPHA * len(LOOKS) + sum(end_alpha(end) for end in range(1, 100)) <= ALPHA * (1.0 + 1e-12)
    assert end_alpha(1) > LOOK_ALPHA, "most is left for the end"
    with pytest.raises(ValueError, match="counted from 1"):
        end_alpha(0)


def test_six_blocks_are_enough_for_one_comparison_and_a_family_needs_more() -> None:
    assert {family: least_blocks(family) for family in (1, 2, 3, 5, 10, 30, 100)} == {
        1: 6, 2: 7, 3: 8, 5: 9, 10: 10, 30: 11, 100: 13
    }  # fmt: skip
    for family in (1, 2, 3, 10):
        n = least_blocks(family)
        pairs = [(1.0, 1.1)] * n
        assert replay(pairs, MARGIN, True, family).verdict is Verdict.FASTER
        short = replay(pairs[:-1], MARGIN, True, family)
        assert (short.family.low, short.verdict) == (None, Verdict.AMBIGUOUS)


def test_the_first_look_that_decides_is_the_answer_whatever_follows() -> None:
    pairs = [(1.0, 1.1)] * LOOKS[0] + [(1.0, 0.5)] * 40
    for n in range(LOOKS[0], len(pairs)):
        found = replay(pairs[:n], MARGIN, higher_is_better=True, family=1)
        assert (found.verdict, found.blocks, found.stopped_at_look) == (Verdict.FASTER, LOOKS[0], LOOKS[0])
        assert found.alpha == LOOK_ALPHA


@pytest.mark.parametrize("family", [1, 3])
def test_a_look_rests_on_its_own_error_divided_by_the_family(family: int) -> None:
    source = random.Random(2)
    pairs = [(1.0, 1.1 * math.exp(source.gauss(0.0, 0.01))) for _ in range(40)]
    found = replay(pairs, MARGIN, higher_is_better=True, family=family)
    assert found.stopped_at_look == LOOKS[0]
    assert found.family == BlockTest(pairs[: LOOKS[0]]).ratio(LOOK_ALPHA / family)
    assert found.plain == BlockTest(pairs[: LOOKS[0]]).ratio(ALPHA)
    assert found.p_outside == pytest.approx(20.0 * (BlockTest(pairs[: LOOKS[0]]).p_outside(MARGIN) or 0.0))


def test_undecided_looks_leave_it_to_the_end() -> None:
    source = random.Random(1)
    pairs = [(1.0, math.exp(source.gauss(0.0, 0.3))) for _ in range(50)]
    for n in (7, 12, 23, 50):
        found = replay(pairs[:n], MARGIN, higher_is_better=True, family=1)
        assert (found.blocks, found.stopped_at_look, found.alpha) == (n, None, end_alpha())
        assert found.family == BlockTest(pairs[:n]).ratio(end_alpha())
    again = replay(pairs, MARGIN, higher_is_better=True, family=1, ends=2)
    assert again.alpha == end_alpha(2) < end_alpha(1)


def test_below_six_blocks_it_is_ambiguous() -> None:
    found = replay([(1.0, 3.0)] * 5, MARGIN, higher_is_better=True, family=1)
    assert (found.verdict, found.plain.low, found.family.low, found.p_outside) == (Verdict.AMBIGUOUS, None, None, None)
    with pytest.raises(ValueError, match="no blocks"):
        replay([], MARGIN, higher_is_better=True, family=1)
    with pytest.raises(ValueError, match="at least one"):
        replay([(1.0, 1.0)] * 6, MARGIN, higher_is_better=True, family=0)


def test_between_the_looks_nothing_is_decided() -> None:
    clear = [(1.0, 1.3)] * 60
    assert [n for n in range(61) if are_decided_now([clear[:n]], MARGIN, True, 1)] == list(LOOKS)


@settings(max_examples=60)
@given(steady, st.booleans(), st.sampled_from([1, 3, 10]), st.integers(1, 3))
def test_the_engine_and_the_reader_agree(pairs: Pairs, higher: bool, family: int, ends: int) -> None:
    found = replay(pairs, MARGIN, higher, family, ends)
    stops = [n for n in range(len(pairs) + 1) if are_decided_now([pairs[:n]], MARGIN, higher, family)]
    assert found.stopped_at_look == (stops[0] if stops else None)
    assert found.blocks == (stops[0] if stops else len(pairs))


@settings(max_examples=60)
@given(steady, st.booleans(), st.sampled_from([1, 3, 10]))
def test_the_plain_interval_lies_within_that_of_the_family_and_p_agrees(pairs: Pairs, higher: bool, k: int) -> None:
    found = replay(pairs, MARGIN, higher, k)
    if found.family.low is not None and found.family.high is not None:
        assert found.plain.low is not None and found.plain.high is not None
        assert found.family.low <= found.plain.low <= found.plain.high <= found.family.high
    if found.p_outside is None:
        assert len(pairs) < 6
    else:
        assert (found.p_outside <= ALPHA / k) == (found.verdict in DIFFERENT)
        assert found.p_outside >= (BlockTest(pairs[: found.blocks]).p_outside(MARGIN) or 0.0)


@settings(max_examples=60)
@given(steady, st.sampled_from([1, 3]))
def test_the_direction_of_the_figure_swaps_faster_and_slower(pairs: Pairs, family: int) -> None:
    rate, time = (replay(pairs, MARGIN, higher, family) for higher in (True, False))
    assert rate.blocks == time.blocks
    swapped = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    assert time.verdict is swapped.get(rate.verdict, rate.verdict)


# --- curves


def _curve(source: random.Random, n: int, ratios: list[float], sd: float = 0.01) -> list[Pairs]:
    processes = [(source.gauss(0.0, 0.05), source.gauss(0.0, 0.05)) for _ in range(n)]
    return [
        [
            (math.exp(a * 0.1 + source.gauss(0.0, sd)), ratio * math.exp(b * 0.1 + source.gauss(0.0, sd)))
            for a, b in processes
        ]
        for ratio in ratios
    ]


def test_six_blocks_suffice_for_a_curve_that_is_slower_everywhere() -> None:
    """Each of 14 sizes alone would need ten."""
    points = _curve(random.Random(1), 6, [1.4 + 0.2 * k / 13 for k in range(14)])
    found = replay_curve(points, MARGIN, higher_is_better=False, family=14)
    assert {one.verdict for one in found} == {Verdict.SLOWER}
    ends = {(one.family.low, one.family.high) for one in found}
    assert len(ends) == 1, "one range for all"
    ((low, high),) = ends
    assert low is not None and high is not None and 1.3 < low < 1.4 and 1.6 < high < 1.7
    two_curves = replay_curve(points, MARGIN, higher_is_better=False, family=28)
    assert {one.verdict for one in two_curves} == {Verdict.AMBIGUOUS}, "half of the error: seven blocks"


def test_a_curve_of_identical_sizes_is_the_same_at_all() -> None:
    points = _curve(random.Random(2), 12, [1.0] * 14, sd=0.004)
    assert {one.verdict for one in replay_curve(points, MARGIN, False, 14)} == {Verdict.SAME}


def test_with_enough_blocks_each_size_has_its_own_interval() -> None:
    points = _curve(random.Random(3), 30, [1.0] * 7 + [1.5] * 7)
    found = replay_curve(points, MARGIN, higher_is_better=False, family=14)
    assert [one.verdict for one in found] == [Verdict.SAME] * 7 + [Verdict.SLOWER] * 7
    assert found[7].family.high is not None and found[7].family.high < 1.6
    for one in found:
        assert one.family.low is not None and one.plain.low is not None and one.plain.high is not None
        assert one.family.high is not None
        assert one.family.low <= one.plain.low <= one.plain.high <= one.family.high


def test_identical_curves_are_rarely_called_different_at_any_size() -> None:
    source = random.Random(4)
    for n in (6, 10, 16):
        alarms = 0
        for _ in range(150):
            found = replay_curve(_curve(source, n, [1.0] * 10), 0.0, higher_is_better=False, family=10)
            alarms += any(one.verdict in DIFFERENT for one in found)
        assert alarms <= 0.05 * 150 + 5


def test_an_unfinished_comparison_is_read_at_planned_looks_only() -> None:
    clear = [(1.0, 1.3)] * 20
    for n in (6, 11):
        found = replay(clear[:n], MARGIN, False, 1, is_finished=False)
        assert (found.verdict, found.family.low, found.p_outside) == (Verdict.AMBIGUOUS, None, None)
        assert found.plain.low is not None, "the plain interval is shown"
        assert replay(clear[:n], MARGIN, False, 1).verdict is Verdict.SLOWER
    found = replay(clear[:13], MARGIN, False, 1, is_finished=False)
    assert (found.verdict, found.blocks, found.stopped_at_look) == (Verdict.SLOWER, 12, 12)


def test_watching_an_unfinished_comparison_is_not_rewarded_with_false_alarms() -> None:
    """Read again and again from 6 to 40 blocks at margin 0: with an end at each, 13 % would be wrong."""
    often = sorted({6, 8, 10, 40, *(look + k for look in LOOKS for k in (-1, 0, 1, 2))})
    source = random.Random(5)
    alarms = 0
    for _ in range(100):
        pairs = _blocks(_normal, source, 40, 1)[0]
        alarms += any(replay(pairs[:n], 0.0, False, 1, is_finished=False).verdict in DIFFERENT for n in often)
    assert alarms <= 0.05 * 100 + 2.0 * math.sqrt(0.05 * 0.95 * 100)


# --- simulation: noise of one repeat, on logarithms


def _normal(source: random.Random, step: int) -> float:
    return source.gauss(0.0, 0.02)


def _heavy(source: random.Random, step: int) -> float:
    """Student's t with 2.5 degrees of freedom."""
    return 0.02 * source.gauss(0.0, 1.0) / math.sqrt(source.gammavariate(1.25, 0.8))


def _two_levels(source: random.Random, step: int) -> float:
    return math.log(2.5) * source.randrange(2) + source.gauss(0.0, 0.02)


def _drift(source: random.Random, step: int) -> float:
    """1 % a repeat, a step in the middle, and a period of three repeats."""
    return 0.01 * step + 0.2 * (step > 30) + 0.05 * (step % 3) + source.gauss(0.0, 0.01)


NOISES = (_normal, _heavy, _two_levels, _drift)


def _blocks(noise: Noise, source: random.Random, n: int, candidates: int, ratio: float = 1.0) -> list[Pairs]:
    """Times of candidates that take `ratio` times as long as their baseline; every block in a random order."""
    found: list[Pairs] = [[] for _ in range(candidates)]
    for block in range(n):
        times = [math.exp(noise(source, block * (candidates + 1) + k)) for k in range(candidates + 1)]
        source.shuffle(times)
        for pairs, value in zip(found, times[1:], strict=True):
            pairs.append((times[0], value * ratio))
    return found


def _verdicts(noise: Noise, seed: int, tries: int, n: int, ratio: float) -> Counter[Verdict]:
    source = random.Random(seed)
    return Counter(
        replay(_blocks(noise, source, n, 1, ratio)[0], MARGIN, higher_is_better=False, family=1).verdict
        for _ in range(tries)
    )


FEW = [(_normal, 1), (_heavy, 1), (_drift, 1), (_two_levels, 3)]
"""Every noise once, with a family where the statistic changes."""


@pytest.mark.parametrize(("noise", "family"), usually(product(NOISES, [1, 3, 10]), lambda case: case in FEW))
def test_identical_programs_rarely_differ_even_without_a_margin(noise: Noise, family: int) -> None:
    """Any false alarm of the family counts. Margin 0 is the worst case of the rule: the truth lies on the edge."""
    source = random.Random(family)
    tries = 240 // family + 40
    alarms = sum(
        any(
            replay(pairs, 0.0, higher_is_better=False, family=family).verdict in DIFFERENT
            for pairs in _blocks(noise, source, 40, family)
        )
        for _ in range(tries)
    )
    assert alarms <= 0.05 * tries + 2.0 * math.sqrt(0.05 * 0.95 * tries)


def test_with_the_margin_identical_programs_never_differ_and_are_mostly_the_same() -> None:
    """The aims: of 200 at most 18 called different, at least 80 % called the same."""
    for noise in NOISES:
        seen = _verdicts(noise, 7, 200, 40, 1.0)
        assert seen[Verdict.FASTER] + seen[Verdict.SLOWER] <= 3
    assert _verdicts(_normal, 8, 200, 40, 1.0)[Verdict.SAME] >= 0.9 * 200


def test_five_percent_is_found_with_fifteen_blocks_at_two_percent_noise() -> None:
    """A program of 2 s and 60 s of time; the aim is 41 of 50."""
    seen = _verdicts(_normal, 9, 200, 15, 1.05)
    assert seen[Verdict.SLOWER] >= 0.85 * 200
    assert seen[Verdict.FASTER] == 0
    assert _verdicts(_drift, 9, 100, 28, 1.05)[Verdict.SLOWER] >= 0.2 * 100


def _levels(source: random.Random, step: int) -> float:
    """Three of ten processes are 20 % slower."""
    return math.log(1.2) * (source.random() < 0.3) + source.gauss(0.0, 0.01)


def test_levels_of_processes_do_not_hide_five_percent() -> None:
    """Signed ranks alone find 40 % of these differences with 24 blocks, and call 4 % of identical programs the same."""
    assert _verdicts(_levels, 14, 200, 24, 1.05)[Verdict.SLOWER] >= 0.83 * 200
    assert _verdicts(_levels, 15, 200, 40, 1.0)[Verdict.SAME] >= 0.83 * 200


@pytest.mark.parametrize("noise", NOISES)
def test_two_percent_is_never_called_the_wrong_way(noise: Noise) -> None:
    assert _verdicts(noise, 10, 150, 40, 1.02)[Verdict.FASTER] == 0


def test_looking_after_every_block_is_what_the_rule_prevents() -> None:
    """The 95 % interval of all blocks so far, looked at from the sixth on, cries wolf several times as often."""
    source = random.Random(12)
    wolf = 0
    for _ in range(200):
        pairs = _blocks(_normal, source, 40, 1)[0]
        wolf += any((paired_p_outside(pairs[:n], 0.0) or 1.0) <= 0.05 for n in range(6, 41))
    assert wolf >= 0.14 * 200


def test_who_gives_more_time_again_and_again_is_not_rewarded_with_false_alarms() -> None:
    """Ends at 8, 14, 20, ... 38 blocks, each time going on because it was ambiguous; margin 0."""
    source = random.Random(13)
    tries = 200
    alarms = 0
    for _ in range(tries):
        pairs = _blocks(_normal, source, 40, 1)[0]
        alarms += any(
            replay(pairs[:n], 0.0, higher_is_better=False, family=1, ends=end).verdict in DIFFERENT
            for end, n in enumerate(range(8, 41, 6), start=1)
        )
    assert alarms <= 0.05 * tries + 2.0 * math.sqrt(0.05 * 0.95 * tries)


# --- equivalence


def _equivalent(pairs: Pairs, n: int, *, family: int = 1) -> Replay:
    return replay_curve([pairs[:n]], MARGIN, False, family, equivalence=True)[0]


def test_equivalence_is_read_at_twice_the_error_of_a_look_and_a_difference_at_its_own() -> None:
    source = random.Random(3)
    pairs = [(1.0, math.exp(source.gauss(0.0, 0.015))) for _ in range(40)]
    for n in (*LOOKS, 40):
        found, plain = _equivalent(pairs, n, family=3), replay(pairs[:n], MARGIN, False, 3)
        used, test = found.blocks, BlockTest(pairs[: found.blocks])
        assert found.narrow == (test.ratio(2.0 * ALPHA), test.ratio(2.0 * found.alpha / 3))
        assert found.family == test.ratio(found.alpha / 3) and found.verdict is not Verdict.SAME
        assert plain.narrow is None and plain.verdict is not Verdict.EQUIVALENT and plain.blocks >= used
    different = [(1.0, 1.1)] * LOOKS[0]
    assert _equivalent(different, LOOKS[0]).verdict is replay(different, MARGIN, False, 1).verdict is Verdict.SLOWER


def test_without_an_interval_for_a_difference_nothing_is_equivalent() -> None:
    """Seven blocks suffice for three comparisons at twice the error, but not at the error itself."""
    found = _equivalent([(1.0, 1.0)] * 7, 7, family=3)
    assert (found.family.low, found.verdict) == (None, Verdict.AMBIGUOUS)
    assert found.narrow is not None and found.narrow[1].low is None
    assert _equivalent([(1.0, 1.0)] * 8, 8, family=3).verdict is Verdict.EQUIVALENT


@settings(max_examples=40)
@given(steady, st.booleans(), st.sampled_from([1, 3]))
def test_what_is_the_same_is_equivalent_and_the_engine_agrees(pairs: Pairs, higher: bool, family: int) -> None:
    (found,) = replay_curve([pairs], MARGIN, higher, family, equivalence=True)
    plain = replay(pairs, MARGIN, higher, family)
    if plain.verdict is Verdict.SAME:
        assert found.verdict is Verdict.EQUIVALENT
    if plain.verdict in DIFFERENT and found.blocks == plain.blocks:
        assert found.verdict is plain.verdict
    stops = [n for n in range(len(pairs) + 1) if are_decided_now([pairs[:n]], MARGIN, higher, family, equivalence=True)]
    assert found.stopped_at_look == (stops[0] if stops else None)


@pytest.mark.parametrize("noise", [_normal, _heavy, _drift])
def test_sides_that_differ_by_the_margin_are_rarely_called_equivalent(noise: Noise) -> None:
    """The truth on the edge is the worst case: all looks and the end together keep to 5 %."""
    source, tries = random.Random(21), 150
    wrong = sum(
        _equivalent(_blocks(noise, source, 40, 1, 1.0 + MARGIN)[0], 40).verdict is Verdict.EQUIVALENT
        for _ in range(tries)
    )
    assert wrong <= 0.05 * tries + 2.0 * math.sqrt(0.05 * 0.95 * tries)


def test_a_curve_is_equivalent_where_its_points_are_and_not_where_one_is_beyond() -> None:
    source = random.Random(22)
    points = _curve(source, 24, [1.0] * 6 + [1.05])
    found = replay_curve(points, MARGIN, False, 7, equivalence=True)
    assert [one.verdict for one in found] == [Verdict.EQUIVALENT] * 6 + [Verdict.SLOWER]
