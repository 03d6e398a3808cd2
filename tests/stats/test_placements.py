from __future__ import annotations

import math
import random

import pytest

from seatrial.stats.ranks import mann_whitney_tail, two_sample_tail


def _placements(first: list[float], second: list[float]) -> tuple[list[int], list[int]]:
    def of(sample: list[float], other: list[float]) -> list[int]:
        return [sum(2 * (y < x) + (y == x) for y in other) for x in sample]

    return of(first, second), of(second, first)


def test_like_samples_are_judged_much_as_by_mann_whitney() -> None:
    source = random.Random(1)
    for n, m in ((20, 20), (15, 60), (80, 80)):
        first, second = ([source.gauss(0.0, 1.0) for _ in range(k)] for k in (n, m))
        tail = two_sample_tail(*_placements(first, second))
        for share in (0.25, 0.3, 0.35, 0.4):
            plain = mann_whitney_tail(n, m, int(share * n * m))
            assert plain <= tail(int(share * n * m)) <= 2.0 * plain + 0.01


def test_by_hand_where_one_side_decides() -> None:
    """Six wide values each exceed all or none of a hundred equal ones: Student's t with 5 degrees of freedom."""
    tail = two_sample_tail(*_placements([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], [0.0] * 100))
    deviation = math.sqrt(6 * 50**2)
    assert tail(round(300 - 2.5706 * deviation)) == pytest.approx(0.025, rel=0.02)
    assert tail(round(300 - 2.0150 * deviation)) == pytest.approx(0.05, rel=0.02)


def test_where_the_many_are_noisy_mann_whitney_is_the_more_careful() -> None:
    few, many = [0.01 * k for k in range(-3, 4)], [0.2 * k for k in range(-30, 31)]
    tail = two_sample_tail(*_placements(few, many))
    assert all(tail(u) == mann_whitney_tail(7, 61, u) for u in range(0, 150, 10))


def test_six_values_a_side_always_carry_an_interval_of_95_percent() -> None:
    """That all of one side exceed all of the other is as rare as a coin that falls six times the same way."""
    wide, narrow = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0], [-0.1, -0.05, -0.01, 0.01, 0.05, 0.1]
    assert two_sample_tail(*_placements(wide, narrow))(0) == 0.5**6
    assert two_sample_tail(*_placements([1.0] * 6, [1.0] * 8))(3) == mann_whitney_tail(6, 8, 3)


def test_exchanged_and_mirrored_sides_give_the_very_same() -> None:
    first, second = [1.0, 2.0, 5.0, 7.0, 8.0, 9.0], [3.0, 4.0, 4.5, 5.0, 6.0, 20.0, 21.0]
    there, back = two_sample_tail(*_placements(first, second)), two_sample_tail(*_placements(second, first))
    mirrored = two_sample_tail(*_placements([-x for x in first], [-y for y in second]))
    for u in range(22):
        assert there(u) == back(u) == mirrored(u)
        assert u == 0 or there(u) >= there(u - 1)


def test_in_the_middle_nothing_is_sure() -> None:
    tail = two_sample_tail(*_placements([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]))
    assert tail(18) >= 0.5
