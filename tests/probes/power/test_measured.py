"""From readings to the energy of a phase: what is not a figure, and two levels of power that are close."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from seatrial.model.machine.power import Scope, SourceKind
from seatrial.probes.power.measured import measured
from seatrial.probes.power.node_meter import curve as curve_of
from seatrial.probes.power.reader import line_of, period_s, readings_of
from seatrial.probes.power.source import Reading, Sensor

GAUGE = Sensor("gauge", Scope.NODE, SourceKind.GAUGE, "node", lambda: Reading(0.0), refresh_s=1.0, window_s=1.0)
COUNTER = replace(GAUGE, name="counter", kind=SourceKind.COUNTER, window_s=None, modulus_J=1000.0)
START_S, END_S = 20.0, 80.0


def curve(load_W: float = 500.0, noise_W: float = 1.0, seed: int = 1) -> list[Reading]:
    """Readings each second for 100 s, with the load from 20 s to 80 s."""
    generator = random.Random(seed)
    powers = (load_W if START_S < k <= END_S else 200.0 for k in range(100))
    return [Reading(float(k) + 0.3, 0.01, round(power + generator.gauss(0, noise_W))) for k, power in enumerate(powers)]


def counted(readings: list[Reading], modulus: float | None = 1000.0) -> list[Reading]:
    """As a counter shows it, with wraps."""
    total, found = 990.0, []
    for one in readings:
        total += one.watts or 0.0
        found.append(Reading(one.at_s, one.took_s, None, total % modulus if modulus else total))
    return found


def test_the_energy_of_a_gauge() -> None:
    found = measured(GAUGE, curve(), START_S, END_S)
    assert found.energy == pytest.approx(60 * 500.0, rel=0.01)
    assert found.energy_error is not None
    assert abs(found.energy - 60 * 500.0) <= found.energy_error < 0.02 * found.energy
    assert (found.idle_before, found.idle_after) == (pytest.approx(200.0, abs=2), pytest.approx(200.0, abs=2))
    assert found.energy_over_idle == pytest.approx(60 * 300.0, rel=0.02)
    assert found.reason == "the error does not hold the accuracy of the meter: not stated"


def test_wraps_of_a_counter_are_counted() -> None:
    found = measured(COUNTER, counted(curve()), START_S, END_S)
    assert found.energy == pytest.approx(60 * 500.0, rel=0.02)
    assert found.energy_error is not None
    assert abs(found.energy - 60 * 500.0) <= found.energy_error


def test_a_counter_that_stood_still_has_no_peak_when_it_goes_on() -> None:
    """The energy of two seconds was shown as the power of a tenth of one."""
    steady = [Reading(0.1 * k, 0.0, joules=45.0 * (k if not 200 < k < 220 else 200)) for k in range(400)]
    tenth = replace(COUNTER, refresh_s=0.1, modulus_J=None)
    found = measured(tenth, steady, 10.0, 30.0)
    assert found.peak_power == pytest.approx(450.0, rel=0.01)
    watts = [watts for _, watts in curve_of(tenth, steady, 0.0)]
    assert (min(watts), max(watts)) == (pytest.approx(450.0), pytest.approx(450.0))


def shown(sensor: Sensor, readings: list[Reading], start_s: float = START_S, end_s: float = END_S) -> str:
    """The reason for no figure."""
    found = measured(sensor, readings, start_s, end_s)
    assert (found.energy, found.energy_error, found.mean_power, found.peak_power) == (None, None, None, None)
    return found.reason


def test_what_is_not_a_figure() -> None:
    zero = [replace(one, watts=0.0) if k % 4 == 0 else one for k, one in enumerate(curve())]
    assert shown(GAUGE, zero) == "15 of 60 readings have no value: no value, 0 or a negative one"
    failed = [Reading(one.at_s, fault="no answer: timeout") if k > 69 else one for k, one in enumerate(curve())]
    assert shown(GAUGE, failed) == "10 of 60 readings have no value: no answer: timeout"
    stale = [replace(one, age_s=40.0) for one in curve()]
    assert shown(GAUGE, stale) == "its values are 40.0 s old, though they change every 1.00 s: stale"
    stuck = [replace(one, watts=344.0) for one in curve()]
    assert shown(GAUGE, stuck) == "it showed 344 W in all 100 readings, for 99.0 s: stuck"
    assert shown(replace(COUNTER, modulus_J=None), [replace(one, joules=7.0, watts=None) for one in curve()]).endswith(
        ": stuck"
    )
    short = shown(GAUGE, curve(), 30.0, 36.0)
    assert short == ("6.00 s hold fewer than 10 values of gauge, which changes every 1.00 s: at least 10.0 s would do")
    steps = [replace(one, watts=200.0 if one.at_s < 50 else 500.0) for one in curve()]
    assert "state `refresh:` in the site file" in shown(replace(GAUGE, refresh_s=None), steps)
    assert shown(GAUGE, curve()[40:41]) == "only 1 reading before, in and after 60.0 s"
    assert shown(GAUGE, []) == "0 of 0 readings have no value: no value, 0 or a negative one"


def test_two_levels_of_power_are_told_apart_where_the_errors_allow_it() -> None:
    def differ(refresh_s: float, window_s: float) -> bool:
        lower, upper = (
            measured(
                replace(GAUGE, refresh_s=refresh_s, window_s=window_s),
                curve(load, 0.5, seed)[:: int(refresh_s)],
                START_S,
                END_S,
            )
            for seed, load in enumerate((500.0, 515.0))
        )
        if lower.energy is None or upper.energy is None or lower.energy_error is None or upper.energy_error is None:
            return False
        return upper.energy - upper.energy_error > lower.energy + lower.energy_error

    assert differ(1.0, 1.0)
    assert not differ(5.0, 0.0)  # each edge of 300 W is uncertain by 5 s


def test_lines_of_the_reader() -> None:
    sensors = (GAUGE, COUNTER)
    readings = [
        (0, Reading(1.0, 0.25, watts=374.2, age_s=0.5)),
        (1, Reading(1.5, 0.001, joules=12.5)),
        (0, Reading(2.0, 0.25, fault="no answer: two\nlines")),
    ]
    text = "".join(line_of(number, sensors[number], one) for number, one in readings)
    first, second = readings_of(f"{text}0 3.0 0.1 37".encode(), sensors)  # the last line is not whole
    assert first == [readings[0][1], Reading(2.0, 0.25, fault="no answer: two lines")]
    assert second == [readings[1][1]]


def test_sensors_are_read_no_more_often_than_they_change() -> None:
    bmc = replace(GAUGE, is_remote=True)
    assert period_s(replace(bmc, refresh_s=60.0)) == 60.0
    assert period_s(replace(bmc, refresh_s=0.01)) == 1.0
    assert period_s(replace(GAUGE, refresh_s=0.001)) == pytest.approx(0.1)
