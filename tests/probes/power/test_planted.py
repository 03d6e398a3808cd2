"""Planted curves of power through sensors that refresh, average, count, wrap, stop: the energy against the true one."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from probes.power.made_up_bmc import USER, ipmi_bmc, password_file, redfish_bmc
from probes.power.maker_trees import Tree, chassis, collection, root
from probes.power.planted import Planted, Shown

from seatrial.model.environment.site import IpmiAccess, PowerAccess, RedfishAccess
from seatrial.model.results.energy import MeasuredEnergy
from seatrial.probes.power import sources
from seatrial.probes.power.measured import measured
from seatrial.probes.power.source import Reading, Sensor
from seatrial.probes.power.sources import live_sensors

SENSORS: dict[str, tuple[dict[str, Any], float]] = {
    "of each second": ({"refresh_s": 1.0}, 1.0),
    "averaged": ({"refresh_s": 1.0, "window_s": 1.0}, 1.0),
    "averaged over 20 s": ({"refresh_s": 1.0, "window_s": 20.0}, 1.0),
    "averaged over 20 s, each 20 s": ({"refresh_s": 20.0, "window_s": 20.0}, 20.0),
    "of each minute": ({"refresh_s": 60.0}, 60.0),
    "read more often": ({"refresh_s": 1.0}, 0.25),
    "with its own time": ({"refresh_s": 1.0, "has_time": True}, 1.0),
    "counter that wraps": ({"refresh_s": 0.1, "modulus_J": 5000}, 0.1),
}
"""What a sensor shows, and how often it is read, in seconds."""
PHASES = 25
ROUNDING = 0.003
"""An error below this share is that of values in whole watts, which a curve by chance does not have."""


def phase(kind: str, shown: dict[str, Any], chance: np.random.Generator) -> Shown:
    refresh_s, window_s = shown["refresh_s"], shown.get("window_s", 0.0)
    length_s = max(20 * refresh_s, 12 * window_s) * (1 + chance.random())
    start_s = 9 * refresh_s + 3 * window_s + chance.random() * refresh_s
    levels = (200 + chance.random(), 500 + chance.random())
    planted = Planted(kind, start_s, start_s + length_s, 9 * refresh_s + 2 * window_s, *levels)
    return Shown(planted, phase_s=chance.random() * refresh_s, **shown)


@pytest.mark.parametrize("name", SENSORS)
def test_the_error_is_honest_and_not_more_than_twice_what_is_seen(name: str) -> None:
    shown, period_s = SENSORS[name]
    chance = np.random.default_rng(11)
    errors, stated = [], []
    for kind in ("step", "ramp", "steps") * PHASES:
        one = phase(kind, shown, chance)
        found = measured(one.sensor(), one.readings(period_s, chance), one.planted.start_s, one.planted.end_s)
        assert found.energy is not None, found.reason
        assert found.energy_error is not None
        errors.append(abs(found.energy / one.planted.energy_J - 1))
        stated.append(found.energy_error / one.planted.energy_J)
    outside = sum(error > bound for error, bound in zip(errors, stated, strict=True))
    assert outside <= 1, outside  # it has three standard deviations: 1 in 370
    assert statistics.median(stated) <= max(ROUNDING, 2 * max(errors))


def test_a_sensor_that_stops_has_no_energy() -> None:
    chance = np.random.default_rng(1)
    for has_time, word in ((True, "stale"), (False, "stuck")):
        one = phase("step", {"refresh_s": 1.0, "still_s": 5.0, "has_time": has_time}, chance)
        found = measured(one.sensor(), one.readings(1.0, chance), one.planted.start_s, one.planted.end_s)
        assert (found.energy, word in found.reason) == (None, True), found.reason


class Clock:
    """A virtual one, on which the made-up BMC shows its power."""

    def __init__(self, shown: Shown) -> None:
        self.shown, self.now_s = shown, shown.window_s + shown.refresh_s

    @property
    def value(self) -> float:
        return self.shown.value(self.now_s)

    def measure(self, sensor: Sensor, period_s: float, tell: Any = lambda value: None) -> MeasuredEnergy:
        """The energy of the phase by a sensor that is really read."""
        readings, planted = list[Reading](), self.shown.planted
        while self.now_s < planted.last_s:
            tell(self.value)
            readings.append(replace(sensor.read(), at_s=self.now_s, took_s=0.0))
            self.now_s += period_s
        known = self.shown.sensor()
        stated = {"refresh_s": known.refresh_s, "window_s": known.window_s, "modulus_J": known.modulus_J}
        return measured(replace(sensor, **stated), readings, planted.start_s, planted.end_s)


def check(found: MeasuredEnergy, planted: Planted, most: float) -> None:
    assert found.energy is not None, found.reason
    assert found.energy_error is not None
    assert abs(found.energy - planted.energy_J) <= found.energy_error <= most * planted.energy_J


@pytest.mark.real
def test_a_bmc_over_https(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sources, "_SAME_ANSWER_S", 0.0)
    clock: list[Clock] = []

    def tree(power: dict[str, Any]) -> Tree:
        found = root() | collection("Chassis", "1") | chassis("1", "RackMount", {"EnvironmentMetrics": power})
        return found | {"/redfish/v1/Chassis/1/Energy": {"Reading": clock[0].value, "ReadingType": "EnergyJoules"}}

    def get(uri: str) -> Any:
        joules = {"DataSourceUri": "/redfish/v1/Chassis/1/Energy"}
        is_counter = clock[0].shown.modulus_J is not None
        return tree({"EnergyJoules": joules} if is_counter else {"PowerWatts": {"Reading": clock[0].value}}).get(uri)

    for kind, shown in (
        ("steps", {"refresh_s": 1.0}),
        ("step", {"refresh_s": 2.0, "window_s": 20.0}),
        ("ramp", {"refresh_s": 1.0, "modulus_J": 5000}),
    ):
        clock[:] = [Clock(phase(kind, shown, np.random.default_rng(2)))]
        with redfish_bmc(get, tmp_path) as (url, certificates, _):
            access = RedfishAccess(url, USER, password_file(tmp_path), ca_file=certificates)
            with live_sensors(PowerAccess(access)) as sensors:
                (sensor,) = (one for one in sensors if one.name.startswith("redfish"))
                check(clock[0].measure(sensor, shown["refresh_s"]), clock[0].shown.planted, 0.12)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("ipmitool") is None, reason="needs ipmitool")
def test_a_bmc_over_ipmi(tmp_path: Path) -> None:
    file = tmp_path / "watts"
    file.write_text("300")
    with ipmi_bmc(file) as port:
        access = IpmiAccess("127.0.0.1", port, USER, password_file(tmp_path))
        with live_sensors(PowerAccess(None, access)) as sensors:
            (sensor,) = (one for one in sensors if one.name == "ipmi:dcmi")

            def tell(value: float) -> None:
                file.with_suffix(".new").write_text(str(int(value)))
                file.with_suffix(".new").rename(file)

            clock = Clock(phase("ramp", {"refresh_s": 1.0}, np.random.default_rng(2)))
            check(clock.measure(sensor, 1.0, tell), clock.shown.planted, 0.12)
