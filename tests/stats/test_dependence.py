"""Dependent repeats: found, and the interval of the median widened or withheld."""

from __future__ import annotations

import math
import random

import pytest

from seatrial.stats.interval import FEWEST, StoppingRule, dependence, inflation, median_interval


def _autoregressive(source: random.Random, n: int, correlation: float) -> list[float]:
    value, found = source.gauss(0.0, 1.0), []
    for _ in range(n):
        found.append(100.0 + value)
        value = correlation * value + math.sqrt(1.0 - correlation**2) * source.gauss(0.0, 1.0)
    return found


def test_independent_repeats_are_rarely_called_dependent() -> None:
    source = random.Random(1)
    for n in (12, 24, 60):
        found = sum(dependence(_autoregressive(source, n, 0.0)) > 0 for _ in range(400))
        assert found <= 0.07 * 400


def test_the_correlation_is_estimated() -> None:
    source = random.Random(2)
    found = [dependence(_autoregressive(source, 400, 0.6)) for _ in range(50)]
    assert sum(found) / 50 == pytest.approx(0.6, abs=0.05)
    assert dependence(list(range(40))) > 0.9
    assert dependence([3.0] * 40) == 0.0 and dependence(list(range(FEWEST - 1))) == 0.0
    assert dependence([0.0, 1.0] * 20) == 0.0, "values that alternate make a median surer, not less sure"


@pytest.mark.parametrize(("n", "correlation"), [(24, 0.0), (40, 0.3), (40, 0.5), (100, 0.9)])
def test_the_printed_interval_covers_the_median(n: int, correlation: float) -> None:
    source = random.Random(3)
    held = printed = 0
    for _ in range(600):
        values = _autoregressive(source, n, correlation)
        found = median_interval(values, correlation=dependence(values))
        if found is not None:
            printed += 1
            held += found[0] <= 100.0 <= found[1]
    assert held >= (0.93 if correlation < 0.9 else 0.88) * printed
    plain = [median_interval(_autoregressive(source, n, correlation)) for _ in range(600)]
    if correlation >= 0.5:
        assert sum(low <= 100.0 <= high for low, high in filter(None, plain)) < 0.9 * 600, "without it, too narrow"


def test_a_strong_dependence_withholds_the_interval_and_does_not_stop_a_run() -> None:
    assert inflation(0.0) == 1.0 and inflation(0.5) == pytest.approx(math.sqrt(3.0))
    drifting = [100.0 + 0.01 * n for n in range(12)]
    assert median_interval(drifting) is not None
    assert median_interval(drifting, correlation=dependence(drifting)) is None
    rule = StoppingRule(precision=0.01, budget_s=100.0)
    assert rule.decide([drifting], 1.0, 0.1) is None
    shuffled = random.Random(4).sample(drifting, 12)
    assert rule.decide([shuffled], 1.0, 0.1) is not None
