"""Redfish trees in the styles of makers: what measures the node, and what only seems to."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from probes.power import maker_trees
from probes.power.maker_trees import Tree, written

from seatrial.model.machine.power import PowerSource, Scope, SourceKind, Supply
from seatrial.probes.power.redfish import sensors
from seatrial.probes.power.source import states
from seatrial.probes.power.sources import read_all, recorded_sensors


def read(tree: Tree, folder: Path) -> dict[str, PowerSource]:
    found = read_all(recorded_sensors("redfish", written(tree, folder)))
    assert len({one.name for one in found}) == len(found)
    return {one.name.removeprefix("redfish:"): one for one in found}


@pytest.mark.parametrize(
    ("maker", "nodes", "parts"),
    [
        (
            maker_trees.dell,
            {"System.Embedded.1/PowerControl/PowerControl": 389, "PowerMetrics/SystemInputPower": 389},
            {"PowerMetrics/TotalCPUPower": (Scope.PACKAGE, 159)},
        ),
        (
            maker_trees.hpe_ilo6,
            {"1/0": 231},
            {"1/CpuWatts": (Scope.PACKAGE, 80), "1/DimmWatts": (Scope.MEMORY, 12)},
        ),
        (
            maker_trees.lenovo,
            {"1/PowerControl/0": 245, "1/131L0": 5120.125 * 3.6e6},
            {
                "1/PowerControl/1": (Scope.PACKAGE, 90),
                "1/PowerControl/2": (Scope.MEMORY, 8),
                "1/129L0": (Scope.PACKAGE, 90),
                "1/130L0": (Scope.MEMORY, 8),
            },
        ),
        (maker_trees.supermicro, {"1/PowerControl/0": 181}, {}),
        (
            lambda: maker_trees.nvidia_hgx(2),
            {},
            {
                "HGX_GPU_SXM_1/HGX_GPU_SXM_1_Power_0": (Scope.DEVICE, 690),
                "HGX_GPU_SXM_1/HGX_GPU_SXM_1_Energy_0": (Scope.DEVICE, 5e6),
                "HGX_GPU_SXM_2/HGX_GPU_SXM_2_Power_0": (Scope.DEVICE, 691),
                "HGX_GPU_SXM_2/HGX_GPU_SXM_2_Energy_0": (Scope.DEVICE, 5e6),
                "HGX_Chassis_0/HGX_Chassis_0_TotalGPU_Power_0": (Scope.DEVICE, 1400),
                "HGX_ProcessorModule_0/ProcessorModule_0_Power_0": (Scope.PART, 2400),
            },
        ),
        (maker_trees.cray_ex, {"Node0/PowerControl/0": 1210}, {}),
        (
            maker_trees.openbmc,
            {"Board/power_total_power": 344.5},
            {"Board/power_cpu0": (Scope.PACKAGE, 120), "PSU1/power_PSU1_Input_Power": (Scope.PART, 350)},
        ),
    ],
)
def test_what_measures_the_node(
    maker: Callable[[], Tree], nodes: dict[str, float], parts: dict[str, tuple[Scope, float]], tmp_path: Path
) -> None:
    found = {name: one for name, one in read(maker(), tmp_path).items() if one.usable}
    values = {name: one.joules if one.kind is SourceKind.COUNTER else one.watts for name, one in found.items()}
    assert {name: values[name] for name, one in found.items() if one.scope is Scope.NODE} == nodes
    assert {name: (one.scope, values[name]) for name, one in found.items() if one.scope is not Scope.NODE} == parts


def test_why_others_are_not_used(tmp_path: Path) -> None:
    dell = read(maker_trees.dell(), tmp_path / "dell")
    assert dell["System.Embedded.1/PowerControl/PowerControl"].supply is Supply.AC  # the sum of what goes in
    assert dell["PowerMetrics/SystemInputPower"].refresh_s == 60.0
    assert dell["System.Embedded.1/SystemBoardPwrConsumption"].why.startswith("measures the same as")
    cray = read(maker_trees.cray_ex(), tmp_path / "cray")
    assert cray["Node1/PowerControl/0"].why == "reports no value"
    assert (cray["Node0/PowerControl/1"].scope, cray["Node0/PowerControl/1"].usable) == (Scope.DEVICE, False)
    assert read(maker_trees.supermicro(), tmp_path / "supermicro")["1/PowerControl/0"].supply is Supply.DC


JUNK = [None, True, 0, -1, 1e308, 10**400, "", "x", "nan", [], {}, [None], [[]], {"@odata.id": 3}, {"Reading": []}]


def damaged(found: Any, chance: random.Random) -> Any:
    if chance.random() < 0.03:
        return chance.choice(JUNK)
    if isinstance(found, dict):
        return {key: damaged(one, chance) for key, one in found.items()}
    return [damaged(one, chance) for one in found] if isinstance(found, list) else found


def test_damaged_trees_are_read_without_an_error() -> None:
    chance = random.Random(4)
    makers = (maker_trees.dell, maker_trees.hpe_ilo6, maker_trees.lenovo, maker_trees.openbmc, maker_trees.cray_ex)
    for k in range(100):
        tree = {uri: damaged(one, chance) for uri, one in makers[k % len(makers)]().items()}
        found = sensors(tree.get)
        for one in states(found, [sensor.read() for sensor in found]):
            assert not one.usable or (one.watts or one.joules or 0) > 0
