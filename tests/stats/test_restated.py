"""Figures that restate each other: the same measurement in other units."""

from __future__ import annotations

from seatrial.stats.restated import restates, without_restated


def test_rates_and_times_of_one_measurement_restate_each_other():
    rates = [100.0, 190.0, 340.0]
    times = [round(1 / rate, 6) for rate in rates]  # as a log prints them
    assert restates(rates, [0.0864 * rate for rate in rates]) and restates(rates, times)
    assert not restates(rates, [100.0, 190.0, 345.0])


def test_constant_short_and_broken_series_restate_nothing():
    assert not restates([2.0] * 4, [3.0] * 4)
    assert not restates([1.0, 2.0], [1.0, 2.0])
    assert not restates([1.0, 2.0, 0.0], [1.0, 2.0, 0.0]) and not restates([1.0, 2.0, float("inf")], [1.0, 2.0, 3.0])


def test_only_series_of_the_same_points_are_compared():
    rates = [100.0, 190.0, 340.0]
    series = [("a", "B/s", rates), ("b", "s", rates), ("a", "s", rates), ("a", "B/s", rates), ("a", "1", rates)]
    assert without_restated(series) == {2: 0, 4: 0}
