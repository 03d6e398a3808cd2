"""Findings from dumps that people pasted (shared/data/pasted), and what must not be found in them."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import SHARED_DATA

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.finding import is_virtual
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
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


def test_a_matrix_of_a_GH200_has_no_finding() -> None:
    assert not findings(machine("nvidia-smi-topo", "nvidia-smi-topo/nvb23_gh200_indent_tabs.txt"), ())


def test_pairs_without_peer_access_are_those_of_the_matrix() -> None:
    k80 = machine("nvidia-smi-p2p", "nvidia-smi-p2p/pkb_k80_4gpu_leading-blank.txt")
    assert {(pair.a, pair.b): pair.read for pair in k80.p2p} == {
        ("GPU0", "GPU1"): "OK", ("GPU2", "GPU3"): "OK",
        ("GPU0", "GPU2"): "NS", ("GPU0", "GPU3"): "NS", ("GPU1", "GPU2"): "NS", ("GPU1", "GPU3"): "NS",
    }  # fmt: skip
    (finding,) = findings(k80, ())
    assert finding.rule == "gpus-without-peer-access" and finding.observation.startswith("4 of 6 GPU pairs")


def test_the_modules_that_a_hypervisor_shows_have_no_channels() -> None:
    azure = machine("dmidecode", "dmidecode/azure_nd40rs_hyperv_8168.txt")
    assert is_virtual(azure) and azure.memory.why and azure.memory.peak_Bps is None
    assert {finding.rule for finding in findings(azure, ())} == {"memory-modules-unknown", "virtual-machine"}


def test_kinds_of_memory_and_devices_of_other_processors() -> None:
    xeon_phi = machine("hwloc-xml", "hwloc-xml/mpibind_knl-snc4-flat-hwloc1.xml")
    kinds = Counter(node.facts.text("memory_kind") for node in xeon_phi.of_kind(DeviceKind.NUMA))
    assert kinds == {None: 4, "MCDRAM": 4}
    thunder = machine("hwloc-xml", "hwloc-xml/mpibind_arm64-ulna-hwloc1.xml")
    assert [gpu.name for gpu in thunder.of_kind(DeviceKind.GPU)] == ["PCI 1002:67a0"] * 2  # FirePro W9100
    assert thunder.of_kind(DeviceKind.GPU)[0].parent == "pci-0000:00:01.0"
    mi50 = machine("rocm-smi-topo", "rocm-smi-topo/mi50_x4_pcie_2hops_weight40.txt")
    assert {path.path_class for path in mi50.paths} == {"PCI"} and len(mi50.paths) == 6
    assert {gpu.numa for gpu in mi50.of_kind(DeviceKind.GPU)} == {0}


def test_a_fabric_in_a_fence_has_its_levels() -> None:
    text = (PASTED / "slurm-topology/tree_3levels_cn-comments_fence.txt").read_bytes()
    fabric = read_fabric("slurm-topology", [FabricText("topology.conf", text)])
    assert len(fabric.nodes) == 32 and Counter(switch.level for switch in fabric.switches) == {1: 4, 2: 2, 3: 1}


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
