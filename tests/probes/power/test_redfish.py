"""Redfish: recorded trees of makers and made-up ones with a trap each, and a service over https."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import SHARED_DATA
from msgspec.structs import replace
from probes.power.made_up_bmc import PASSWORD, USER, password_file, redfish_bmc

from seatrial.errors import UsageError
from seatrial.model.environment.site import PowerAccess, RedfishAccess
from seatrial.model.machine.power import PowerSource, Scope, SourceKind, Supply
from seatrial.probes.power.redfish import sensors
from seatrial.probes.power.source import states
from seatrial.probes.power.sources import live_sensors, read_all, recorded_sensors

TREES = SHARED_DATA / "redfish"
recorded_trees = pytest.mark.skipif(not TREES.is_dir(), reason="shared/data/redfish is not beside the checkout")


def tree(objects: dict[str, Any]) -> dict[str, Any]:
    """Chassis "1" with these objects below it."""
    uri = "/redfish/v1/Chassis/1"
    links = {name: {"@odata.id": f"{uri}/{name}"} for name in objects if "/" not in name}
    return {
        "/redfish/v1": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
        "/redfish/v1/Chassis": {"Members": [{"@odata.id": uri}]},
        uri: {"Id": "1", "ChassisType": "RackMount", **links},
        **{f"{uri}/{name}": found for name, found in objects.items()},
    }


def read(objects: dict[str, Any]) -> dict[str, PowerSource]:
    found = sensors(tree(objects).get)
    return {one.name: one for one in states(found, [sensor.read() for sensor in found])}


def control(**member: Any) -> PowerSource:
    (found,) = read({"Power": {"PowerControl": [member]}}).values()
    return found


@recorded_trees
@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("dmtf-rackmount1", {374.0}),
        ("hpe-ilo", {565.0}),
        ("traps/several-powercontrols", {245.0}),
        ("traps/strings-for-numbers", {310.0}),
        ("traps/member-is-a-link", {310.0}),
        ("traps/new-style-sensor-time", {374.2}),
        ("traps/enclosure-of-nodes", {390.0, 402.0}),
        ("traps/average-only", set()),
        ("traps/null-while-bmc-starts", set()),
    ],
)
def test_the_power_of_the_node_in_recorded_trees(name: str, watts: set[float]) -> None:
    found = read_all(recorded_sensors("redfish", TREES / name))
    assert {one.watts for one in found if one.usable and one.scope is Scope.NODE} == watts
    assert len({one.name for one in found}) == len(found)


@recorded_trees
def test_what_recorded_trees_state_about_their_sensors() -> None:
    dmtf = {one.name: one for one in read_all(recorded_sensors("redfish", TREES / "dmtf-rackmount1"))}
    assert dmtf["redfish:1U/PowerControl/0"].why == (
        "measures the same as redfish:1U/TotalPower, which is used, and reports -8 %"
    )
    assert dmtf["redfish:1U/Bay1/InputPowerWatts"].why == "reports more than the whole node (374 W)"
    assert dmtf["redfish:1U/TotalEnergy"].why == "counts in steps of 3.60 MJ: shorter runs do not show in it"
    ilo = {one.name: one for one in read_all(recorded_sensors("redfish", TREES / "hpe-ilo"))}
    assert ilo["redfish:1/PowerControl/0"].supply is Supply.DC  # the sum of what the four supplies put out
    assert {name: ilo[f"redfish:1/{name}"].watts for name in ("CpuWatts", "DimmWatts", "GpuWatts")} == {
        "CpuWatts": 134.0,
        "DimmWatts": 24.0,
        "GpuWatts": 135.0,
    }
    (average,) = read_all(recorded_sensors("redfish", TREES / "traps" / "average-only"))
    assert (average.window_s, average.why) == (1200.0, "is an average of 20.0 min: shorter runs do not show in it")
    sensor = read_all(recorded_sensors("redfish", TREES / "traps" / "new-style-sensor-time"))[0]
    assert (sensor.window_s, sensor.refresh_s, sensor.accuracy) == (30.0, 30.0, 0.03)


@pytest.mark.parametrize(
    ("watts", "why"),
    [
        (0, "reports 0 W, which is how many sensors report that they do not know"),
        (-5, "reports -5.00 W: a power is not negative"),
        (None, "reports no value"),
        ("n/a", "reports no value"),
        (True, "reports no value"),
        ([1], "reports no value"),
        (1e400, "reports no value"),
    ],
)
def test_a_value_that_is_none_is_not_used(watts: Any, why: str) -> None:
    found = control(MemberId="0", PowerConsumedWatts=watts)
    assert (found.usable, found.why) == (False, why)


def test_members_that_do_not_state_what_they_measure_are_not_used() -> None:
    found = read({"Power": {"PowerControl": [{"PowerConsumedWatts": 300}, {"PowerConsumedWatts": 120}]}})
    assert not any(one.usable for one in found.values())
    assert {one.why for one in found.values()} == {
        "is one of several in PowerControl that do not state what they measure"
    }


def test_what_is_not_a_tree_of_this_service_is_not_followed() -> None:
    asked = []
    objects = tree({"Power": {"PowerControl": [{"@odata.id": "https://elsewhere/redfish/v1/x"}]}})
    objects["/redfish/v1/Chassis"]["Members"] += [
        {"@odata.id": "//elsewhere/redfish/v1/Chassis/2"},
        {"@odata.id": "/redfish/v1/../../etc/passwd"},
        {"@odata.id": 3},
        "text",
    ]

    def get(uri: str) -> Any:
        asked.append(uri)
        return objects.get(uri)

    (found,) = sensors(get)
    assert found.read().fault == "is a link to something that is not in this service"
    assert all(uri == "" or (uri.startswith("/redfish/v1") and ".." not in uri) for uri in asked)


def test_the_last_value_of_a_telemetry_report() -> None:
    objects = tree({})
    objects["/redfish/v1"]["TelemetryService"] = {"@odata.id": "/redfish/v1/TelemetryService"}
    objects["/redfish/v1/TelemetryService"] = {"MetricReports": {"@odata.id": "/redfish/v1/Reports"}}
    objects["/redfish/v1/Reports"] = {"Members": [{"@odata.id": "/redfish/v1/Reports/PowerMetrics"}]}
    values = [
        {"MetricId": "SystemInputPower", "MetricValue": str(300 + k), "Timestamp": f"2026-01-01T00:00:0{k}Z"}
        for k in (0, 2, 1)
    ]
    cpu = {"MetricId": "TotalCPUPower", "MetricValue": "120", "Timestamp": "2026-01-01T00:00:00Z"}
    fan = {"MetricId": "SystemFanSpeed", "MetricValue": "55", "Timestamp": "2026-01-01T00:00:00Z"}
    objects["/redfish/v1/Reports/PowerMetrics"] = {"MetricValues": [*values, cpu, fan]}
    found = sensors(objects.get)
    node, package = states(found, [sensor.read() for sensor in found])
    assert (node.scope, node.watts, node.supply) == (Scope.NODE, 302.0, Supply.AC)
    assert (package.scope, package.watts) == (Scope.PACKAGE, 120.0)


def test_an_outlet_is_not_a_node() -> None:
    objects = tree({})
    objects["/redfish/v1"]["PowerEquipment"] = {"@odata.id": "/redfish/v1/PowerEquipment"}
    objects["/redfish/v1/PowerEquipment"] = {"RackPDUs": {"@odata.id": "/redfish/v1/PDUs"}}
    objects["/redfish/v1/PDUs"] = {"Members": [{"@odata.id": "/redfish/v1/PDUs/1"}]}
    objects["/redfish/v1/PDUs/1"] = {"Id": "1", "Outlets": {"@odata.id": "/redfish/v1/PDUs/1/Outlets"}}
    objects["/redfish/v1/PDUs/1/Outlets"] = {"Members": [{"@odata.id": "/redfish/v1/PDUs/1/Outlets/A4"}]}
    objects["/redfish/v1/PDUs/1/Outlets/A4"] = {"Id": "A4", "PowerWatts": {"Reading": 210.5}}
    found = sensors(objects.get)
    (outlet,) = states(found, [sensor.read() for sensor in found])
    assert (outlet.watts, outlet.supply, outlet.usable) == (210.5, Supply.AC, False)
    assert outlet.why == "is an outlet: which node it feeds is not stated there"


def service_of(folder: Path, get: Any, **changed: Any) -> tuple[list[PowerSource], list[str]]:
    with redfish_bmc(get, folder) as (url, certificates, answers):
        access = RedfishAccess(url, USER, password_file(folder), ca_file=certificates)
        with live_sensors(PowerAccess(replace(access, **changed))) as found:
            return read_all(found), answers.asked


def redfish_only(found: list[PowerSource]) -> list[PowerSource]:
    return [one for one in found if one.name.startswith("redfish")]


@pytest.mark.real
def test_a_service_over_https(tmp_path: Path) -> None:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 20))
    objects = tree(
        {
            "EnvironmentMetrics": {
                "PowerWatts": {"Reading": 1, "DataSourceUri": "/redfish/v1/Chassis/1/Sensors/TotalPower"}
            },
            "Sensors/TotalPower": {
                "ReadingType": "Power",
                "Reading": 374.2,
                "ReadingTime": now,
                "SensingInterval": "PT1S",
            },
        }
    )
    (found,) = redfish_only(service_of(tmp_path, objects.get)[0])
    assert (found.scope, found.kind, found.watts) == (Scope.NODE, SourceKind.GAUGE, 374.2)
    assert found.age_s is not None
    assert 15 < found.age_s < 60
    assert "stale" in found.why


@pytest.mark.real
@pytest.mark.parametrize(
    ("changed", "answer", "fault"),
    [
        ({"user": "somebody"}, {}, "HTTP 401: the user may not read /redfish/v1"),
        ({"ca_file": None}, {}, "CERTIFICATE_VERIFY_FAILED"),
        ({"url": "https://127.0.0.1:1"}, {}, "ConnectError"),
        ({}, b"<html>not JSON", "/redfish/v1 is not JSON"),
        ({}, b"[" * 100_000, "/redfish/v1 is not JSON"),
        ({}, b" " * (5 << 20), "/redfish/v1 is longer than 4 MiB"),
    ],
)
def test_a_service_that_does_not_answer_as_it_should(
    changed: dict[str, Any], answer: object, fault: str, tmp_path: Path
) -> None:
    (found,) = redfish_only(service_of(tmp_path, lambda uri: answer, **changed)[0])
    assert not found.usable
    assert fault in found.why
    assert PASSWORD not in json.dumps([found.why, found.name])


def test_a_folder_that_has_no_tree(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UsageError, match=r"no Redfish tree found|not a folder"):
            recorded_sensors("redfish", folder)
