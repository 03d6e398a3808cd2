"""The program that reads sensors: who is read when there is not enough time, and what that costs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace
from probes.power.made_up_bmc import USER, ipmi_bmc, password_file
from probes.power.test_sysfs import rapl

from seatrial.machine.files import FileTree
from seatrial.model.environment.site import IpmiAccess, PowerAccess
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.probes.power import perf
from seatrial.probes.power.beside import Beside, idle_s
from seatrial.probes.power.reader import Orders, data_of, line_of, read_until
from seatrial.probes.power.source import Reading, Sensor
from seatrial.probes.power.sources import live_sensors, local_sensors
from seatrial.processes import start


def sensor(name: str, scope: Scope, is_remote: bool, takes_s: float = 0.0) -> Sensor:
    def read() -> Reading:
        time.sleep(takes_s)
        return Reading(time.monotonic(), takes_s, watts=1.0)

    return Sensor(name, scope, SourceKind.GAUGE, "", read, refresh_s=0.05, is_remote=is_remote)


def counted(sensors: list[Sensor], for_s: float) -> list[int]:
    written: list[bytes] = []
    read_until(time.monotonic() + for_s, dict(enumerate(sensors)), written.append)
    lines = b"".join(written).splitlines()
    return [sum(line.startswith(b"%d " % number) for line in lines) for number in range(len(sensors))]


def test_a_slow_bmc_delays_no_counter_and_not_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.probes.power.reader.REMOTE_PERIOD_S", 0.05)
    parts = [sensor(f"part{k}", Scope.DEVICE, True, 0.02) for k in range(8)]
    found = counted([*parts, sensor("node", Scope.NODE, True, 0.02), sensor("rapl", Scope.PACKAGE, False)], 0.8)
    assert found[-2] > 2 * max(found[:8]), found  # the node, in its turn
    assert min(found[:8]) >= 1
    assert found[-1] >= 4, found  # what is in the node is not behind the BMC


def test_a_sensor_that_costs_much_is_read_less_often() -> None:
    def read() -> Reading:
        end_s = time.thread_time() + 0.01
        while time.thread_time() < end_s:
            pass
        return Reading(time.monotonic(), 0.0, watts=1.0)

    costly = replace(sensor("costly", Scope.DEVICE, False), read=read)
    (found,) = counted([costly], 1.2)  # 10 % of a CPU at 0.1 s
    assert 1 <= found <= 4


def test_a_sensor_that_has_gone_leaves_the_numbers_of_the_others(tmp_path: Path) -> None:
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    orders = data_of(Orders(("gone", "rapl:package-0"), PowerAccess(), ("sysfs", str(tmp_path))))
    command = [sys.executable, "-m", "seatrial.probes.power.reader"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None and program.stdout is not None
        program.stdin.write(orders)
        program.stdin.close()
        line = program.stdout.readline()
        program.kill()
    assert line.startswith(b"1 ") and line.split()[3:] == [b"=", b"5000000"]


def test_a_sensor_that_is_too_slow_for_its_idle_power_does_not_prolong_the_wait() -> None:
    second, minute = (replace(sensor("one", Scope.NODE, True), refresh_s=one) for one in (1.0, 60.0))
    assert idle_s([]) == idle_s([minute]) == 1.0
    assert idle_s([second, minute]) == 8.0


def test_a_node_does_not_wait_for_hundreds_of_parts() -> None:
    sensors = [sensor("node", Scope.NODE, True), *(sensor(f"{k}", Scope.PART, True) for k in range(500))]
    with tempfile.TemporaryFile() as output:
        os.write(output.fileno(), line_of(0, sensors[0], Reading(1.0, 0.0, 300.0)).encode())
        Beside(sensors, output, None).wait_started()  # type: ignore[arg-type] - it does not ask whether it runs


def used_s(below: int) -> float:
    """CPU time of this process, and of those that a process below it has started, ended or not."""
    found, parents = time.process_time(), {below}
    for entry in sorted(
        (one for one in Path("/proc").iterdir() if one.name.isdecimal()), key=lambda one: int(one.name)
    ):
        with suppress(OSError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(entry.name) == below or int(fields[1]) in parents:
                parents.add(int(entry.name))
                found += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return found


@pytest.mark.real
def test_reading_costs_less_than_a_hundredth_of_a_cpu(tmp_path: Path) -> None:
    """In CPU seconds, of the programs that are started too, at the pace of each source."""
    if shutil.which("ipmitool") is None:
        pytest.skip("needs ipmitool")
    rapl(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    event = perf.Event(1, 0, min(os.sched_getaffinity(0)), 1e-9, perf.perf_event_open)
    with ipmi_bmc(344) as port:
        access = IpmiAccess("127.0.0.1", port, USER, password_file(tmp_path))
        with live_sensors(PowerAccess(None, access)) as found:
            chosen = {one.name: one for one in (*found, *local_sensors(FileTree(tmp_path)))}
            assert start._guard is not None
            for read, period_s in (
                (chosen["ipmi:dcmi"].read, 1.0),
                (chosen["rapl:package-0"].read, 0.1),
                (event.read, 0.1),
            ):
                read()
                began_s = used_s(start._guard.pid)
                for _ in range(30):
                    read()
                assert (used_s(start._guard.pid) - began_s) / 30 < 0.01 * period_s
