"""Walks through large, broken and slow trees, and what is kept of them for the next start."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from probes.power import maker_trees
from probes.power.made_up_bmc import PASSWORD, USER, password_file, redfish_bmc
from probes.power.maker_trees import Tree, collection

from seatrial.model.environment.site import PowerAccess, RedfishAccess
from seatrial.model.machine.power import Scope
from seatrial.probes.power import redfish
from seatrial.probes.power.redfish import found_in
from seatrial.probes.power.sources import live_sensors, read_all
from seatrial.store.cache import own_cache


class Asked:
    """A service that counts what it is asked, and takes its time on its own clock."""

    def __init__(self, tree: Tree, monkeypatch: pytest.MonkeyPatch | None = None, takes_s: float = 0.0) -> None:
        self.tree, self.uris, self.takes_s, self.now_s = tree, list[str](), takes_s, 0.0
        if monkeypatch is not None:
            monkeypatch.setattr(redfish.time, "monotonic", lambda: self.now_s)

    def get(self, uri: str) -> Any:
        self.uris.append(uri)
        self.now_s += self.takes_s
        found = self.tree.get(uri)
        if isinstance(found, OSError):
            raise found
        return found


def test_64_gpus_and_thousands_of_sensors() -> None:
    service = Asked(maker_trees.nvidia_hgx(64, 3000))
    found = found_in(service.get)
    assert sum(one.scope is Scope.DEVICE for one in found) == 64 * 2 + 1  # power and energy, and the sum of the powers
    assert found[-1].name != "redfish:rest"
    assert len(service.uris) == len(set(service.uris))

    large = Asked(maker_trees.nvidia_hgx(64, 12000))
    large.tree = {uri.replace("Board_", "S"): one for uri, one in large.tree.items()}  # ids that say nothing
    for entry in large.tree["/redfish/v1/Chassis/HGX_Chassis_0/Sensors"]["Members"]:
        entry["@odata.id"] = entry["@odata.id"].replace("Board_", "S")
    found = found_in(large.get)
    assert len(large.uris) == 10_000
    assert found[-1].unusable.endswith("objects of the tree after the limit of time or number")
    assert sum(one.scope is Scope.DEVICE for one in found) >= 128


def test_a_slow_service_is_read_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Asked(maker_trees.dell(), monkeypatch, takes_s=8.0)
    found = found_in(service.get)
    assert found[0].name == "redfish:System.Embedded.1/PowerControl/PowerControl"
    assert found[-1].unusable.startswith("was not read: ")
    assert service.now_s < 70


def test_dead_links_loops_and_errors_are_left_out() -> None:
    tree = maker_trees.lenovo()
    tree["/redfish/v1/Chassis/1/Sensors/129L0"] = OSError("is longer than 4 MiB")
    tree["/redfish/v1/Chassis/1/Sensors/128L0"] = None
    tree |= collection("Chassis", "1", "1", "../1", "2")
    tree["/redfish/v1/Chassis"]["Members@odata.nextLink"] = "/redfish/v1/Chassis"
    tree["/redfish/v1/Chassis/2"] = {"Id": "2", "Power": {"@odata.id": "/redfish/v1/Chassis"}, "Sensors": "none"}
    tree["/redfish/v1/Systems"] = {"Members": {"@odata.id": 1}}
    found = found_in(Asked(tree).get)
    assert [one.name for one in found if one.scope is Scope.NODE] == ["redfish:1/PowerControl/0", "redfish:1/131L0"]
    assert found[-1].unusable == "was not read: 1 object that could not be read (is longer than 4 MiB)"


def test_a_user_who_may_read_only_the_root() -> None:
    tree = maker_trees.lenovo()
    tree["/redfish/v1/Chassis"] = OSError("HTTP 401: the user may not read /redfish/v1/Chassis")
    with pytest.raises(OSError, match="HTTP 401"):
        found_in(Asked(tree).get)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Tree, RedfishAccess, list[str]]]:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    tree = maker_trees.nvidia_hgx(4)
    tree |= maker_trees.chassis("1", "RackMount", {"Power": {"PowerControl": [{"PowerConsumedWatts": 4200}]}})
    tree["/redfish/v1/Chassis"]["Members"].insert(0, maker_trees.link("Chassis/1"))
    with redfish_bmc(tree.get, tmp_path) as (url, certificates, answers):
        yield tree, RedfishAccess(url, USER, password_file(tmp_path), ca_file=certificates), answers.asked


def start(access: RedfishAccess) -> dict[str, float | None]:
    with live_sensors(PowerAccess(access)) as sensors:
        return {one.name: one.watts for one in read_all(sensors) if one.name.startswith("redfish") and one.usable}


@pytest.mark.real
def test_a_later_start_costs_a_request_for_each_sensor(
    service: tuple[Tree, RedfishAccess, list[str]], tmp_path: Path
) -> None:
    tree, access, asked = service
    first = start(access)
    walk = len(asked)
    del asked[:]
    assert start(access) == first
    assert len(asked) == len(set(asked)) == len(first) + 1  # the root
    assert walk > 2 * len(asked)
    kept = [file.read_text() for file in (tmp_path / "cache" / "bmcs").iterdir()]
    assert len(kept) == 1
    for secret in (PASSWORD, "127.0.0.1", USER):
        assert secret not in kept[0]

    tree["/redfish/v1"]["RedfishVersion"] = "1.16.0"  # another firmware
    del asked[:]
    start(access)
    assert len(asked) >= walk
    gone = "/redfish/v1/Chassis/HGX_GPU_SXM_1/Sensors/HGX_GPU_SXM_1_Power_0"
    del tree[gone]
    assert len(start(access)) == len(first) - 1
    assert not list((tmp_path / "cache" / "bmcs").iterdir())  # the next start walks


@pytest.mark.real
def test_the_node_is_found_again_at_once(service: tuple[Tree, RedfishAccess, list[str]]) -> None:
    tree, access, _ = service
    start(access)
    tree["/redfish/v1/Chassis/1"]["Power"] = maker_trees.link("Chassis/1/NewPower")
    tree["/redfish/v1/Chassis/1/NewPower"] = tree.pop("/redfish/v1/Chassis/1/Power")
    assert start(access)["redfish:1/PowerControl/0"] == 4200


@pytest.mark.real
def test_what_is_kept_may_be_damaged(service: tuple[Tree, RedfishAccess, list[str]]) -> None:
    _, access, _ = service
    first = start(access)
    (file,) = (own_cache().path / "bmcs").iterdir()
    for text in ("", "[]", "{", json.dumps({"v": 99, "root": "", "at_s": time.time(), "sensors": []})):
        file.write_text(text)
        assert start(access) == first


@pytest.mark.real
def test_which_of_several_nodes_is_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    tree = maker_trees.cray_ex()
    tree["/redfish/v1/Chassis/Node1/Power"]["PowerControl"][0]["PowerConsumedWatts"] = 1300
    with redfish_bmc(tree.get, tmp_path) as (url, certificates, _):
        access = RedfishAccess(url, USER, password_file(tmp_path), ca_file=certificates)
        assert start(access) == {}
        with live_sensors(PowerAccess(access)) as sensors:
            why = next(one.why for one in read_all(sensors) if one.name == "redfish:Node0/PowerControl/0")
        assert why.startswith("is of one of 2 nodes (Node0, Node1): which one is ours is not known; state `chassis:`")
        assert start(replace(access, chassis="Node1")) == {"redfish:Node1/PowerControl/0": 1300}
