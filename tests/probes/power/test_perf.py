"""RAPL's counters through perf: the same counter as in powercap, listed once."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest
from probes.power.test_sysfs import rapl, write

from seatrial.machine.files import FileTree
from seatrial.model.machine.power import PowerSource, Scope
from seatrial.probes.power import rapl as source
from seatrial.probes.power.perf import Event, Open, perf_event_open
from seatrial.probes.power.sources import read_all

RIGHTS = "perf needs CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less"


def perf(root: Path, **events: str) -> None:
    """The PMU of a node with two packages, of which CPUs 0 and 8 read the events."""
    write(root, "sys/bus/event_source/devices/power", type=9, cpumask="0,8")
    for name, event in events.items():
        files = {name: event, f"{name}.scale": "2.3283064365386962890625e-10", f"{name}.unit": "Joules"}
        write(root, "sys/bus/event_source/devices/power/events", **files)
    for cpu, package in ((0, 0), (8, 1)):
        write(root, f"sys/devices/system/cpu/cpu{cpu}/topology", physical_package_id=package, die_id=0)


def counters(joules: dict[tuple[int, int], float]) -> Open:
    """Opens events by (config, CPU), each of which shows its energy once and again."""

    def opened(kind: int, config: int, cpu: int) -> int:
        assert kind == 9
        if (config, cpu) not in joules:
            raise PermissionError(errno.EACCES, "Permission denied")
        out, into = os.pipe()
        os.write(into, struct.pack("<Q", round(joules[config, cpu] * 2**32)) * 4)
        os.close(into)
        return out

    return opened


def read(root: Path, opening: Open) -> dict[str, PowerSource]:
    return {one.name: one for one in read_all(source.sensors(FileTree(root), opening))}


def test_events_of_each_package(tmp_path: Path) -> None:
    perf(tmp_path, **{"energy-pkg": "event=0x02", "energy-ram": "event=0x03", "energy-psys": "event=0x05"})
    values = {(2, 0): 7.5, (2, 8): 8.5, (3, 0): 1.0, (3, 8): 2.0, (5, 0): 30.0}
    found = read(tmp_path, counters(values))
    assert {name: (one.scope, one.joules, one.usable) for name, one in found.items()} == {
        "rapl:package-0": (Scope.PACKAGE, 7.5, True),
        "rapl:package-1": (Scope.PACKAGE, 8.5, True),
        "rapl:package-0/dram": (Scope.MEMORY, 1.0, True),
        "rapl:package-1/dram": (Scope.MEMORY, 2.0, True),
        "rapl:psys": (Scope.PART, 30.0, True),
    }


def test_a_counter_is_listed_once_and_read_through_what_can(tmp_path: Path) -> None:
    perf(tmp_path, **{"energy-pkg": "event=0x02"})
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    rapl(tmp_path, "intel-rapl:1", "package-1", "")
    both = read(tmp_path, counters({(2, 0): 7.5, (2, 8): 8.5}))
    assert {name: (one.joules, one.why) for name, one in both.items()} == {
        "rapl:package-0": (5.0, "measures a part of the node"),
        "rapl:package-1": (8.5, "is read through perf: powercap cannot be read"),
    }
    neither = read(tmp_path, counters({}))
    assert (neither["rapl:package-0"].joules, neither["rapl:package-0"].usable) == (5.0, True)
    assert neither["rapl:package-1"].why == f"reports no value; {RIGHTS}"
    (tmp_path / "sys/bus/event_source/devices/power/cpumask").write_text("0-\n")
    assert set(read(tmp_path, counters({}))) == {"rapl:package-0", "rapl:package-1"}


def test_the_dies_of_a_package_have_the_names_of_powercap(tmp_path: Path) -> None:
    perf(tmp_path, **{"energy-pkg": "event=0x02", "energy-cores": "event=0x01", "energy-gpu": "no event"})
    for cpu in (0, 8):
        write(tmp_path, f"sys/devices/system/cpu/cpu{cpu}/topology", physical_package_id=0, die_id=cpu // 8)
    found = read(tmp_path, counters({(2, 0): 1.0, (2, 8): 2.0, (1, 0): 3.0, (1, 8): 4.0}))
    assert {name: one.joules for name, one in found.items()} == {
        "rapl:package-0-die-0": 1.0,
        "rapl:package-0-die-1": 2.0,
        "rapl:package-0-die-0/core": 3.0,
        "rapl:package-0-die-1/core": 4.0,
    }


def test_events_of_the_kernel() -> None:
    """The clock of a CPU (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK) is opened as an event of power is."""
    event = Event(1, 0, min(os.sched_getaffinity(0)), 1e-9, perf_event_open)
    first, second = event.read(), event.read()
    if first.fault == RIGHTS:
        pytest.skip("needs CAP_PERFMON")
    assert first.joules is not None
    assert second.joules is not None
    assert 0.0 <= first.joules <= second.joules
    assert Event(1_000_000, 0, 0, 1.0, perf_event_open).read().fault.startswith("perf: ")
