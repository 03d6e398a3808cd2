"""Intervals of serial shares: how often they hold, and when a law is said not to describe the points."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from seatrial.stats.fits import AMDAHL, GUSTAFSON, Law, LawInterval, law_interval
from seatrial.stats.ratio import paired_ratio

WORKERS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
Noise = Callable[[random.Random], float]


def _normal(source: random.Random) -> float:
    return source.gauss(0.0, 0.01)


def _rough(source: random.Random) -> float:
    return source.gauss(0.0, 0.1)


def _heavy(source: random.Random) -> float:
    return 0.01 * source.gauss(0.0, 1.0) / math.sqrt(source.gammavariate(1.0, 1.0))


def _levels(source: random.Random) -> float:
    return math.log(1.2) * (source.random() < 0.3) + source.gauss(0.0, 0.01)


def _known(law: Law, share: float, noise: Noise, n: int, source: random.Random, bend: float = 0.0) -> LawInterval:
    """The interval from n blocks of times; `bend` makes the largest number of workers slower than the law."""
    blocks = []
    for _ in range(n):
        times = [math.exp(noise(source)) / law.speedup(p, share) for p in WORKERS]
        times[-1] *= 1.0 + bend
        blocks.append([times[0] / time for time in times])
    speedups = [1.0, *(paired_ratio([(1.0, block[k]) for block in blocks], 0.05).ratio for k in range(1, len(WORKERS)))]
    found = law_interval(law, WORKERS, speedups, blocks)
    assert found is not None
    return found


@pytest.mark.parametrize("law", [AMDAHL, GUSTAFSON])
@pytest.mark.parametrize("noise", [_normal, _rough, _heavy, _levels])
@pytest.mark.parametrize("n", [6, 12])
def test_the_interval_holds_in_95_percent(law: Law, noise: Noise, n: int) -> None:
    source = random.Random(n)
    found = [_known(law, 0.05, noise, n, source) for _ in range(200)]
    ends = [one.ends for one in found if one.ends is not None]
    assert len(ends) >= 180, "a law that holds is rarely rejected"
    assert sum(low <= 0.05 <= high for low, high in ends) >= 0.92 * len(ends)


@pytest.mark.parametrize("n", [6, 24])
def test_a_law_that_does_not_describe_the_points_has_no_interval(n: int) -> None:
    source = random.Random(1)
    found = [_known(AMDAHL, 0.05, _normal, n, source, bend=0.4) for _ in range(50)]
    assert all(one.ends is None for one in found)
    assert {one.misfit for one in found} <= set(range(1, len(WORKERS)))
    assert _known(AMDAHL, 0.05, _normal, n, source, bend=0.005).ends is not None, "within the tolerance"


def test_below_six_blocks_nothing_is_said() -> None:
    assert law_interval(AMDAHL, WORKERS, WORKERS, [WORKERS] * 5) is None
    ideal = law_interval(AMDAHL, WORKERS, WORKERS, [WORKERS] * 6)
    assert ideal is not None and ideal.ends == pytest.approx((0.0, 0.0)) and ideal.misfit is None
