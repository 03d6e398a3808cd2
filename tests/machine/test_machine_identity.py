"""What makes a machine another one for measuring, and what does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from machine.machine_trees import CPU, Tree, add_pci, cpuinfo_x86, two_sockets
from machine.smbios_tables import slots, table
from made_up import made_up_machine

from seatrial.machine.live import discover_live
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.machine.identity import IDENTIFYING, machine_identity, unlike
from seatrial.model.machine.machine import DeviceKind, Machine


def test_identity_ignores_what_changes_by_itself(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    before = machine_identity(discover_live(tmp_path))
    tree.write("proc/meminfo", "MemTotal:       66000000 kB\nMemAvailable:   1 kB\nSwapTotal: 0 kB")
    tree.write("proc/loadavg", "7.00 1 1 1/1 1")
    tree.write(f"{CPU}/cpu0/cpufreq/scaling_cur_freq", 800000)
    tree.write("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_speed", "16.0 GT/s PCIe")
    tree.write("proc/self/status", "Uid:\t0\t0\t0\t0\nCpus_allowed_list:\t0-7")
    assert machine_identity(discover_live(tmp_path)) == before
    for path, text in ((f"{CPU}/cpu0/cpufreq/scaling_governor", "powersave"), ("proc/sys/kernel/osrelease", "6.2")):
        tree.write(path, text)
        after = machine_identity(discover_live(tmp_path))
        assert after != before
        before = after


def _toggled(facts: Facts, name: str) -> Facts:
    """The facts with another value in every statement of one of them."""
    other = tuple(
        replace(f, value=f"{f.value} x" if isinstance(f.value, str) else f.value * 2 + 1) for f in facts[name]
    )
    return Facts({**facts.by_name, name: other})


_IDENTIFIES = {
    None: "kernel kernel_parameters mitigations architecture page_size clocksource governor frequency_driver boost"
    " smt_active thp_enabled thp_defrag numa_balancing product bios_version hypervisor container cgroup_cpu_limit"
    " memory_online",
    DeviceKind.PACKAGE: "vendor model_name family model stepping implementer part microcode isa",
    DeviceKind.NUMA: "",
    DeviceKind.CACHE: "level type size",
    DeviceKind.CORE: "implementer part",
    DeviceKind.SWITCH: "vendor_id device_id subsystem_id",
    DeviceKind.PU: "governor frequency_driver energy_preference max_frequency min_frequency base_frequency"
    " allowed_max_frequency",
    DeviceKind.GPU: "vendor_id device_id subsystem_id",
    DeviceKind.NIC: "vendor_id device_id subsystem_id",
    DeviceKind.NVME: "",
    DeviceKind.BLOCK: "",
    DeviceKind.BRIDGE: "",
    DeviceKind.MEMORY: "",
}
"""What makes another machine when it changes."""

_DOES_NOT = {
    None: "kernel_build os board bios_vendor bios_date memory_total memory_present memory_available swap_total"
    " swap_free load privileges perf_event_paranoid swappiness zone_reclaim_mode cgroup_memory_limit cgroup_cpus"
    " hugetlb_2MiB_total hugetlb_2MiB_free isolated_cpus offline_cpus memory_slots sockets ecc"
    " steal_share",
    DeviceKind.PACKAGE: "os_index vector_isa microarchitecture fma_pipes fma_vector_bits fma_latency_cycles"
    " fma_confirmed memory_channels memory_channels_confirmed",
    DeviceKind.NUMA: "os_index memory_total distances cpus",
    DeviceKind.CACHE: "line_size ways cpus",
    DeviceKind.CORE: "cpus core_id die_id",
    DeviceKind.PU: "os_index frequency capacity",
    DeviceKind.GPU: "class_id driver attachment pcie_max_GTps pcie_max_lanes pcie_GTps pcie_lanes model_name"
    " driver_version",
    DeviceKind.NIC: "driver attachment pcie_max_GTps pcie_max_lanes pcie_GTps pcie_lanes mtu rate state net_rate"
    " net_state link_layer link_width link_speed ports firmware",
    DeviceKind.NVME: "class_id vendor_id device_id subsystem_id driver attachment pcie_max_GTps pcie_max_lanes"
    " pcie_GTps pcie_lanes size model_name scheduler rotational",
    DeviceKind.BLOCK: "attachment size model_name rotational",
    DeviceKind.BRIDGE: "class_id vendor_id device_id pcie_max_GTps pcie_max_lanes pcie_GTps pcie_lanes driver",
    DeviceKind.MEMORY: "size memory_type rated_MTps configured_MTps rank locator bank_locator channel manufacturer"
    " part_number data_bits",
}
"""What does not."""


def _rich(root: Path) -> Machine:
    """A machine that says as much as one can."""
    tree = two_sockets(root)
    tree.write("proc/cpuinfo", cpuinfo_x86(8, flags="fpu sse2 avx fma avx2 avx512f hypervisor"))
    for path, text in (
        ("proc/sys/kernel/arch", "x86_64"),
        ("proc/sys/kernel/version", "#1 SMP Debian 6.1.76-1"),
        ("proc/sys/kernel/numa_balancing", "1"),
        ("proc/sys/kernel/perf_event_paranoid", "2"),
        ("proc/sys/vm/swappiness", "60"),
        ("proc/sys/vm/zone_reclaim_mode", "0"),
        ("proc/loadavg", "0.5 0.2 0.1 1/100 1"),
        ("sys/class/dmi/id/board_name", "Board"),
        ("sys/class/dmi/id/bios_date", "01/02/2025"),
        ("sys/class/dmi/id/bios_vendor", "ACME"),
        ("sys/hypervisor/type", "xen"),
        (".dockerenv", ""),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always [madvise] never"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "500"),
        (f"{CPU}/vulnerabilities/meltdown", "Mitigation: PTI"),
        (f"{CPU}/isolated", "3"),
        ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"),
        ("sys/devices/system/memory/block_size_bytes", "80000000"),
        ("sys/devices/system/memory/memory0/state", "online"),
        ("proc/zoneinfo", "Node 0, zone   Normal\n        present  524288\n        managed  500000"),
        ("proc/self/smaps", "KernelPageSize:        4 kB"),
        ("proc/self/cgroup", "0::/job"),
        ("proc/stat", "cpu  60 0 20 10 0 0 0 10 0 0"),
        ("proc/1/cgroup", f"0::/docker/{'ab' * 32}"),
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw"),
        ("sys/fs/cgroup/job/cpu.max", "150000 100000"),
        ("sys/fs/cgroup/job/memory.max", str(8 << 30)),
        ("sys/class/block/sdb/size", "1000"),
    ):
        tree.write(path, text)
    for cpu in range(8):
        tree.write(f"{CPU}/cpu{cpu}/cpufreq/energy_performance_preference", "performance")
        tree.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_max_freq", 3800000)
    tree.write("sys/firmware/dmi/tables/DMI", table(slots(2, 8), arrays=2))
    return discover_live(root)


def test_which_facts_make_another_machine(tmp_path: Path) -> None:
    """Toggles every fact of a machine: each is in one of the two tables, and does what that table says."""
    machine = _rich(tmp_path)
    before = machine_identity(machine)
    assert {kind: set(names) for kind, names in IDENTIFYING.items()} == {
        kind: set(names.split()) - {"memory_online"} for kind, names in _IDENTIFIES.items() if kind in IDENTIFYING
    }
    tried = 0
    for kind in (None, *sorted({device.kind for device in machine.devices})):
        owners = [machine.facts] if kind is None else [device.facts for device in machine.of_kind(kind)]
        for name in sorted({name for facts in owners for name in facts}):
            if kind is None:
                changed = replace(machine, facts=_toggled(machine.facts, name))
            else:
                changed = replace(
                    machine,
                    devices=tuple(
                        replace(d, facts=_toggled(d.facts, name)) if d.kind is kind and name in d.facts else d
                        for d in machine.devices
                    ),
                )
            identifies, does_not = name in _IDENTIFIES[kind].split(), name in _DOES_NOT[kind].split()
            if kind is DeviceKind.NIC and name == "class_id":
                continue  # another class is no network adapter any more
            assert identifies != does_not, f"decide whether {name} of {kind or 'the machine'} makes another machine"
            assert (machine_identity(changed) != before) is identifies, (kind, name)
            tried += 1
    assert tried > 90


@pytest.mark.parametrize(
    ("path", "text", "makes_another"),
    [
        ("proc/sys/kernel/hostname", "node18", True),
        ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-3", True),
        ("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/max_link_width", "8", True),
        ("sys/devices/pci0000:80/0000:80:01.0/max_link_speed", "8.0 GT/s PCIe", True),
        (f"{CPU}/cpu0/cache/index3/size", "1024K", True),
        ("sys/devices/system/memory/memory1/state", "online", True),
        ("sys/devices/system/memory/memory1/state", "offline", False),
        ("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 30000000 kB", False),
        ("proc/meminfo", "MemTotal: 30000000 kB\nSwapTotal: 77 kB", False),
        ("sys/fs/cgroup/job/memory.max", "4294967296", False),
        ("sys/class/dmi/id/product_serial", "SERIAL-4712", False),
    ],
)
def test_which_files_make_another_machine(tmp_path: Path, path: str, text: str, makes_another: bool) -> None:
    before = machine_identity(_rich(tmp_path))
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(f"{text}\n")
    assert (machine_identity(discover_live(tmp_path)) != before) is makes_another


def _blocks(tree: Tree, number: int, block_B: int) -> None:
    tree.write("sys/devices/system/memory/block_size_bytes", f"{block_B:x}")
    for block in range(number):
        tree.write(f"sys/devices/system/memory/memory{block}/state", "online")


@pytest.mark.parametrize(
    ("gib", "block_B"),
    [(8, 128 << 20), (24, 128 << 20), (64, 2 << 30), (384, 2 << 30), (768, 2 << 30), (1536, 2 << 30)],
)
def test_a_block_that_is_plugged_in_does_not_make_another_machine(tmp_path: Path, gib: int, block_B: int) -> None:
    tree = two_sockets(tmp_path)
    blocks = (gib << 30) // block_B
    _blocks(tree, blocks, block_B)
    before = machine_identity(discover_live(tmp_path))
    tree.write("proc/meminfo", "MemTotal: 5000000 kB")  # initialised late: most of it is not there yet
    assert machine_identity(discover_live(tmp_path)) == before
    tree.write("sys/devices/system/memory/memory0/state", "offline")
    assert machine_identity(discover_live(tmp_path)) == before
    _blocks(tree, blocks + 1, block_B)
    assert machine_identity(discover_live(tmp_path)) == before
    _blocks(tree, blocks + (gib << 30) // 8 // block_B, block_B)
    assert machine_identity(discover_live(tmp_path)) != before, "an eighth more modules"


def test_memory_that_grows_while_one_looks_is_one_machine(tmp_path: Path) -> None:
    """A kernel without memory blocks that initialises pages when they are needed: MemTotal grows, zones do not."""
    tree = two_sockets(tmp_path)
    tree.write("proc/self/smaps", "KernelPageSize:        4 kB\nKernelPageSize:     2048 kB")
    found = set()
    for total_kB, managed in ((3218172, 800000), (12000000, 3000000), (24684084, 6171021)):
        tree.write("proc/meminfo", f"MemTotal: {total_kB} kB")
        tree.write("proc/zoneinfo", f"Node 0, zone Normal\n        spanned  6553600\n        present  6291358\n"
                   f"        managed  {managed}")  # fmt: skip
        machine = discover_live(tmp_path)
        assert machine.facts.number("memory_present") == 6291358 * 4096
        found.add(machine_identity(machine))
    assert len(found) == 1
    tree.write("proc/zoneinfo", "Node 0, zone Normal\n        present  12582716")
    assert machine_identity(discover_live(tmp_path)) not in found


@pytest.mark.parametrize("percent", [-2, -1, 1, 2])
@pytest.mark.parametrize("gib", [16, 32, 64, 128, 256, 384, 512, 768, 1024])
def test_a_few_percent_of_the_usable_memory_are_no_other_machine(tmp_path: Path, percent: int, gib: int) -> None:
    tree = two_sockets(tmp_path)
    usable = int(gib * 0.98 * 2**20)
    tree.write("proc/meminfo", f"MemTotal: {usable} kB")
    before = machine_identity(discover_live(tmp_path))
    tree.write("proc/meminfo", f"MemTotal: {usable * (100 + percent) // 100} kB")
    assert machine_identity(discover_live(tmp_path)) == before
    tree.write("proc/meminfo", f"MemTotal: {usable * 7 // 8} kB")
    assert machine_identity(discover_live(tmp_path)) != before, "one module of eight less"


def test_only_processors_and_adapters_change_the_identity(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    before = machine_identity(discover_live(tmp_path))
    usb = "pci0000:00/0000:00:1c.0/0000:02:01.0"
    add_pci(tree, usb, "0c0330", "8086:1e31", 0)
    tree.write(f"sys/devices/{usb}/usb1/block/sdb/size", 1000)
    tree.write(f"sys/devices/{usb}/usb1/block/sdb/device/model", "STICK")
    tree.link("sys/class/block/sdb", f"sys/devices/{usb}/usb1/block/sdb")
    tree.link("sys/class/net/usb0", f"sys/devices/{usb}/usb1/net/usb0")
    tree.link(f"sys/devices/{usb}/usb1/net/usb0/device", f"sys/devices/{usb}/usb1")
    plugged = discover_live(tmp_path)
    assert plugged.device("block-sdb") is not None
    assert plugged.device("nic-usb0") is not None
    assert plugged.device("pci-0000:00:1c.0") is not None, "a bridge that now leads somewhere"
    assert machine_identity(plugged) == before
    add_pci(tree, "pci0000:00/0000:00:1c.0/0000:02:02.0", "120000", "1da3:1020", 0)
    assert machine_identity(discover_live(tmp_path)) != before


def test_what_a_node_does_not_state_is_no_value() -> None:
    node = other = made_up_machine()
    named = replace(node, facts=Facts({**node.facts, "kernel_parameters": (Fact("isolcpus=1", "the test"),)}))
    assert unlike(named, other) == ("kernel_parameters isolcpus=1, which the others do not state",)
    assert unlike(other, named) == ("no kernel_parameters, where the others have isolcpus=1",)
