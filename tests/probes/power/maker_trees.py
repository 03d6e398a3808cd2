"""Redfish trees in the styles of makers, written from their public documentation, with what is hard about each one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Tree = dict[str, Any]
V1 = "/redfish/v1"
SYSTEM = [{"@odata.id": f"{V1}/Systems/1"}]


def link(path: str) -> dict[str, str]:
    return {"@odata.id": f"{V1}/{path}"}


def collection(path: str, *names: str) -> Tree:
    return {f"{V1}/{path}": {"Members": [link(f"{path}/{name}") for name in names]}}


def root(**more: Any) -> Tree:
    links = {name: link(name) for name in ("Chassis", "Systems", "TelemetryService", "PowerEquipment")}
    return {V1: {"@odata.id": V1, "RedfishVersion": "1.15.0", "UUID": "u-1", **links, **more}}


def chassis(name: str, kind: str | None, parts: Mapping[str, Any] | None = None, **more: Any) -> Tree:
    """A chassis with these objects below it; a collection for those in `Sensors/`."""
    path, found = f"Chassis/{name}", dict(parts or {})
    sensors = [part.partition("/")[2] for part in found if part.startswith("Sensors/")]
    tree = {f"{V1}/{path}/{part}": one for part, one in found.items()}
    if sensors:
        tree |= collection(f"{path}/Sensors", *sensors)
    links = {part: link(f"{path}/{part}") for part in ("Power", "EnvironmentMetrics") if part in found}
    if sensors:
        links["Sensors"] = link(f"{path}/Sensors")
    own = {"Id": name, "ChassisType": kind, **links, **more}
    return {f"{V1}/{path}": {key: one for key, one in own.items() if one is not None}, **tree}


def power(name: str, watts: object, **more: Any) -> dict[str, Any]:
    return {"ReadingType": "Power", "ReadingUnits": "W", "Name": name, "Reading": watts, **more}


def dell() -> Tree:
    """iDRAC9: a backplane that is an enclosure, a report with 60 values of each metric as texts, the newest one in the
    middle, at local time; the board's sensor is the whole server."""
    member = {
        "@odata.id": f"{V1}/Chassis/System.Embedded.1/Power/PowerControl",
        "MemberId": "PowerControl",
        "Name": "System Power Control",
        "PowerCapacityWatts": 1400,
        "PowerConsumedWatts": 389,
        "PowerMetrics": {"AverageConsumedWatts": 385, "IntervalInMin": 1},
    }
    supplies = [{"PowerInputWatts": 200, "LastPowerOutputWatts": None}, {"PowerInputWatts": 189}]
    parts = {
        "Power": {"PowerControl": [member], "PowerSupplies": supplies},
        "Sensors/SystemBoardPwrConsumption": power(
            "System Board Pwr Consumption", 389, PhysicalContext="SystemBoard", Id="SystemBoardPwrConsumption"
        ),
        "Sensors/SystemBoardInletTemp": {"ReadingType": "Temperature", "Reading": 22},
        "Sensors/PS1Current1": {"ReadingType": "Current", "Reading": 0.9},
    }
    values = [
        {"MetricId": metric, "MetricValue": str(watts + k), "Timestamp": f"2026-11-20T05:00:{k:02}-06:00"}
        for metric, watts in (("SystemInputPower", 330), ("TotalCPUPower", 100), ("SystemOutputPower", 300))
        for k in (*range(30, 60), *range(30))
    ]
    report = {"Id": "PowerMetrics", "MetricReportDefinition": link("Definitions/PowerMetrics"), "MetricValues": values}
    return {
        **root(Oem={"Dell": {"ServiceTag": "REMOVED"}}),
        **collection("Chassis", "System.Embedded.1", "Enclosure.Internal.0-1"),
        **chassis("System.Embedded.1", "StandAlone", parts, Links={"ComputerSystems": SYSTEM}),
        **chassis("Enclosure.Internal.0-1", "Enclosure", Links={"ContainedBy": link("Chassis/System.Embedded.1")}),
        f"{V1}/TelemetryService": {"MetricReports": link("TelemetryService/MetricReports")},
        **collection("TelemetryService/MetricReports", "PowerMetrics"),
        f"{V1}/TelemetryService/MetricReports/PowerMetrics": report,
        f"{V1}/Definitions/PowerMetrics": {"Schedule": {"RecurrenceInterval": "PT0H1M0S"}},
    }


def hpe_ilo6() -> Tree:
    """iLO 6: the new objects and the old ones beside each other, no Name, fragments in links, a node that is off."""
    member = {"@odata.id": f"{V1}/Chassis/1/Power#PowerControl/0", "MemberId": "0", "PowerConsumedWatts": 227}
    average = {"AverageConsumedWatts": 226, "IntervalInMin": 20}
    parts = {
        "Power": {
            "PowerControl": [{**member, "PowerMetrics": average}],
            "Oem": {"Hpe": {"PowerMetric": {"CpuWatts": 80, "DimmWatts": 12, "GpuWatts": 0}}},
        },
        "EnvironmentMetrics": {"PowerWatts": {"Reading": 231, "DataSourceUri": f"{V1}/Chassis/1/Sensors/0"}},
        "Sensors/0": power("", 231, Id="0", PhysicalContext="Chassis", AveragingInterval="PT10S"),
        "Sensors/1": power("", None, Id="1", PhysicalContext="GPU", Status={"State": "Absent"}),
    }
    return {**root(), **collection("Chassis", "1"), **chassis("1", "RackMount", parts)}


def lenovo() -> Tree:
    """XCC: three members of PowerControl, of which one is the server; energy in kWh of three decimal places."""
    members = [
        {"MemberId": "0", "Name": "Server Power Control", "PowerConsumedWatts": 245},
        {"MemberId": "1", "Name": "CPU Sub-system Power", "PowerConsumedWatts": 90},
        {"MemberId": "2", "Name": "Memory Sub-system Power", "PowerConsumedWatts": 8},
    ]
    parts = {
        "Power": {"PowerControl": members, "PowerSupplies": [{"PowerInputWatts": 130, "PowerOutputWatts": 115}]},
        "Sensors/128L0": power("Sys Power", 244, Id="128L0", PhysicalContext="SystemBoard"),
        "Sensors/129L0": power("CPU Power", 90, Id="129L0", PhysicalContext="SystemBoard"),
        "Sensors/130L0": power("Mem Power", 8, Id="130L0", PhysicalContext="SystemBoard"),
        "Sensors/131L0": {
            "ReadingType": "EnergykWh",
            "Reading": 5120.125,
            "Name": "Energy",
            "PhysicalContext": "Chassis",
        },
    }
    return {**root(), **collection("Chassis", "1"), **chassis("1", "RackMount", parts)}


def supermicro() -> Tree:
    """A type "Other", numbers as texts, supplies that repeat a chassis, a member of the collection that is dead."""
    member = {
        "MemberId": "0",
        "Name": "System Power Control",
        "PowerConsumedWatts": "181",
        "PhysicalContext": "Chassis",
    }
    supplies = [{"LastPowerOutputWatts": 90}, {"LastPowerOutputWatts": 91}]
    parts = {"Power": {"PowerControl": [member], "PowerSupplies": supplies}}
    return {
        **root(),
        **collection("Chassis", "1", "HA-RAID.0.StorageEnclosure.0", "dead"),
        **chassis("1", "Other", parts, Links={"ComputerSystems": SYSTEM}),
        **chassis("HA-RAID.0.StorageEnclosure.0", "StorageEnclosure"),
    }


def nvidia_hgx(n_gpus: int = 8, n_sensors: int = 0) -> Tree:
    """HGX: each GPU is a module with its power and energy, shown again by its processor; their sum is not the node."""
    names = [f"HGX_GPU_SXM_{k + 1}" for k in range(n_gpus)]
    tree = root() | collection("Chassis", "HGX_Chassis_0", "HGX_ProcessorModule_0", *names)
    tree |= collection("Systems", "HGX_Baseboard_0") | collection("Systems/HGX_Baseboard_0/Processors", *names)
    tree[f"{V1}/Systems/HGX_Baseboard_0"] = {"Id": "HGX", "Processors": link("Systems/HGX_Baseboard_0/Processors")}
    more = {f"Sensors/Board_{k}": {"ReadingType": "Voltage", "Reading": 12} for k in range(n_sensors)}
    total = {"Sensors/HGX_Chassis_0_TotalGPU_Power_0": power("HGX Chassis 0 TotalGPU Power 0", 700 * n_gpus), **more}
    module = {"Sensors/ProcessorModule_0_Power_0": power("ProcessorModule 0 Power 0", 2400)}
    tree |= chassis("HGX_Chassis_0", "Module", total, Links={"ComputerSystems": [link("Systems/HGX_Baseboard_0")]})
    tree |= chassis("HGX_ProcessorModule_0", "Module", module)
    for k, name in enumerate(names):
        sensors = f"{V1}/Chassis/{name}/Sensors"
        metrics = {
            "PowerWatts": {"DataSourceUri": f"{sensors}/{name}_Power_0", "Reading": 690 + k},
            "EnergyJoules": {"DataSourceUri": f"{sensors}/{name}_Energy_0", "Reading": 5e6},
            "PowerLimitWatts": {"SetPoint": 700, "AllowableMax": 700},
        }
        parts = {
            "EnvironmentMetrics": metrics,
            f"Sensors/{name}_Power_0": power(f"{name} Power 0", 690 + k, PhysicalContext="GPU"),
            f"Sensors/{name}_Energy_0": {"ReadingType": "EnergyJoules", "Reading": 5e6, "PhysicalContext": "GPU"},
            f"Sensors/{name}_TEMP_0": {"ReadingType": "Temperature", "Reading": 40},
        }
        tree |= chassis(name, "Module", parts)
        path = f"Systems/HGX_Baseboard_0/Processors/{name}"
        tree[f"{V1}/{path}"] = {"Id": name, "ProcessorType": "GPU", "EnvironmentMetrics": link(f"{path}/Metrics")}
        tree[f"{V1}/{path}/Metrics"] = metrics
    return tree


def cray_ex() -> Tree:
    """EX: two nodes on a blade in one controller, members of PowerControl for accelerators, limits without a power."""

    def node(name: str, watts: object) -> Tree:
        members = [
            {
                "MemberId": "0",
                "Name": "Node Power Control",
                "PowerConsumedWatts": watts,
                "PowerLimit": {"LimitInWatts": 0},
            },
            {"MemberId": "1", "Name": "Accelerator0 Power Control", "PowerLimit": {"LimitInWatts": 560}},
        ]
        return chassis(name, "Card", {"Power": {"PowerControl": members}})

    tree = {**root(), **collection("Chassis", "Enclosure", "Node0", "Node1"), **chassis("Enclosure", "Enclosure")}
    return {**tree, **node("Node0", 1210), **node("Node1", None)}


def openbmc() -> Tree:
    """bmcweb: each board and supply is a chassis of the type of a server, sensors have no context, and a collection has
    pages, of which the last leads to the first."""
    member = {
        "@odata.id": f"{V1}/Chassis/Board/Power#/PowerControl/0",
        "MemberId": "0",
        "Name": "Chassis Power Control",
    }
    parts = {
        "Power": {"PowerControl": [{**member, "PowerConsumedWatts": None}]},
        "Sensors/power_total_power": power("total power", 344.5, Id="power_total_power"),
        "Sensors/power_cpu0": power("cpu0", 120, Id="power_cpu0"),
        "Sensors/temperature_cpu0": {"ReadingType": "Temperature", "Reading": 50},
    }
    supply = {"Sensors/power_PSU1_Input_Power": power("PSU1 Input Power", 350, Id="power_PSU1_Input_Power")}
    tree = {**root(), **chassis("Board", "RackMount", parts), **chassis("PSU1", "RackMount", supply)}
    tree |= chassis("Riser", "RackMount", Links={"ContainedBy": link("Chassis/Board")})
    tree |= collection("Chassis", "Board", "PSU1", "Board") | collection("Chassis2", "Riser")
    tree[f"{V1}/Chassis"]["Members@odata.nextLink"] = f"{V1}/Chassis2"
    tree[f"{V1}/Chassis2"]["Members@odata.nextLink"] = f"{V1}/Chassis"
    return tree


def written(tree: Tree, folder: Path) -> Path:
    """The tree as a folder."""
    for uri, found in tree.items():
        path = folder / uri.lstrip("/")
        path.mkdir(parents=True, exist_ok=True)
        (path / "index.json").write_text(json.dumps(found))
    return folder
