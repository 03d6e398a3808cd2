from __future__ import annotations

import random

from seatrial.stats.interval import LOOKS, MINIMUM_REPEATS, Stop, StoppingRule, median_interval


def test_never_below_the_least_number_of_repeats() -> None:
    rule = StoppingRule(budget_s=0.0)
    for n in range(MINIMUM_REPEATS):
        assert rule.decide([[1.0] * n], 1e9, 1e9) is None
    assert rule.decide([[1.0] * MINIMUM_REPEATS], 1e9, 1e9) is Stop.BUDGET


def test_without_values_there_is_no_decision() -> None:
    assert StoppingRule().decide([], 1e9, 1e9) is None


def test_steady_values_stop_at_the_first_look_and_not_before() -> None:
    rule = StoppingRule(budget_s=1e9)
    assert rule.decide([[1.0] * (LOOKS[0] - 1)], 0, 0) is None
    assert rule.decide([[1.0] * LOOKS[0]], 0, 0) is Stop.PRECISE


def test_every_figure_must_be_precise() -> None:
    steady, wild = [1.0] * 8, [1.0, 2.0] * 4
    assert StoppingRule(budget_s=1e9).decide([steady, wild], 0, 0) is None


def test_noise_ends_with_the_budget_or_with_the_last_look() -> None:
    wild = [1.0, 2.0] * (LOOKS[-1] // 2)
    assert StoppingRule(budget_s=10).decide([wild[:10]], 9.5, 1.0) is Stop.BUDGET
    assert StoppingRule(budget_s=10).decide([wild[:10]], 8.5, 1.0) is None
    assert StoppingRule(budget_s=1e9).decide([wild], 0, 0) is Stop.COMPLETE


def test_what_was_decided_once_stays_decided_with_more_repeats() -> None:
    """So that an experiment which was finished yesterday is finished today, whatever was added to it."""
    values = [1.0] * LOOKS[0] + [5.0]
    assert StoppingRule(budget_s=1e9).decide([values], 0, 0) is Stop.PRECISE


def test_the_interval_that_is_printed_loses_little_by_stopping_on_precision() -> None:
    """It is the plain 95 % interval at a number of repeats that the data chose (docs/methodology.md)."""
    source = random.Random(13)
    misses = 0
    for _ in range(800):
        rule = StoppingRule(precision=0.02, budget_s=1e9)
        values: list[float] = []
        while rule.decide([values], 0, 0) is None:
            values.append(source.gauss(1.0, 0.02))
        low, high = median_interval(values)
        misses += not low <= 1.0 <= high
    assert misses <= 0.08 * 800  # nominal 5 %, and 0.77 % standard error


def test_the_interval_that_stops_a_run_misses_the_median_in_at_most_5_percent_of_runs() -> None:
    source = random.Random(11)
    rule = StoppingRule(precision=0.02, budget_s=1e9)
    misses = stopped = 0
    for _ in range(600):
        values: list[float] = []
        while (why := rule.decide([values], 0, 0)) is None:
            values.append(source.gauss(1.0, 0.02))
        if why is Stop.PRECISE:
            look = max(look for look in LOOKS if look <= len(values))
            low, high = median_interval(values[:look], 1 - 0.05 / len(LOOKS))
            stopped += 1
            misses += not low <= 1.0 <= high
    assert stopped > 300
    assert misses <= 0.05 * 600
