from __future__ import annotations

import random
from itertools import product

import pytest

from seatrial.stats.max_t import adjusted_p


def _by_listing(differences: list[list[float]], margin: float) -> list[float]:
    """Step-down p-values by all signs, one hypothesis after another."""
    n = len(differences[0])
    beyond = []
    for own in differences:
        sign = 1 if sum(own) > 0 else -1
        beyond.append([sign * value - margin for value in own])

    def statistic(own: list[float], signs: tuple[int, ...]) -> float:
        return abs(sum(s * v for s, v in zip(signs, own, strict=True))) / sum(v * v for v in own) ** 0.5

    observed = [sum(own) / sum(v * v for v in own) ** 0.5 for own in beyond]
    order = sorted(range(len(beyond)), key=lambda j: -observed[j])
    found = [1.0] * len(beyond)
    largest = 0.0
    for place, j in enumerate(order):
        if observed[j] <= 0:
            continue
        later = order[place:]
        reached = [
            max(statistic(beyond[k], signs) for k in later) >= observed[j] - 1e-9
            for signs in product((1, -1), repeat=n)
        ]
        largest = max(largest, sum(reached) / len(reached))
        found[j] = largest
    return found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("margin", [0.0, 0.3])
def test_p_values_by_listing_all_signs(seed: int, margin: float) -> None:
    source = random.Random(seed)
    differences = [[source.gauss(0.4 * j, 1.0) for _ in range(7)] for j in range(5)]
    assert adjusted_p(differences, [margin] * len(differences)) == pytest.approx(_by_listing(differences, margin))


def test_six_blocks_suffice_for_any_number_of_clear_differences() -> None:
    source = random.Random(1)
    slower = [[0.4 + source.gauss(0.0, 0.01) for _ in range(6)] for _ in range(6)]
    equal = [[source.gauss(0.0, 0.01) for _ in range(6)] for _ in range(50)]
    found = adjusted_p(slower + equal, [0.02] * len(slower + equal))
    assert found[:6] == [2 / 2**6] * 6
    assert all(p == 1.0 or (p is not None and p > 0.05) for p in found[6:])
    assert adjusted_p([[1.0] * 5] * 3) == [None] * 3 and adjusted_p([]) == []
    assert adjusted_p([[0.0] * 6]) == [1.0]
    with pytest.raises(ValueError, match="same blocks"):
        adjusted_p([[1.0] * 6, [1.0] * 7])


@pytest.mark.parametrize("n", [6, 12, 24])
def test_equal_sides_are_rarely_called_different_whatever_the_noise(n: int) -> None:
    """40 sizes whose processes fall on two levels together, at margin 0."""
    source = random.Random(n)
    alarms = 0
    for _ in range(200):
        level = [0.2 * (source.random() < 0.3) - 0.2 * (source.random() < 0.3) for _ in range(n)]
        sizes = [[level[k] + source.gauss(0.0, 0.02 * (1 + j % 5)) for k in range(n)] for j in range(40)]
        alarms += min(p for p in adjusted_p(sizes) if p is not None) <= 0.05
    assert alarms <= 0.05 * 200 + 6


def test_swapped_sides_have_the_same_p_values_and_the_order_does_not_matter() -> None:
    source = random.Random(5)
    differences = [[source.gauss(0.2 * j, 1.0) for _ in range(20)] for j in range(6)]
    margins = [0.1, 0.2, 0.1, 0.0, 0.1, 0.05]
    found = adjusted_p(differences, margins)
    assert adjusted_p([[-value for value in own] for own in differences], margins) == pytest.approx(found)
    assert adjusted_p(differences[::-1], margins[::-1]) == pytest.approx(found[::-1])
