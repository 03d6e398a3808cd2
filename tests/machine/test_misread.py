"""Dumps of machines that were once read wrong or refused, compared with what their index says, by eye.

They are other people's data and stay outside the repository: without them these tests are skipped.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from shared_samples import MISREAD, TOPOLOGY

from seatrial.analysis.rules import findings
from seatrial.errors import ParseError
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import Dump, survey_dumps
from seatrial.model.machine.document import machine_document, machine_from_document
from seatrial.model.machine.machine import Device, DeviceKind, Machine, Population


def _machine(kind: str, name: str) -> Machine:
    for folder in (MISREAD, TOPOLOGY):
        if (folder / name).exists():
            return assemble(survey_dumps([Dump(kind, name, (folder / name).read_bytes())]))
    pytest.skip(f"needs {MISREAD / name}, which is not part of the repository")


def _classes(machine: Machine) -> dict[tuple[str, str], tuple[str | None, int | None]]:
    return {(path.a, path.b): (path.path_class, path.links) for path in machine.paths}


def _device(machine: Machine, name: str) -> Device:
    found = machine.device(name)
    assert found is not None, name
    return found


def test_a_b200_of_which_one_gpu_has_no_nvlink() -> None:
    classes = _classes(_machine("nvidia-smi-topo", "smi-topo_b200_gpu2_off_nvlink.txt"))
    assert len(classes) == 28
    without = {pair for pair, found in classes.items() if found != ("NV", 18)}
    assert without == {pair for pair in classes if "GPU2" in pair}
    assert len(without) == 7


def test_a_gb200_keeps_the_nodes_of_its_gpus() -> None:
    machine = _machine("nvidia-smi-topo", "smi-topo_gb200_gpunuma_sglang11208.txt")
    affinity = {entry.device: entry for entry in machine.affinity}
    assert affinity["GPU0"].numa_nodes == affinity["GPU1"].numa_nodes == (0, *range(3, 10), *range(11, 18))
    assert affinity["GPU2"].numa_nodes == affinity["GPU3"].numa_nodes == (1, *range(19, 26), *range(27, 34))
    assert {entry.numa for entry in affinity.values()} == {None}, "none of several nodes is the node"
    assert affinity["NIC0"].numa_nodes is None
    own = [_device(machine, f"GPU{k}").facts.integer("gpu_numa") for k in range(4)]
    assert own == [2, 10, 18, 26]
    assert affinity["GPU0"].cpus == tuple(range(72))
    document = machine_document(machine)
    assert document["affinity"][0]["numa_nodes"] == [0, *range(3, 10), *range(11, 18)]
    assert machine_from_document(document) == machine


def test_six_gpus_behind_an_underlined_header() -> None:
    classes = _classes(_machine("nvidia-smi-topo", "smi-topo_6gpu_ansi.txt"))
    near = {pair for pair, found in classes.items() if found[0] == "PIX"}
    assert near == {("GPU0", "GPU1"), ("GPU2", "GPU3"), ("GPU4", "GPU5")}
    assert len(classes) == 15


def test_gpus_three_hops_apart_are_on_two_sockets() -> None:
    machine = _machine("rocm-smi-topo", "rocm-smi_showtopo_4_pcie_3hops.txt")
    assert _classes(machine) == dict.fromkeys(combinations([f"GPU{k}" for k in range(4)], 2), ("SYS", None))
    assert [_device(machine, f"GPU{k}").numa for k in range(4)] == [0, 1, 2, 3]


def test_firmware_that_declares_more_slots_than_it_lists() -> None:
    name = "dmi_AIC-SB302-LB_98EDCF68ED2D.txt"
    machine = _machine("dmidecode", name)
    assert len(machine.of_kind(DeviceKind.MEMORY)) == 4
    assert machine.facts.number("memory_total") == 128 << 30
    assert any("declares 48 slots but lists 16" in sentence for sentence in machine.unread)
    assert machine.memory.verdict is Population.UNKNOWN
    text = (MISREAD / name).read_text()
    blocks = text.split("\n\n")
    gone = [block for block in blocks if "Locator: Node0_Dimm3" not in block]
    for damaged in ("\n\n".join(gone), text[: text.index("Handle 0x0015")], text.replace("End Of Table\n", "")):
        with pytest.raises(ParseError):
            survey_dumps([Dump("dmidecode", name, damaged.encode())])


def test_four_of_twelve_channels() -> None:
    memory = _machine("dmidecode", "dmi_PRIMERGY-RX2450-M2_6F7BBA6E51B5.txt").memory
    assert memory.verdict is Population.UNBALANCED
    assert [(s.channels, s.populated_channels, s.dimms) for s in memory.sockets] == [(12, 4, 4)] * 2
    assert memory.peak.value == 8 * 8 * 4800e6


def test_lpddr_has_the_width_that_its_firmware_states() -> None:
    memory = _machine("dmidecode", "dmi_grace_megarac.txt").memory
    assert memory.peak.value == 480 / 8 * 8532e6
    assert memory.peak.derivation.startswith("480 bit x 8532 MT/s rated")


def test_memory_as_fast_as_its_processor_allows() -> None:
    machine = _machine("dmidecode", "dmi_SYS-511E-WR_757BDADF0B5C.txt")
    assert machine.memory.sockets[0].configured_MTps == 4000
    assert "memory-below-rating" not in {finding.rule for finding in findings(machine, ())}


def test_dram_and_hbm_and_a_cache_in_front_of_the_dram() -> None:
    machine = _machine("hwloc-xml", "hwloc_64intel64-heteromem.xml")
    nodes = {node.numa: node.facts for node in machine.of_kind(DeviceKind.NUMA)}
    assert {number: facts.text("memory_kind") for number, facts in nodes.items()} == {
        **dict.fromkeys(range(4), "DRAM"),
        **dict.fromkeys(range(4, 8), "HBM"),
    }
    assert not any(cache.facts.integer("level") == 3 for cache in machine.of_kind(DeviceKind.CACHE))
    for number, facts in nodes.items():
        is_dram = number is not None and number < 4
        assert facts.number("memory_side_cache") == (2 << 30 if is_dram else None)
        assert facts.number("memory_bandwidth") == (22500 if is_dram else 90000) * (1 << 20)
        assert facts["memory_bandwidth"][0].kind.value == "asserted"
    assert machine.last_level_cache_bytes([0]) == 4 << 20, "the L2; memory in front of memory is no such cache"
    assert {"memory-flat-mode", "memory-side-cache"} <= {finding.rule for finding in findings(machine, ())}


@pytest.mark.parametrize("name", ["hwloc_cxlmem+dax.v3.xml", "hwloc_cxlmem+dax.v2.xml.txt"])
def test_cxl_memory_and_a_dax_device(name: str) -> None:
    machine = _machine("hwloc-xml", name)
    sizes = {
        device.name: (device.facts.text("memory_device"), device.facts.integer("size"), device.pci)
        for device in machine.of_kind(DeviceKind.MEMORY)
    }
    assert sizes == {
        "mem2": ("CXL memory", 256 << 20, "0000:11:00.0"),
        "mem0": ("CXL memory", 256 << 20, "0000:12:00.0"),
        "mem3": ("CXL memory", 256 << 20, "0000:15:00.0"),
        "mem1": ("CXL memory", 512 << 20, "0000:16:00.0"),
        "dax0.0": ("DAX device", 1 << 30, None),
    }
    assert _device(machine, "memory-mem0").facts.integer("persistent_size") == 256 << 20
    dax = _device(machine, "memory-dax0.0")
    assert (dax.facts.text("memory_kind"), dax.numa) == ("SPM", 0)
    assert machine.memory_modules() == (), "none of them is a module in a slot"


def test_an_adapter_in_a_group_is_on_the_node_of_the_group() -> None:
    machine = _machine("hwloc-xml", "hwloc_fakepcilocalities.xml")
    assert _device(machine, "nic-qib0").numa == 1
    assert _device(machine, "pci-0000:40").parent == "numa-1"
    assert "affinity-cut" not in {finding.rule for finding in findings(machine, ())}


def test_an_adapter_on_a_bus_that_is_not_one_of_its_bridge() -> None:
    machine = _machine("hwloc-xml", "hwloc_32em64t-2n8c2t-pci-normalio.xml")
    adapter = _device(machine, "nic-mlx5_0")
    assert (adapter.aliases, adapter.numa) == (("ib0",), 1)
    assert len(machine.of_kind(DeviceKind.GPU)) == 4
    assert len(machine.of_kind(DeviceKind.CORE)) == 16
    assert any("line 247" in sentence for sentence in machine.unread)


def test_a_grace_cpu_states_its_bandwidth() -> None:
    machine = _machine("hwloc-xml", "hwloc_gh200.xml")
    assert len(machine.of_kind(DeviceKind.CORE)) == 72
    (node,) = machine.of_kind(DeviceKind.NUMA)
    assert node.facts.number("memory_bandwidth") == 512_000 * (1 << 20)
    assert node.facts.number("memory_latency") == pytest.approx(160e-9)


def test_a_disk_without_a_node_line_has_no_node() -> None:
    machine = _machine("lspci-vv", "lspci-vv_qemu-2numa-switch-2nvme.txt")
    assert {disk.numa for disk in machine.of_kind(DeviceKind.NVME)} == {None}
    assert [adapter.numa for adapter in machine.of_kind(DeviceKind.NIC)] == [1]
    assert _device(machine, "pci-0000:00").parent is None
    tree = _machine("lspci-tree", "lspci-tree_qemu-2numa-switch-2nvme.txt")
    assert [disk.pci for disk in tree.of_kind(DeviceKind.NVME)] == ["0000:03:00.0", "0000:04:00.0"]


@pytest.mark.parametrize("name", ["lspci-tv-vvv_and_topo_puget-wrx90_2gpu.txt", "lspci-vvd10de_a6000_neuropoly.md.txt"])
def test_a_listing_without_bridges_states_no_class(name: str) -> None:
    machine = _machine("lspci-vv", name)
    assert {path.path_class for path in machine.paths} <= {None, "SYS", "PIX"}
