"""The power of several nodes, each with its BMC: all nodes of a repeat count together, or none does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from probes.power.made_up_bmc import PASSWORD, USER, redfish_bmc

from seatrial.analysis.power import missing_energy
from seatrial.model.environment.site import PowerAccess, RedfishAccess
from seatrial.model.machine.power import Scope, Supply
from seatrial.model.results.energy import MeasuredEnergy, PowerOverTime
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.probes.power.scopes import scope_samples
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


@pytest.mark.real
def test_bmcs_of_other_nodes_are_asked_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with bmcs(tmp_path, n2=310.0, n3=420.0) as others, sensors_of_nodes(PowerAccess(), others) as sensors:
        read = {(one.node, one.name): one.read().watts for one in sensors if one.node}
        assert sorted(read.values()) == [310.0, 420.0]
        assert all(name.startswith(f"{node}:") for node, name in read)
