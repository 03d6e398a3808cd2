"""The ratio of a block of processes that took turns."""

from __future__ import annotations

import random
from statistics import median, stdev

import pytest

from seatrial.stats.ratio import pair_of_block


def test_without_turns_it_is_that_of_the_repeats() -> None:
    assert pair_of_block(2.0, 3.0) == (2.0, 3.0)
    assert pair_of_block(2.0, 3.0, [1.0, 2.0], [9.0, 9.0]) == (2.0, 3.0), "two turns tell too little"
    assert pair_of_block(2.0, 3.0, [1.0, 0.0, 1.0], [9.0, 9.0, 9.0]) == (2.0, 3.0)


def test_a_change_of_the_machine_between_turns_falls_out() -> None:
    """The machine is twice as fast from the sixth turn on; the candidate has one turn more in the slow part."""
    baseline = [1.0] * 5 + [2.0] * 6
    candidate = [1.1] * 5 + [2.2] * 5
    first, second = pair_of_block(median(baseline), median(candidate), baseline, candidate)
    assert second / first == pytest.approx(1.1)
    assert median(candidate) / median(baseline) != pytest.approx(1.1)


def test_identical_programs_scatter_less_turn_by_turn() -> None:
    source = random.Random(3)
    by_turns, by_medians = [], []
    for _ in range(200):
        weather, level = [], 1.0
        for _ in range(40):
            level *= source.gauss(1.0, 0.05)
            weather.append(level)
        sides = [[w * source.gauss(1.0, 0.01) for w in weather[side::2]] for side in (0, 1)]
        a, b = pair_of_block(median(sides[0]), median(sides[1]), *sides)
        by_turns.append(b / a)
        by_medians.append(median(sides[1]) / median(sides[0]))
    assert median(by_turns) == pytest.approx(1.0, abs=0.01)
    assert stdev(by_turns) < 0.75 * stdev(by_medians)
