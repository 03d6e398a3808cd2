"""Sensors that Linux shows: made-up trees of powercap, hwmon and pm_counters."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from seatrial.machine.files import FileTree
from seatrial.model.machine.power import PowerSource, Scope, SourceKind
from seatrial.probes.power.sources import local_sensors, read_all, recorded_sensors


def write(root: Path, folder: str, **files: object) -> None:
    made = root / folder
    made.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (made / name).write_text(f"{text}\n")


def read(root: Path) -> dict[str, PowerSource]:
    return {one.name: one for one in read_all(local_sensors(FileTree(root)))}


def rapl(root: Path, number: str, name: str, energy_uj: object) -> None:
    write(root, f"sys/class/powercap/{number}", name=name, energy_uj=energy_uj, max_energy_range_uj=262143328850)


def test_domains_of_rapl_each_once(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    rapl(tmp_path, "intel-rapl:0:0", "core", 1_000_000)
    rapl(tmp_path, "intel-rapl:0:1", "dram", 2_000_000)
    rapl(tmp_path, "intel-rapl:1", "package-1", 6_000_000)
    rapl(tmp_path, "intel-rapl:1:0", "dram", 3_000_000)
    rapl(tmp_path, "intel-rapl:2", "psys", 9_000_000)
    rapl(tmp_path, "intel-rapl-mmio:0", "package-0", 7_000_000)
    found = read(tmp_path)
    assert {name: (one.scope, one.joules) for name, one in found.items()} == {
        "rapl:package-0": (Scope.PACKAGE, 5.0),
        "rapl:package-0/core": (Scope.PART, 1.0),
        "rapl:package-0/dram": (Scope.MEMORY, 2.0),
        "rapl:package-1": (Scope.PACKAGE, 6.0),
        "rapl:package-1/dram": (Scope.MEMORY, 3.0),
        "rapl:psys": (Scope.PART, 9.0),
    }
    assert all(one.kind is SourceKind.COUNTER and one.usable for one in found.values())


@pytest.mark.parametrize(("text", "why"), [("garbage", "reports no value"), ("", "reports no value")])
def test_a_counter_without_a_value(text: str, why: str, tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", text)
    (found,) = read(tmp_path).values()
    assert (found.usable, found.why) == (False, why)


def test_meters_of_drivers(tmp_path: Path) -> None:
    hwmon = "sys/class/hwmon/hwmon{}"
    write(tmp_path, hwmon.format(0), name="power_meter", power1_average=344_000_000, power1_average_interval=1000)
    write(tmp_path, hwmon.format(1), name="amdgpu", power1_average=90_000_000, power1_input=95_000_000)
    write(tmp_path, hwmon.format(2), name="amd_energy", energy1_label="Ecore000", energy1_input=1)
    write(tmp_path, hwmon.format(2), energy2_label="Esocket0", energy2_input=7_000_000)
    write(tmp_path, hwmon.format(3), name="coretemp", temp1_input=40000)
    write(tmp_path, hwmon.format(4), name="power_meter", power1_oem_info="Grace Power Socket 0")
    write(tmp_path, hwmon.format(4), power1_average=200_000_000, power1_average_interval=50)
    write(tmp_path, hwmon.format(5), name="power_meter", power1_oem_info="Module Power Socket 0")
    write(tmp_path, hwmon.format(5), power1_average=330_000_000, power1_average_interval=50)
    found = read(tmp_path)
    assert {name: (one.scope, one.watts or one.joules, one.window_s) for name, one in found.items()} == {
        "hwmon:hwmon0/power_meter/power1": (Scope.NODE, 344.0, 1.0),
        "hwmon:hwmon1/amdgpu/power1": (Scope.DEVICE, 95.0, None),
        "hwmon:hwmon2/amd_energy/Esocket0": (Scope.PACKAGE, 7.0, None),
        "hwmon:hwmon4/power_meter/Grace Power Socket 0": (Scope.PACKAGE, 200.0, 0.05),
        "hwmon:hwmon5/power_meter/Module Power Socket 0": (Scope.DEVICE, 330.0, 0.05),
    }


def test_counters_of_a_cray_node(tmp_path: Path) -> None:
    stamp = int((time.time() - 1.5) * 1e6)
    files = {"power": f"452 W {stamp} us", "energy": f"170391 J {stamp} us", "cpu_power": f"120 W {stamp} us"}
    more = {"accel0_energy": f"90000 J {stamp} us", "memory_power": "-1 W", "power_cap": "0 W", "generation": 3}
    write(tmp_path, "sys/cray/pm_counters", freshness=17, raw_scan_hz=10, **files, **more)
    found = read(tmp_path)
    assert {name: (one.scope, one.watts or one.joules) for name, one in found.items()} == {
        "pm_counters:accel0_energy": (Scope.DEVICE, 90000.0),
        "pm_counters:cpu_power": (Scope.PACKAGE, 120.0),
        "pm_counters:energy": (Scope.NODE, 170391.0),
        "pm_counters:memory_power": (Scope.MEMORY, -1.0),
        "pm_counters:power": (Scope.NODE, 452.0),
    }
    assert found["pm_counters:power"].refresh_s == pytest.approx(0.1)
    assert "stale" in found["pm_counters:power"].why or (found["pm_counters:power"].age_s or 0) < 2.5
    assert found["pm_counters:memory_power"].why == "reports -1.00 W: a power is not negative"


def test_a_set_that_changes_while_it_is_read_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "sys/cray/pm_counters", power="452 W", freshness=1)
    freshness, numbers, pread = tmp_path / "sys/cray/pm_counters/freshness", itertools.count(2), os.pread

    def restless(file: int, length: int, offset: int) -> bytes:
        freshness.write_text(f"{next(numbers)}")
        return pread(file, length, offset)

    monkeypatch.setattr(os, "pread", restless)
    (found,) = read_all(local_sensors(FileTree(tmp_path)))
    assert (found.usable, found.why) == (False, "changed each time that it was read")


def test_a_copy_of_sys_and_a_folder_with_sys_are_the_same(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    assert read_all(recorded_sensors("sysfs", tmp_path)) == read_all(recorded_sensors("sysfs", tmp_path / "sys"))
