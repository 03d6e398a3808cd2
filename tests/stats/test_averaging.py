"""The window of a sensor, from how it shows a load."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from seatrial.stats.averaging import averaging_window


def shown(
    window_s: float, *, load_s: float = 40.0, late_s: float = 0.7, noise_W: float = 2.0, rise_s: float = 0.0
) -> tuple[list[float], list[float]]:
    """A value a second of a load of 500 W from 0 on, idle 200 W; `rise_s`: how slowly the load itself rises."""
    generator = random.Random(int(window_s))

    def load(at_s: float) -> float:
        share = 0.0 if not 0 <= at_s < load_s else 1.0 if not rise_s else min(1.0, at_s / rise_s)
        return 200.0 + 300.0 * share

    at = [k + 0.1 * generator.random() for k in range(-12, int(load_s) + 12)]
    steps = [0.05 * k for k in range(round(20 * window_s))] or [0.0]
    return at, [sum(load(t - late_s - one) for one in steps) / len(steps) + generator.gauss(0, noise_W) for t in at]


@pytest.mark.parametrize("window_s", [5.0, 10.0, 20.0, 30.0])
def test_the_window_of_an_average(window_s: float) -> None:
    found = averaging_window(*shown(window_s), [(0.0, 40.0), (2.0, 39.0)])
    assert found == pytest.approx(window_s, abs=1.5)


def test_a_program_that_is_shorter_than_the_window() -> None:
    assert averaging_window(*shown(20.0, load_s=14.0), [(0.0, 14.0)]) == pytest.approx(20.0, rel=0.2)


def test_what_is_no_average() -> None:
    load = [(0.0, 40.0)]
    assert averaging_window(*shown(0.0), load) is None
    assert averaging_window(*shown(1.0), load) is None
    assert averaging_window(*shown(0.0, rise_s=20.0), load) is None  # the load itself rises
    assert averaging_window(*shown(0.0, noise_W=200.0), load) is None
    assert averaging_window([1.0, 2.0], [3.0, 4.0], load) is None
    at, _ = shown(0.0)
    assert averaging_window(at, [300.0 for _ in at], load) is None
    assert all(one < other for one, other in pairwise(at))
