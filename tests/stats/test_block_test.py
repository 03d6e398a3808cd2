"""The choice between signed and pooled ranks."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial.model.study.comparison import Statistic
from seatrial.stats.block_test import MOST_BLOCKS, BlockTest
from seatrial.stats.ratio import paired_p_outside, paired_ratio

side = st.one_of(st.floats(0.9, 1.1), st.integers(90, 110).map(lambda hundredths: hundredths / 100))


def _on_levels(source: random.Random, n: int, ratio: float) -> list[tuple[float, float]]:
    def time() -> float:
        return math.exp(math.log(1.2) * (source.random() < 0.3) + source.gauss(0.0, 0.01))

    return [(time(), ratio * time()) for _ in range(n)]


def test_levels_choose_pooled_ranks_and_a_drift_does_not() -> None:
    source = random.Random(1)
    on_levels = [BlockTest(_on_levels(source, 24, ratio)).statistic for ratio in (1.0, 1.05, 2.0) for _ in range(20)]
    assert on_levels.count(Statistic.POOLED_RANKS) >= 54
    drifting = [(math.exp(0.03 * k + source.gauss(0, 0.01)), 1.1 * math.exp(0.03 * k)) for k in range(24)]
    assert BlockTest(drifting).statistic is Statistic.SIGNED_RANKS


def test_signed_ranks_give_the_paired_ratio() -> None:
    source = random.Random(2)
    pairs = [(1.0, math.exp(source.gauss(0.1, 0.01))) for _ in range(12)]
    found = BlockTest(pairs)
    assert found.statistic is Statistic.SIGNED_RANKS
    assert found.ratio(0.05) == paired_ratio(pairs, 0.05)
    assert found.p_outside(0.02) == paired_p_outside(pairs, 0.02)


@example(
    [
        (1.09375, 0.90625),
        (1.09375, 1.03),
        (0.953125, 1.0),
        (0.9375, 1.09375),
        (0.96875, 1.0625),
        (1.078125, 0.90625),
        (1.0625, 0.90625),
    ]
)
@given(st.lists(st.tuples(side, side), min_size=6, max_size=40))
def test_exchanged_sides_use_the_same_statistic_and_invert_the_ratio(pairs: list[tuple[float, float]]) -> None:
    one, other = BlockTest(pairs), BlockTest([(b, a) for a, b in pairs])
    assert one.ratio(0.05).ratio == pytest.approx(1.0 / other.ratio(0.05).ratio)
    assert one.p_outside(0.02) == other.p_outside(0.02)
    assert one.statistic is other.statistic


def test_few_and_very_many_blocks_use_signed_ranks() -> None:
    source = random.Random(3)
    assert BlockTest(_on_levels(source, 5, 1.0)).statistic is Statistic.SIGNED_RANKS
    assert BlockTest(_on_levels(source, MOST_BLOCKS + 1, 1.0)).statistic is Statistic.SIGNED_RANKS
    with pytest.raises(ValueError, match="no blocks"):
        BlockTest([])
    with pytest.raises(ValueError, match="positive"):
        BlockTest([(1.0, 0.0)] * 6)
