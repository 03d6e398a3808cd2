"""Fans and supplies that are out, and lost redundancy, of both styles of Redfish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here
from msgspec.structs import replace
from probes.power.made_up_bmc import PASSWORD, USER, password_file, redfish_bmc
from probes.power.maker_trees import V1, Tree, chassis, collection, link, root
from probes.power.test_redfish import TREES, recorded_trees
from published_schemas import check

from seatrial.model.environment.site import PowerAccess, RedfishAccess
from seatrial.probes.power import node_meter
from seatrial.probes.power.redfish_parts import parts_in, parts_out
from seatrial.probes.power.sources import parts_out_here, recorded_parts_out
from seatrial.store.cache import own_cache

OK, BAD = {"State": "Enabled", "Health": "OK"}, {"State": "Enabled", "Health": "Critical"}


def old_style(**fan: Any) -> Tree:
    fans = [
        {"MemberId": "0", "Name": "Fan 1", "Reading": 5400, "ReadingUnits": "RPM", "Status": OK},
        {"MemberId": "1", "FanName": "Fan 2", "Status": {"State": "Absent"}, "Reading": 0},
        {"MemberId": "2", "Name": "Fan 3", "Reading": 4800, "Status": OK, **fan},
    ]
    supplies = [{"MemberId": "0", "Name": "HpeServerPowerSupply", "Status": OK, "LastPowerOutputWatts": 0}]
    own = chassis(
        "1",
        "RackMount",
        {"Power": {"PowerControl": [{"PowerConsumedWatts": 300}], "PowerSupplies": supplies}},
        Thermal=link("Chassis/1/Thermal"),
    )
    return {**root(), **collection("Chassis", "1"), **own, f"{V1}/Chassis/1/Thermal": {"Fans": fans}}


def new_style() -> Tree:
    path = "Chassis/1"
    return {
        **root(),
        **collection("Chassis", "1"),
        **chassis(
            "1",
            "RackMount",
            ThermalSubsystem=link(f"{path}/ThermalSubsystem"),
            PowerSubsystem=link(f"{path}/PowerSubsystem"),
        ),
        f"{V1}/{path}/ThermalSubsystem": {
            "Fans": link(f"{path}/ThermalSubsystem/Fans"),
            "FanRedundancy": [{"Status": {"State": "Enabled", "Health": "Warning"}}],
        },
        **collection(f"{path}/ThermalSubsystem/Fans", "F1", "F2"),
        f"{V1}/{path}/ThermalSubsystem/Fans/F1": {"Name": "Fan Bay 1", "Status": OK, "SpeedPercent": {"Reading": 0}},
        f"{V1}/{path}/ThermalSubsystem/Fans/F2": {"Name": "Fan Bay 2", "Status": OK, "SpeedPercent": {"Reading": 45}},
        f"{V1}/{path}/PowerSubsystem": {
            "PowerSupplies": link(f"{path}/PowerSubsystem/PowerSupplies"),
            "PowerSupplyRedundancy": [{"Status": OK}],
        },
        **collection(f"{path}/PowerSubsystem/PowerSupplies", "PS1", "PS2"),
        f"{V1}/{path}/PowerSubsystem/PowerSupplies/PS1": {"Name": "Supply Bay 1", "Status": BAD},
        f"{V1}/{path}/PowerSubsystem/PowerSupplies/PS2": OSError("timeout"),
    }


def out(tree: Tree) -> list[str]:
    def get(uri: str) -> Any:
        found = tree.get(uri)
        if isinstance(found, OSError):
            raise found
        return found

    return [one.words for one in parts_out(get, parts_in(get))]


def test_parts_of_the_older_style() -> None:
    assert out(old_style()) == []
    assert out(old_style(Reading=0)) == ["Fan 3 (reads 0)"] == out(old_style(Reading="0"))
    assert out(old_style(Status={"State": "UnavailableOffline"})) == ["Fan 3 (state UnavailableOffline)"]
    assert out(old_style(Status=BAD, Reading=None)) == ["Fan 3 (health Critical)"]
    assert out(old_style(Status=None)) == out(old_style(Status=["x"], Reading="n/a")) == []


def test_parts_of_the_newer_style() -> None:
    assert out(new_style()) == [
        "power supply Supply Bay 1 (health Critical)",
        "redundancy of fans (health Warning)",
        "Fan Bay 1 (reads 0)",
    ]


@recorded_trees
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "dmtf-rackmount1",
            ["redundancy of power supplies (state UnavailableOffline)", "Power Supply Bay 1 (health Warning)"],
        ),
        ("hpe-ilo", []),
    ],
)
def test_parts_in_recorded_trees(name: str, expected: list[str]) -> None:
    assert [one.words for one in recorded_parts_out("redfish", TREES / name)] == expected


def written(tree: Tree, folder: Path) -> Path:
    for uri, found in tree.items():
        if not isinstance(found, OSError):
            file = folder / uri.lstrip("/") / "index.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(found))
    return folder


def test_the_command_names_them_first(tmp_path: Path) -> None:
    folder = written(old_style(Reading=0), tmp_path)
    done = seatrial_here("power", "--from", f"redfish={folder}", cwd=tmp_path)
    assert "1 part is out: Fan 3 (reads 0)." in " ".join(done.stdout.split())
    done = seatrial_here("power", "--from", f"redfish={folder}", "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    check(document, "power-1")
    assert document["parts_out"][0]["name"] == "Fan 3"


def test_a_meter_records_them_with_each_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_meter, "_WATCH_S", 0.0)
    folder = written(old_style(Reading=0), tmp_path)
    with node_meter.power_meter(PowerAccess(), None, ("redfish", str(folder))) as meter:
        assert not meter.why_not
        (part,) = meter.of_phase(0.0, 0.0, 1.0).parts_out
    assert part.words == "Fan 3 (reads 0)"


@pytest.mark.real
def test_a_bmc_is_asked_for_them_where_they_were_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    own_cache.cache_clear() if hasattr(own_cache, "cache_clear") else None
    with redfish_bmc(old_style(Reading=0).get, tmp_path) as (url, authority, asked):
        access = PowerAccess(RedfishAccess(url, USER, password_file(tmp_path), (), authority))
        first = parts_out_here(access, [("n2", access)])
        assert [one.words for one in first] == ["Fan 3 (reads 0)", "Fan 3 of n2 (reads 0)"]
        assert replace(first[1], node="") == first[0]
        assert PASSWORD not in str(first) and asked.asked
    assert parts_out_here(access) == []  # it does not answer any more
