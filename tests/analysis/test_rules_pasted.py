"""Findings from dumps that people pasted (shared/data/pasted), and what must not be found in them."""

from __future__ import annotations

import pytest
from conftest import SHARED_DATA

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.finding import is_virtual
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import READERS
from seatrial.model.machine.machine import DeviceKind, Machine

PASTED = SHARED_DATA / "pasted"
pytestmark = pytest.mark.skipif(not PASTED.is_dir(), reason="the samples (shared/data/pasted) are not here")


def machine(kind: str, name: str) -> Machine:
    return assemble([READERS[kind]((PASTED / name).read_bytes(), None)])


@pytest.mark.parametrize(
    ("kind", "name", "found", "not_found"),
    [
        ("ibstat", "ibstat/gpud482_polling_guids-hidden.txt", "fabric-port-down", "fabric-port-slower"),
        ("ibstat", "min/ibstat_7active_1initializing.txt", "fabric-port-not-activated", "fabric-port-down"),
        ("lspci-vv", "min/lspci_vvv_cx6dx_vs_cx7.txt", "", "link-unlike-siblings"),
        ("hwloc-xml", "hwloc-xml/mpibind_coral-lassen.xml", "", "gpus-share-uplink"),
    ],
)
def test_what_is_found(kind: str, name: str, found: str, not_found: str) -> None:
    rules = {finding.rule for finding in findings(machine(kind, name), ())}
    assert not_found not in rules and (not found or found in rules)


def test_a_rate_below_that_of_the_same_type_is_found() -> None:
    text = (PASTED / "min/ibstat_7active_1initializing.txt").read_text().replace("Initializing", "Active")
    slow = text.replace("Rate: 400", "Rate: 200", 1).encode()
    found = findings(assemble([READERS["ibstat"](slow, None)]), ())
    (slower,) = [finding for finding in found if finding.rule == "fabric-port-slower"]
    assert slower.devices == ("nic-mlx5_0",) and "50.0 GB/s" in slower.observation


def test_the_memory_of_GPUs_is_not_that_of_the_host() -> None:
    power9 = machine("hwloc-xml", "hwloc-xml/mpibind_coral-butte-hwloc1.xml")
    assert power9.facts.number("memory_total") == 137123266560 + 137166061568
    kinds = [node.facts.text("memory_kind") for node in power9.of_kind(DeviceKind.NUMA)]
    assert kinds == [None, None, *["GPUMemory"] * 4]


@pytest.mark.parametrize(
    ("product", "virtual"),
    [("Google Compute Engine", True), ("c5.large", True), ("c5.metal", False), ("Virtual Machine", True)],
)
def test_virtual_machines_of_clouds_are_recognised_from_hwloc(product: str, virtual: bool) -> None:
    text = (PASTED / "bundle/gce_gpu_v100.txt").read_text()
    vendor = "Amazon EC2" if product.startswith("c5") else "Microsoft Corporation" if "Virtual" in product else "Google"
    for old, new in (("DMISysVendor", vendor), ("DMIProductName", product)):
        before, _, after = text.partition(f'name="{old}" value="')
        text = f'{before}name="{old}" value="{new}"{after.partition(chr(34))[2]}'
    assert is_virtual(assemble([READERS["hwloc-xml"](text.encode(), None)])) is virtual
