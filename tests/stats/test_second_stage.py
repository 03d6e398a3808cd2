"""The second stage of a screen of nodes: what it finds, and how rarely it names a node wrongly."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import median

import pytest

from seatrial.stats.far_values import confirmed, to_measure_again

NODES = 64
MARGIN = 0.02


def _spread(kind: str, source: random.Random) -> float:
    levels: dict[str, Callable[[], float]] = {
        "equal": lambda: 0.0,
        "normal": lambda: source.gauss(0.0, 0.01),
        "exponential": lambda: 0.01 * source.expovariate(1.0),
        "two kinds": lambda: math.log(1.2) if source.random() < 0.3 else 0.0,
    }
    return levels[kind]()


def _repeats(level: float, n: int, source: random.Random) -> list[float]:
    return [math.exp(level + source.gauss(0.0, 0.01)) for _ in range(n)]


def _named(levels: list[float], seed: int, repeats: int = 1) -> set[int]:
    source = random.Random(seed)
    first = [median(_repeats(level, repeats, source)) for level in levels]
    again = to_measure_again([first], str(seed))
    assert again is not None
    suspects = {k: _repeats(levels[k], 10, source) for k in again.suspects}
    controls = [_repeats(levels[k], 10, source) for k in again.controls]
    return {one.index for one in confirmed(first, suspects, controls) if abs(one.ratio - 1.0) > MARGIN}


@pytest.mark.parametrize("kind", ["equal", "normal", "exponential", "two kinds"])
def test_no_node_is_named_that_is_within_the_spread_of_all(kind: str) -> None:
    trials = 150
    source = random.Random(1)
    wrong = sum(bool(_named([_spread(kind, source) for _ in range(NODES)], trial)) for trial in range(trials))
    assert wrong <= 0.05 * trials + 3 * math.sqrt(0.05 * 0.95 * trials)


def test_a_node_that_is_5_percent_slow_is_found_after_one_repeat_each() -> None:
    trials = 100
    found = [_named([0.05, *[0.0] * (NODES - 1)], trial) for trial in range(trials)]
    assert sum(one == {0} for one in found) >= 0.85 * trials


def test_a_fast_node_and_two_slow_ones_are_found() -> None:
    assert _named([-0.2, *[0.0] * 40], 1) == {0}
    assert _named([0.3, 0.3, *[0.0] * 60], 2) == {0, 1}


def test_the_farthest_in_any_figure_are_measured_again_beside_the_same_controls() -> None:
    source = random.Random(3)
    figures = [[10.0 + source.random() for _ in range(NODES)] for _ in range(3)]
    figures[0][5], figures[2][9] = 20.0, 5.0
    again = to_measure_again(figures, "seed")
    assert again is not None and {5, 9} <= set(again.suspects) and len(again.suspects) == 6
    assert len(again.controls) == 8 and not set(again.controls) & set(again.suspects)
    assert to_measure_again(figures, "seed") == again
    assert {to_measure_again(figures, str(n)) for n in range(5)} != {again}


def test_few_nodes_are_not_measured_again() -> None:
    assert to_measure_again([], "s") is None and to_measure_again([[1.0] * 5], "s") is None
    six = to_measure_again([[1.0, 1.0, 1.1, 1.0, 1.0, 1.0]], "s")
    assert six is not None and six.suspects == (2,) and len(six.controls) == 5


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ValueError, match="3 controls"):
        confirmed([1.0] * 10, {0: [1.0] * 10}, [[1.0] * 10] * 3)
    with pytest.raises(ValueError, match="positive and finite"):
        confirmed([1.0] * 10, {0: [0.0] * 10}, [[1.0] * 10] * 8)
    assert confirmed([1.0] * 10, {0: [1.0] * 10}, [[1.0] * 10] * 8) == []
