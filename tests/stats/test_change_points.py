"""Changes of level: found where they are, and not in what is exchangeable."""

from __future__ import annotations

import random

from seatrial.stats.max_t import FEWEST, change_points


def test_levels_are_told_apart() -> None:
    rng = random.Random(1)
    values = [rng.gauss(level, 0.02) for level in (1.0, 1.1, 0.9) for _ in range(20)]
    assert [change.index for change in change_points(values)] == [20, 40]


def test_an_outlier_a_constant_and_a_short_series_have_no_change() -> None:
    rng = random.Random(2)
    assert change_points([1.0] * 50) == []
    assert change_points([*(rng.gauss(1.0, 0.01) for _ in range(30)), 5.0]) == []
    assert change_points([0.0] * 4 + [1.0] * 5) == []
    assert change_points([0.0 + k * 1e-3 for k in range(5)] + [1.0 + k * 1e-3 for k in range(5)]) != [] and FEWEST == 10


def test_false_alarms_are_as_rare_as_stated() -> None:
    rng = random.Random(3)
    alarms = sum(bool(change_points([rng.expovariate(1.0) for _ in range(20)])) for _ in range(300))
    assert alarms <= 9  # 1 % of 300 is 3; more than 9 in 0.2 % of cases
