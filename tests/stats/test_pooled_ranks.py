from __future__ import annotations

import math
import random
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.stats import block_test as pooled_ranks
from seatrial.stats.block_test import PooledRanks

Blocks = list[tuple[float, float]]

value = st.one_of(
    st.floats(-3.0, 3.0).map(lambda x: round(x, 3)), st.integers(-4, 4).map(lambda eighths: eighths / 8)
)  # with ties
few_blocks = st.lists(st.tuples(value, value), min_size=6, max_size=8)
alphas = st.sampled_from([0.05, 0.032])


def _ranks(values: list[float]) -> list[float]:
    return [sum(x < y for x in values) + (sum(x == y for x in values) + 1) / 2 for y in values]


def _by_listing(pairs: Blocks, shift: float) -> tuple[float, float]:
    """Two-sided p-values against a larger and against a smaller difference, by all 2^n signs."""
    n = len(pairs)
    ranks = _ranks([a for a, _ in pairs] + [b - shift for _, b in pairs])
    scores = [ranks[n + k] - ranks[k] for k in range(n)]
    sums = [sum(s * abs(c) for s, c in zip(signs, scores, strict=True)) for signs in product((-1, 1), repeat=n)]
    above, below = sum(s >= sum(scores) for s in sums), sum(s <= sum(scores) for s in sums)
    return min(1.0, 2 * above / 2**n), min(1.0, 2 * below / 2**n)


@settings(max_examples=40, deadline=None)
@given(few_blocks, alphas)
def test_the_interval_has_what_the_test_does_not_reject(pairs: Blocks, alpha: float) -> None:
    steps = sorted({b - a for a, _ in pairs for _, b in pairs})
    if any(y - x < 1e-9 for x, y in pairwise(steps)):
        return  # the middle between such neighbours is not exact enough for the listing
    middles = [steps[0] - 1.0, *((x + y) / 2 for x, y in pairwise(steps)), steps[-1] + 1.0]
    p = [_by_listing(pairs, middle) for middle in middles]
    first = next(k for k in range(len(p)) if p[k][0] > alpha)
    last = max(k for k in range(len(p)) if p[k][1] > alpha)
    found = PooledRanks(pairs).interval(alpha)
    if 2.0 ** (1 - len(pairs)) > alpha:
        assert found is None
    else:
        assert found == pytest.approx((steps[first - 1], steps[last]))


@given(st.lists(st.tuples(value, value), min_size=6, max_size=40), st.sampled_from([0.0, 0.02, 0.125]))
def test_exchanged_sides_invert_everything_exactly(pairs: Blocks, edge: float) -> None:
    one, other = PooledRanks(pairs), PooledRanks([(b, a) for a, b in pairs])
    assert other.estimate == -one.estimate
    assert other.p_outside(edge) == one.p_outside(edge)
    low, high = one.interval(0.05) or (0.0, 0.0)
    assert other.interval(0.05) == ((-high, -low) if one.interval(0.05) else None)


@given(st.lists(st.tuples(value, value), min_size=8, max_size=40), st.sampled_from([0.0, 0.02, 0.125, 1.0]))
def test_intervals_are_nested_and_agree_with_p(pairs: Blocks, edge: float) -> None:
    found = PooledRanks(pairs)
    wide, narrow = found.interval(0.01), found.interval(0.05)
    assert wide is not None and narrow is not None
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
    assert (found.p_outside(edge) <= 0.05) == (narrow[0] > edge or narrow[1] < -edge)


def test_equal_values_differ_by_nothing() -> None:
    found = PooledRanks([(0.7, 0.7)] * 8)
    assert (found.estimate, found.interval(0.05), found.p_outside(0.0)) == (0.0, (0.0, 0.0), 1.0)
    assert PooledRanks([(0.0, 0.3)] * 6).interval(2 / 2**6) == (0.3, 0.3)
    assert PooledRanks([(0.0, 0.3)] * 6).interval(2 / 2**6 - 1e-9) is None


def test_the_normal_tail_is_never_lighter_than_the_exact_one(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(5)
    for _ in range(20):
        pairs = [(source.gauss(0.0, 1.0), source.gauss(0.4, 1.0) + 3.0 * source.randrange(2)) for _ in range(63)]
        exact = PooledRanks(pairs).p_outside(0.0)
        with monkeypatch.context() as patch:
            patch.setattr(pooled_ranks, "_EXACT", 62)
            normal = PooledRanks(pairs).p_outside(0.0)
        assert exact > 0.1 or normal >= exact
        assert exact < 1e-3 or normal == pytest.approx(exact, rel=0.25)


def test_two_hundred_blocks_are_judged() -> None:
    source = random.Random(6)
    level = lambda: math.log(1.2) * (source.random() < 0.3) + source.gauss(0.0, 0.01)  # noqa: E731
    found = PooledRanks([(level(), level() + 0.05) for _ in range(pooled_ranks.MOST_BLOCKS)])
    low, high = found.interval(0.0025) or (0.0, 0.0)
    assert 0.04 < low < 0.05 < high < 0.06
