"""The power of several nodes, each with its BMC: all nodes of a repeat count together, or none does."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from probes.power.made_up_bmc import PASSWORD, USER, redfish_bmc
from probes.power.test_sysfs import rapl, write

from seatrial.analysis.power import missing_energy
from seatrial.model.environment.site import PowerAccess, RedfishAccess
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.model.results.energy import MeasuredEnergy, PowerOverTime
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.probes.power import node_meter
from seatrial.probes.power.elsewhere import Elsewhere, reading_on
from seatrial.probes.power.on_node import line_of_sensor, words_for
from seatrial.probes.power.scopes import scope_samples
from seatrial.probes.power.source import Reading, Sensor
from seatrial.probes.power.sources import sensors_of_nodes


def measured(node: str, joules: float | None) -> MeasuredEnergy:
    known = joules is not None
    return MeasuredEnergy(
        f"{node}:bmc",
        Scope.NODE,
        Supply.AC,
        joules,
        1.0 if known else None,
        joules / 10 if joules is not None else None,
        0.1 if known else None,
        joules / 10 if joules is not None else None,
        0.1 if known else None,
        None,
        None,
        None,
        10.0,
        10,
        1.0,
        None,
        None,
        "" if known else "stale",
        of="node",
        node=node,
    )


def energies(nodes: list[str], *found: MeasuredEnergy) -> dict[str, float]:
    samples = scope_samples(PowerOverTime(tuple(found)), (), 1, nodes)
    return {sample.series: sample.work["amount"] for sample in samples}


def test_all_nodes_of_a_repeat_count() -> None:
    both = (measured("", 1000.0), measured("n2", 3000.0), measured("n3", 500.0))
    assert energies(["", "n2"], *both)["power.energy"] == 4000.0
    assert energies([""], *both)["power.energy"] == 1000.0
    assert energies(["", "n2", "n4"], *both) == {}
    assert energies(["", "n2"], measured("", 1000.0), measured("n2", None)) == {}


def test_the_node_without_a_sensor_is_named() -> None:
    from seatrial.model.json_object import plain

    def record(*found: MeasuredEnergy) -> RepeatRecord:
        power: dict[str, Any] = {"nodes": ["", "n2"], "energies": [plain(one) for one in found]}
        return RepeatRecord("x", 0, 0, 0.0, 1.0, Outcome.ok(), seen={"power": power})

    (one,) = missing_energy([record(measured("", 1.0))])
    assert one.reason == "no usable sensor measures the whole of n2"
    (one,) = missing_energy([record(measured("", 1.0), measured("n2", None))])
    assert one.reason == "stale"
    assert missing_energy([record(measured("", 1.0), measured("n2", 2.0))]) == ()


def tree(watts: float) -> Any:
    def get(uri: str) -> Any:
        root = "/redfish/v1"
        chassis = f"{root}/Chassis/1"
        return {
            root: {"Chassis": {"@odata.id": f"{root}/Chassis"}},
            f"{root}/Chassis": {"Members": [{"@odata.id": chassis}]},
            f"{root}/Chassis/1": {
                "Id": "1",
                "ChassisType": "RackMount",
                "Power": {"@odata.id": f"{root}/Chassis/1/Power"},
            },
            f"{chassis}/Power": {"PowerControl": [{"MemberId": "0", "PowerConsumedWatts": watts}]},
        }.get(uri.rstrip("/"))

    return get


@contextmanager
def bmcs(folder: Path, **watts: float) -> Iterator[list[tuple[str, PowerAccess]]]:
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o600)
    with ExitStack() as opened:
        found = []
        for node, power in watts.items():
            own = folder / node
            own.mkdir()
            url, ca, _ = opened.enter_context(redfish_bmc(tree(power), own))
            found.append((node, PowerAccess(RedfishAccess(url, USER, password, (), ca))))
        yield found


def readers_here(tmp_path: Path, *nodes: str) -> list[tuple[Sequence[str], Sequence[str]]]:
    """In place of srun: readers of nodes with made-up trees are started on this node."""
    for number, node in enumerate(("n2", "n3"), start=2):
        rapl(tmp_path / node, "intel-rapl:0", "package-0", number * 1_000_000)
        write(tmp_path / node, "sys/cray/pm_counters", power=f"{100 * number} W", freshness=1)
    return [([node], words_for(node, None, f"{tmp_path}/{{node}}")) for node in nodes]


@pytest.mark.real
def test_readers_on_other_nodes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    commands = [*readers_here(tmp_path, "n2", "n3", "n4"), (["n5"], ["/does/not/exist"])]
    with reading_on(commands) as there:
        assert [one.name for one in there.sensors] == [
            *("n2:pm_counters:power", "n2:rapl:package-0"),
            *("n3:pm_counters:power", "n3:rapl:package-0"),
        ]
        end_s = time.monotonic() + 20
        while not all(there.readings()) and time.monotonic() < end_s:
            time.sleep(0.05)
        values = [own[0].watts or own[0].joules for own in there.readings()]
        assert values == [200.0, 2.0, 300.0, 3.0]
        assert all(abs(own[-1].at_s - time.monotonic()) < 5 for own in there.readings())
        there.forget(time.monotonic() + 1)
    assert "/does/not/exist cannot be started" in caplog.text
    assert all(f"{node}: its own sensors of power are not read" in caplog.text for node in ("n4", "n5"))


def test_lines_that_a_launcher_has_mixed_are_left_out(tmp_path: Path) -> None:
    sensor = Sensor("rapl:package-0", Scope.PACKAGE, SourceKind.COUNTER, "package-0", lambda: Reading(0.0))
    with (tmp_path / "out").open("w+b") as output:
        lines = (
            line_of_sensor("n2", 0, sensor) + "seatrial-power n2 sensor 1 {\nseatrial-power n2 sensors 1\n"
            "seatrial-power n2 read 0 seatrial-power n3 read 0 1.0 0.0 5.0 -\nsrun: error\n"
            "seatrial-power n2 read 7 1.0 0.0 5.0 -\nseatrial-power n2 read 0 1.0 0.0 5.0 -\nseatrial-power n2 re"
        )
        output.write(lines.encode())
        output.flush()
        found = Elsewhere([output])
        found.wait_started([(["n2"], None)])
        assert [[one.joules for one in own] for own in found.readings()] == [[5.0]]
        assert found.sensors[0].node == "n2"


@pytest.mark.real
def test_the_meter_has_the_sensors_of_all_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the BMCs of other nodes were read."""
    monkeypatch.setattr(node_meter, "_WATCH_S", 0.2)
    rapl(tmp_path / "here", "intel-rapl:0", "package-0", 1_000_000)
    there = readers_here(tmp_path, "n2", "n3")
    recorded = ("sysfs", str(tmp_path / "here"))
    with node_meter.power_meter(PowerAccess(), None, recorded, elsewhere=there) as meter:
        now = time.monotonic()
        found = meter.of_phase(now - 1.0, now - 1.0, now)
    assert {(one.node, one.scope) for one in found.energies} == {
        *(("", Scope.PACKAGE), ("n2", Scope.PACKAGE), ("n3", Scope.PACKAGE)),
        *(("n2", Scope.NODE), ("n3", Scope.NODE)),
    }


@pytest.mark.real
def test_bmcs_of_other_nodes_are_asked_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with bmcs(tmp_path, n2=310.0, n3=420.0) as others, sensors_of_nodes(PowerAccess(), others) as sensors:
        read = {(one.node, one.name): one.read().watts for one in sensors if one.node}
        assert sorted(read.values()) == [310.0, 420.0]
        assert all(name.startswith(f"{node}:") for node, name in read)
