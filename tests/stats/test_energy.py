"""The energy of a phase: planted curves of power, sampled as sensors do, against the true energy."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.stats.energy import FEWEST_VALUES, Energy, Series, energy, refresh_interval, unwrapped

IDLE_W, LOAD_W = 200.0, 500.0
RESOLUTION_S = 1e-3


class Planted:
    """A curve of power over time, with its true energy."""

    def __init__(self, kind: str, start_s: float, end_s: float, span_s: float) -> None:
        self.start_s, self.end_s = start_s, end_s
        self.at_s = np.arange(start_s - span_s, end_s + span_s, RESOLUTION_S)
        inside = (self.at_s >= start_s) & (self.at_s < end_s)
        within = (self.at_s - start_s) / (end_s - start_s)
        power = {
            "step": np.full(self.at_s.shape, LOAD_W),
            "ramp": IDLE_W + (LOAD_W - IDLE_W) * within,
            "steps": np.where(((within * 5) % 1 > 0.4) & ((within * 5) % 1 < 0.7), 350.0, LOAD_W),
        }[kind]
        self.power = np.where(inside, power, IDLE_W)
        self.total = np.concatenate([[0.0], np.cumsum((self.power[1:] + self.power[:-1]) / 2 * RESOLUTION_S)])

    @property
    def joules(self) -> float:
        return float(np.interp(self.end_s, self.at_s, self.total) - np.interp(self.start_s, self.at_s, self.total))

    def read(
        self, refresh_s: float, window_s: float, period_s: float, phases: np.ndarray, *, is_counter: bool = False
    ) -> Series:
        """As a sensor that is read now and then shows it."""
        updates = np.arange(self.at_s[0] + window_s + phases[0] * refresh_s, self.at_s[-1], refresh_s)
        if is_counter:
            values = np.interp(updates, self.at_s, self.total)
        elif window_s:
            ends, starts = (np.interp(updates - back, self.at_s, self.total) for back in (0.0, window_s))
            values = (ends - starts) / window_s
        else:
            values = np.interp(updates, self.at_s, self.power)
        reads = np.arange(updates[0] + phases[1] * period_s, self.at_s[-1], period_s)
        position = np.searchsorted(updates, reads, side="right") - 1
        is_new = np.concatenate([[True], np.diff(position) > 0])
        return Series(
            tuple(reads[is_new]),
            tuple(values[position[is_new]]),
            is_counter,
            refresh_s,
            min(refresh_s, period_s),
            window_s,
        )


@pytest.mark.parametrize("kind", ["step", "ramp", "steps"])
@pytest.mark.parametrize(
    ("refresh_s", "window_s", "period_s", "is_counter"),
    [
        (1.0, 0.0, 1.0, False),
        (1.0, 1.0, 1.0, False),
        (1.0, 0.0, 0.25, False),
        (0.2, 1.0, 0.2, False),
        (1.0, 0.0, 1.3, True),
        (0.1, 0.0, 0.7, True),
    ],
)
@pytest.mark.parametrize("has_idle", [True, False])
def test_the_error_holds_the_true_energy(
    kind: str, refresh_s: float, window_s: float, period_s: float, is_counter: bool, has_idle: bool
) -> None:
    generator = np.random.default_rng(7)
    errors, stated = [], []
    for _ in range(40):
        length_s = max(20 * max(refresh_s, period_s), 12 * window_s) * (1 + generator.random())
        planted = Planted(kind, generator.random() * refresh_s, length_s, 10 * (window_s + period_s + refresh_s))
        series = planted.read(refresh_s, window_s, period_s, generator.random(2), is_counter=is_counter)
        if not has_idle:
            kept = [k for k, at in enumerate(series.at_s) if planted.start_s <= at <= planted.end_s]
            values = (tuple(series.at_s[k] for k in kept), tuple(series.values[k] for k in kept))
            series = Series(*values, is_counter, refresh_s, series.late_s, window_s)
        found = energy(series, planted.start_s, planted.end_s)
        assert found is not None
        errors.append(abs(found.joules - planted.joules) / planted.joules)
        stated.append(found.joules_error / planted.joules)
    close = 1e-4  # what the planted curve itself is not exact to
    assert all(error <= bound + close for error, bound in zip(errors, stated, strict=True))
    assert np.mean(stated) < 0.15


def found_energy(values: list[float], start_s: float, end_s: float, **more: float) -> Energy | None:
    return energy(
        Series(tuple(float(k) for k in range(len(values))), tuple(values), False, 1.0, **more), start_s, end_s
    )


def test_too_few_values_give_no_energy() -> None:
    values = [300.0] * 40
    assert found_energy(values, 10.0, 10.0 + FEWEST_VALUES - 2) is None
    assert found_energy(values, 10.0, 10.0 + FEWEST_VALUES + 2) is not None


def test_idle_power_is_known_where_it_is_steady() -> None:
    found = found_energy([200.0] * 10 + [500.0] * 20 + [210.0] * 10, 9.5, 29.5)
    assert found is not None
    assert (found.before_W, found.after_W) == (200.0, 210.0)
    assert found.joules == pytest.approx(20 * 500.0)
    assert found.peak_W == 500.0
    restless = found_energy([200.0, 480.0] * 5 + [500.0] * 20 + [210.0] * 10, 9.5, 29.5)
    assert restless is not None
    assert restless.before_W is None


def test_the_class_of_the_meter_is_added() -> None:
    values = [200.0] * 10 + [500.0] * 20 + [200.0] * 10
    without = found_energy(values, 9.5, 29.5)
    series = Series(tuple(float(k) for k in range(40)), tuple(values), False, 1.0)
    within = energy(series, 9.5, 29.5, class_share=0.03)
    assert without is not None
    assert within is not None
    assert within.joules_error - without.joules_error == pytest.approx(0.03 * within.joules)


def test_wraps_of_a_counter() -> None:
    assert unwrapped([90.0, 99.0, 5.0, 10.0], 100.0) == [90.0, 99.0, 105.0, 110.0]
    assert unwrapped([90.0, 99.0, 5.0, 10.0, 101.0], None) == [90.0, 99.0, None, None, 101.0]
    assert unwrapped([90.0, 89.0, 91.0], 100.0) == [90.0, None, 91.0]  # a step back, not a wrap


def test_how_often_a_sensor_changes_is_seen() -> None:
    at_s = [k * 0.1 for k in range(60)]
    assert refresh_interval(at_s, [float(k // 5) for k in range(60)]) == pytest.approx(0.5)
    assert refresh_interval(at_s, [7.0] * 60) is None
