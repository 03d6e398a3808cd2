"""The interval of the median, against its definition and on distributions whose median is known."""

from __future__ import annotations

import math
import random

import pytest

from seatrial.stats.interval import median_interval, median_rank


def coverage(n: int, k: int) -> float:
    """P(k-th smallest <= median <= k-th largest), by the binomial itself."""
    return 1 - 2 * sum(math.comb(n, j) for j in range(k)) / 2**n


@pytest.mark.parametrize("n", range(1, 60))
def test_the_rank_is_the_largest_that_still_covers(n: int) -> None:
    k = median_rank(n, 0.95)
    if k is None:
        assert coverage(n, 1) < 0.95
    else:
        assert coverage(n, k) >= 0.95
        assert k == n // 2 or coverage(n, k + 1) < 0.95


def test_below_six_values_there_is_no_interval() -> None:
    assert median_interval([1, 2, 3, 4, 5]) is None
    assert median_interval([3, 1, 2, 6, 5, 4]) == (1, 6)


def test_a_million_values_do_not_overflow() -> None:
    k = median_rank(1_000_000, 0.95)
    assert k == pytest.approx(500_000 - 980, abs=3)  # n/2 - 1.96 sqrt(n)/2


@pytest.mark.parametrize(
    ("draw", "truth"),
    [
        (lambda r: r.gauss(10, 1), 10.0),
        (lambda r: math.exp(r.gauss(0, 1.5)), 1.0),
        (lambda r: r.choice([r.gauss(1, 0.01), r.gauss(3, 0.01), r.gauss(3, 0.01)]), None),
        (lambda r: r.random(), 0.5),
    ],
    ids=["normal", "heavy-tailed", "bimodal", "uniform"],
)
def test_it_covers_the_true_median_as_often_as_it_says(draw, truth) -> None:
    source = random.Random(7)
    if truth is None:  # by a large sample
        truth = sorted(draw(source) for _ in range(40_001))[20_000]
    hits = 0
    for _ in range(1000):
        low, high = median_interval([draw(source) for _ in range(12)])
        hits += low <= truth <= high
    assert hits >= 935  # 12 values cover with 96.1 %; 935 is four standard errors below
