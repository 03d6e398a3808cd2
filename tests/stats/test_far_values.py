"""Far values among few, several and many."""

from __future__ import annotations

import math
import random

import pytest

from seatrial.stats.far_values import far_values, pareto_tail, tail_fit, two_classes


def groups(
    source: random.Random, n: int, repeats: int, odd: dict[int, float], noise: float = 0.01
) -> list[list[float]]:
    return [[odd.get(k, 1.0) * math.exp(source.gauss(0.0, noise)) for _ in range(repeats)] for k in range(n)]


@pytest.mark.parametrize("n", [3, 4, 9, 10, 40, 399, 400, 5000])
def test_a_far_value_is_found_among_any_number(n: int) -> None:
    found, why = far_values(groups(random.Random(n), n, 6, {1: 0.8}), 0.001, 0.05)
    assert why == "" and [one.index for one in found] == [1]
    assert found[0].ratio == pytest.approx(0.8, abs=0.02) and found[0].p <= 0.001
    assert found[0].distance is None or found[0].distance > 5


@pytest.mark.parametrize("n", [3, 4, 9, 10, 40, 2500])
def test_equal_values_are_not_far(n: int) -> None:
    source = random.Random(n)
    assert not any(far_values(groups(source, n, 6, {}), 0.01, 0.05)[0] for _ in range(20 if n < 100 else 3))


def test_a_difference_within_the_margin_does_not_count() -> None:
    found, _ = far_values(groups(random.Random(1), 8, 12, {1: 0.97}, 0.001), 0.01, 0.05)
    assert found == []


def test_noise_on_two_levels_is_not_far() -> None:
    source = random.Random(2)

    def two_levels(n: int) -> list[list[float]]:
        return [[1.2 if source.random() < 0.3 else 1.0 for _ in range(6)] for _ in range(n)]

    assert sum(bool(far_values(two_levels(8), 0.01, 0.05)[0]) for _ in range(200)) <= 6


def test_two_of_eight_are_found() -> None:
    found, _ = far_values(groups(random.Random(3), 8, 6, {1: 0.8, 5: 0.82}), 0.001, 0.05)
    assert [one.index for one in found] == [1, 5]


def test_half_of_them_are_not_far() -> None:
    found, _ = far_values(groups(random.Random(4), 6, 6, {0: 0.8, 1: 0.8, 2: 0.8}), 0.01, 0.05)
    assert found == []


@pytest.mark.parametrize(("values", "why"), [([[1.0], [2.0]], "fewer than 3"), ([[1.0]] * 5, "need repeats")])
def test_too_few_says_why(values: list[list[float]], why: str) -> None:
    found, said = far_values(values, 0.01, 0.05)
    assert found == [] and why in said


@pytest.mark.parametrize("n", [4, 20, 400])
def test_a_value_that_is_not_positive_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        far_values([[1.0, 0.0], *[[1.0, 1.0]] * (n - 1)], 0.01, 0.05)


def test_the_fit_of_a_tail_is_not_lighter_than_the_tail() -> None:
    source = random.Random(5)
    for shape in (0.0, 0.33, 0.7):
        draws = sorted(
            (((1 - source.random()) ** -shape - 1) / shape) if shape else source.expovariate(1) for _ in range(1000)
        )
        fitted, scale = tail_fit(draws, 1.0, 0.99)
        assert shape - 0.02 <= fitted <= shape + 0.35 and 0.6 < scale < 1.5


def test_odd_ones_do_not_shape_the_tail() -> None:
    source = random.Random(6)
    draws = sorted(source.expovariate(1) for _ in range(1000))
    clean, _ = tail_fit(draws, 1.0, 0.99)
    with_odd, _ = tail_fit([*draws[:970], *[50.0] * 30], 1.0, 0.99)
    assert with_odd <= clean + 0.2


def test_the_tail_of_a_pareto_distribution() -> None:
    assert pareto_tail(2.0, 0.0, 1.0) == pytest.approx(math.exp(-2))
    assert pareto_tail(2.0, 0.5, 1.0) == pytest.approx(0.25)


def test_two_classes_are_those_on_either_side_of_a_gap() -> None:
    source = random.Random(7)
    values = [source.gauss(0.0 if k % 3 else -0.2, 0.01) for k in range(60)]
    assert two_classes(values, 0.05) == tuple(range(0, 60, 3))
    assert two_classes([source.gauss(0.0, 0.01) for _ in range(60)], 0.05) == ()
    assert two_classes([0.0, 0.0, 0.0, 0.2, 0.2], 0.05) == ()


def test_one_that_differs_among_many_equal_ones_is_far() -> None:
    found, _ = far_values([[0.8 if k == 7 else 1.0] for k in range(1000)], 0.001, 0.05)
    assert [one.index for one in found] == [7]
