"""Live discovery from made-up trees of /sys and /proc."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine.machine_trees import CPU, CPUINFO_ARM, Tree, add_cpu, add_node, add_pci, cpuinfo_x86, gen, two_sockets

from seatrial.machine.live import discover_live
from seatrial.model.machine.fact import FactKind
from seatrial.model.machine.machine import DeviceKind, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    two_sockets(tmp_path)
    return discover_live(tmp_path)


def test_the_tree_of_two_sockets(machine: Machine) -> None:
    assert machine.name == "node17"
    kinds = [device.kind for device in machine.devices]
    counts = {kind: kinds.count(kind) for kind in set(kinds)}
    assert counts[DeviceKind.PACKAGE] == counts[DeviceKind.NUMA] == 2
    assert (counts[DeviceKind.CORE], counts[DeviceKind.PU], counts[DeviceKind.CACHE]) == (4, 8, 2 + 3 * 4)
    chain = [device.id for device in machine.ancestors(machine.pus[7])]
    assert chain == ["core-3", "l1i-3", "l1d-3", "l2-3", "l3-1", "numa-1", "package-1"]
    assert machine.pus[7].numa == 1
    assert machine.cpus_one_per_core == (0, 1, 2, 3)
    assert machine.last_level_cache_bytes([0, 1]) == 107520 << 10
    assert machine.last_level_cache_bytes(range(8)) == 2 * 107520 << 10
    assert machine.allowed_cpus == tuple(range(8))
    node = machine.device("numa-1")
    assert node is not None
    assert (node.facts.number("memory_total"), node.facts.text("distances")) == (32 << 30, "0:21 1:10")


def test_devices_are_a_depth_first_walk(machine: Machine) -> None:
    open_ids: list[str] = []
    for device in machine.devices:
        while open_ids and open_ids[-1] != device.parent:
            open_ids.pop()
        assert device.parent is None or open_ids
        open_ids.append(device.id)


def test_every_fact_names_its_source(machine: Machine) -> None:
    for facts in (machine.facts, *(device.facts for device in machine.devices)):
        for statements in facts.values():
            assert all(fact.source for fact in statements)


def test_package_facts(machine: Machine) -> None:
    package = machine.device("package-0")
    assert package is not None
    facts = package.facts
    assert facts.text("model_name") == "Intel(R) Xeon(R) Platinum 8480+"
    assert facts.text("isa") == "avx avx2 avx512f fma fpu movbe sse2", "everything that the kernel says, sorted"
    assert facts.text("vector_isa") == "sse2 avx fma avx2 avx512f"
    assert (facts.text("microarchitecture"), facts.integer("memory_channels")) == ("Sapphire Rapids", 8)
    asserted = facts.best("fma_pipes")
    assert asserted is not None
    assert asserted.kind is FactKind.ASSERTED
    pu = machine.pus[0].facts
    assert (pu.text("governor"), pu.text("frequency_driver"), pu.number("max_frequency")) == (
        "performance", "intel_pstate", 3.8e9,
    )  # fmt: skip
    now = pu.best("frequency")
    assert now is not None
    assert now.volatile


def test_the_fma_limit_of_a_machine_that_states_its_clock(machine: Machine) -> None:
    limit = machine.named_limit("cpu.fp64")
    assert limit is not None
    assert limit.value == 4 * 3.8e9 * 2 * 8 * 2
    assert "4 cores x 3.800 GHz (highest clock reported by cpufreq) x 32 flop/cycle" in limit.derivation
    assert not limit.is_physical, "Sapphire Rapids' pipes are unconfirmed in the table"
    single = machine.named_limit("cpu.fp32")
    assert single is not None
    assert single.value == 2 * limit.value


def test_links_say_capable_and_trained(machine: Machine) -> None:
    link = next(link for link in machine.links if link.b == "gpu-0")
    assert link.a == "pci-0000:00:01.0"
    assert link.capable_Bps == pytest.approx(31.51e9, rel=1e-3)
    assert link.trained_Bps == pytest.approx(7.877e9, rel=1e-3)
    limit = machine.named_limit("pcie.gpu-0")
    assert limit is not None
    assert limit.value == link.capable_Bps
    gpu = machine.device("gpu-0")
    assert gpu is not None
    trained = gpu.facts.best("pcie_lanes")
    assert trained is not None
    assert trained.volatile
    assert (gpu.facts.text("vendor_id"), gpu.facts.text("device_id"), gpu.numa) == ("10de", "20b5", 0)


def test_a_narrow_port_narrows_the_limit(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    add_pci(tree, "pci0000:00/0000:00:02.0", "060400", "8086:352c", 0, **gen("8.0", 8, "8.0", 8))
    add_pci(tree, "pci0000:00/0000:00:02.0/0000:05:00.0", "030200", "10de:2330", 0, **gen("32.0", 16, "8.0", 8))
    machine = discover_live(tmp_path)
    limit = machine.named_limit("pcie.gpu-1")
    assert limit is not None
    assert limit.value == pytest.approx(7.877e9, rel=1e-3)


def test_adapters_disks_and_what_is_none(machine: Machine) -> None:
    nic, disk = machine.device("nic-mlx5_0"), machine.device("nvme-nvme0n1")
    assert nic is not None
    assert (nic.aliases, nic.numa, nic.pci, nic.parent) == (("ib0",), 1, "0000:83:00.0", "pci-0000:82:00.0")
    assert nic.facts.number("rate") == 25e9
    assert (nic.facts.text("state"), nic.facts.text("link_layer")) == ("active", "InfiniBand")
    assert disk is not None
    assert (disk.facts.integer("size"), disk.facts.text("model_name")) == (1875385008 * 512, "SAMSUNG MZ")
    assert len(machine.of_kind(DeviceKind.GPU)) == 1, "the management board's display is not a GPU"
    assert machine.device("pci-0000:00:1c.0") is None, "a bridge that leads to nothing"
    assert not machine.of_kind(DeviceKind.BLOCK)
    assert [(path.a, path.b, path.path_class) for path in machine.paths] == [("gpu-0", "nic-mlx5_0", "SYS")]
    affinity = {entry.device: entry for entry in machine.affinity}
    assert affinity["nic-mlx5_0"].cpus == (2, 3, 6, 7)


def test_no_secrets(machine: Machine) -> None:
    text = repr(machine)
    for secret in ("SERIAL-4711", "hunter2", "1234-secret", "00:11:22", "S4YANX0N"):
        assert secret not in text
    assert machine.facts.text("kernel_parameters") == "isolcpus=2-3 idle=poll"


def test_machine_facts(machine: Machine) -> None:
    facts = machine.facts
    assert facts.text("product") == "ACME Cargo 9000"
    assert (facts.text("privileges"), facts.text("bios_version")) == ("user", "2.1.3")
    for name, value in (("smt_active", True), ("boost", True)):
        fact = facts.best(name)
        assert fact is not None
        assert fact.value is value
    assert "hypervisor" not in facts
    assert "container" not in facts
    assert "cgroup_cpu_limit" not in facts


def test_memory_sizes_that_disagree_are_all_kept(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    assert not discover_live(tmp_path).disagreements()
    tree.write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 1000000 kB")
    machine = discover_live(tmp_path)
    found = [d for d in machine.disagreements() if d.name == "memory_total"]
    assert len(found) == 1
    assert len(found[0].facts) == 2
    assert machine.facts.number("memory_total") == 66000000 * 1024


def test_online_memory_blocks(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("sys/devices/system/memory/block_size_bytes", "80000000")
    for block in range(34):
        tree.write(f"sys/devices/system/memory/memory{block}/state", "online" if block < 32 else "offline")
    values = [fact.value for fact in discover_live(tmp_path).facts["memory_total"]]
    assert 64 << 30 in values


def test_cgroup_v2_takes_the_tightest_on_the_way(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("proc/self/cgroup", "0::/batch/job7")
    tree.write("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate")
    tree.write("sys/fs/cgroup/batch/cpu.max", "150000 100000")
    tree.write("sys/fs/cgroup/batch/job7/cpu.max", "max 100000")
    tree.write("sys/fs/cgroup/batch/memory.max", "max")
    tree.write("sys/fs/cgroup/batch/job7/memory.max", 8 << 30)
    tree.write("sys/fs/cgroup/batch/job7/cpuset.cpus.effective", "0-3")
    facts = discover_live(tmp_path).facts
    cpu = facts.best("cgroup_cpu_limit")
    assert cpu is not None
    assert (cpu.value, cpu.source) == (1.5, "/sys/fs/cgroup/batch/cpu.max")
    assert facts.integer("cgroup_memory_limit") == 8 << 30
    assert facts.text("cgroup_cpus") == "0-3"


def test_cgroup_v1(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("proc/self/cgroup", "4:memory:/a/b\n2:cpu,cpuacct:/a\n0::/")
    mounts = (
        "32 31 0:29 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory"
    )
    tree.write("proc/self/mountinfo", mounts)
    tree.write("cg/cpu/cpu.cfs_quota_us", -1)
    tree.write("cg/cpu/a/cpu.cfs_quota_us", 50000)
    tree.write("cg/cpu/a/cpu.cfs_period_us", 100000)
    tree.write("cg/memory/memory.limit_in_bytes", 9223372036854771712)
    tree.write("cg/memory/a/memory.limit_in_bytes", 4 << 30)
    tree.write("cg/memory/a/b/memory.limit_in_bytes", 6 << 30)
    facts = discover_live(tmp_path).facts
    assert facts.number("cgroup_cpu_limit") == 0.5
    assert facts.integer("cgroup_memory_limit") == 4 << 30


def test_containers_and_hypervisors(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("proc/cpuinfo", cpuinfo_x86(8, flags="fpu sse2 hypervisor"))
    tree.write("sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc acpi_pm")
    tree.write(".dockerenv", "")
    tree.write("proc/self/cgroup", f"0::/docker/{'ab' * 32}")
    machine = discover_live(tmp_path)
    assert (machine.facts.text("hypervisor"), machine.facts.text("container")) == ("kvm", "docker")
    package = machine.device("package-0")
    assert package is not None
    assert "fma_pipes" not in package.facts, "this system hides FMA"


def test_huge_pages_and_settings(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
    tree.write("sys/kernel/mm/transparent_hugepage/defrag", "always defer defer+madvise [madvise] never")
    tree.write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", 512)
    tree.write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", 0)
    tree.write("proc/sys/kernel/numa_balancing", 1)
    tree.write(f"{CPU}/vulnerabilities/meltdown", "Mitigation: PTI")
    tree.write(f"{CPU}/vulnerabilities/spectre_v2", "Mitigation: IBRS; IBPB: conditional; RSB filling")
    tree.write(f"{CPU}/vulnerabilities/mds", "Not affected")
    facts = discover_live(tmp_path).facts
    assert (facts.text("thp_enabled"), facts.text("thp_defrag")) == ("madvise", "madvise")
    assert (facts.integer("hugetlb_2MiB_total"), facts.integer("hugetlb_1GiB_total")) == (512, 0)
    assert facts.integer("numa_balancing") == 1
    assert facts.text("mitigations") == "meltdown: Mitigation: PTI; spectre_v2: Mitigation: IBRS"


def test_acpi_cpufreq_with_boost_gives_no_fma_limit(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    (tmp_path / f"{CPU}/intel_pstate/no_turbo").unlink()
    tree.write(f"{CPU}/cpufreq/boost", 1)
    for cpu in range(8):
        tree.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_driver", "acpi-cpufreq")
    limit = discover_live(tmp_path).named_limit("cpu.fp64")
    assert limit is not None
    assert limit.value is None
    assert "without boost" in limit.derivation


def test_a_mixed_governor_is_reported(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    tree.write(f"{CPU}/cpu3/cpufreq/scaling_governor", "powersave")
    assert discover_live(tmp_path).facts.text("governor") == "performance x 7, powersave x 1"


def test_an_arm_machine_with_little_in_sysfs(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path / "other")
    tree.root = tmp_path / "arm"
    tree.write("proc/cpuinfo", CPUINFO_ARM)
    machine = discover_live(tmp_path / "arm")
    package = machine.device("package-0")
    assert package is not None
    assert (package.facts.text("vendor"), package.facts.text("microarchitecture")) == ("Arm", "Neoverse V2")
    assert (package.facts.integer("fma_pipes"), package.facts.integer("fma_vector_bits")) == (4, 128)
    assert len(machine.of_kind(DeviceKind.CORE)) == 2
    assert machine.last_level_cache_bytes([0]) is None
    assert package.facts.text("isa") == "aes asimd bf16 evtstrm fp i8mm sve sve2"
    assert any(sentence.startswith("caches:") for sentence in machine.unread)


def test_an_empty_tree_is_an_empty_machine(tmp_path: Path) -> None:
    machine = discover_live(tmp_path)
    assert machine.devices == ()
    assert machine.unread
    assert all(named.limit.value is None for named in machine.limits)


@pytest.mark.parametrize(
    "path", ["proc/cpuinfo", "proc/meminfo", f"{CPU}/online", "proc/self/cgroup", "etc/os-release"]
)
@pytest.mark.parametrize("content", [b"", b"\xff\x00garbage", b"0-", b"a: b"])
def test_damaged_files_are_survived(tmp_path: Path, path: str, content: bytes) -> None:
    two_sockets(tmp_path).write(path, content)
    discover_live(tmp_path)


def test_what_the_firmware_states_about_memory(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    node = "sys/devices/system/node/node0"
    tree.write(f"{node}/access1/initiators/read_bandwidth", "204800")
    tree.write(f"{node}/access0/initiators/read_bandwidth", "1")
    tree.write(f"{node}/access0/initiators/write_latency", "120")
    tree.write(f"{node}/memory_side_cache/index1/size", str(64 << 30))
    first, second = (device.facts for device in discover_live(tmp_path).of_kind(DeviceKind.NUMA))
    assert first.number("memory_read_bandwidth") == 204800e6
    assert first.number("memory_write_latency") == pytest.approx(120e-9)
    assert first.integer("memory_side_cache") == 64 << 30
    assert not [name for name in second if name.startswith("memory_") and name != "memory_total"]


def grace_hopper(root: Path) -> Tree:
    """One package of Grace, 480 GiB, and the 96 GiB of a GH200 as node 1; the driver's file names it."""
    tree = Tree(root)
    tree.write("proc/cpuinfo", CPUINFO_ARM)
    tree.write(f"{CPU}/online", "0-1")
    for cpu in range(2):
        add_cpu(tree, cpu, 0, cpu, {cpu}, {0, 1})
    add_node(tree, 0, {0, 1}, 480 << 20, "10 80")
    add_node(tree, 1, set(), 96 << 20, "80 10")
    tree.write("proc/meminfo", f"MemTotal: {576 << 20} kB\nMemAvailable: {500 << 20} kB")
    add_pci(tree, "pci0009:00/0009:01:00.0", "030200", "10de:2342", 0)
    tree.write("sys/devices/system/memory/block_size_bytes", "80000000")
    for block in range(288):
        tree.write(f"sys/devices/system/memory/memory{block}/state", "online")
        if block >= 240:
            tree.write(f"sys/devices/system/node/node1/memory{block}/state", "online")
    return tree


@pytest.mark.parametrize("names_its_node", [True, False])
def test_the_memory_of_a_GPU_beside_grace_is_not_that_of_the_host(tmp_path: Path, names_its_node: bool) -> None:
    tree = grace_hopper(tmp_path)
    if names_its_node:
        tree.write("proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:         1\nStatus:       online")
    machine = discover_live(tmp_path)
    assert [node.facts.text("memory_kind") for node in machine.of_kind(DeviceKind.NUMA)] == [None, "GPUMemory"]
    assert {fact.value for fact in machine.facts["memory_total"]} == {480 << 30}
    assert machine.facts.number("memory_available") == (500 << 30) - 1000 * 1024
    assert "without the memory of GPUs: node 1" in machine.facts["memory_total"][0].source


def test_memory_without_CPUs_is_the_hosts_unless_it_is_a_GPUs(tmp_path: Path) -> None:
    tree = grace_hopper(tmp_path)
    tree.write("sys/bus/dax/devices/dax1.0/target_node", 1)  # CXL memory
    machine = discover_live(tmp_path)
    assert machine.of_kind(DeviceKind.NUMA)[1].facts.text("memory_kind") is None
    assert machine.facts.number("memory_total") == 576 << 30
    (tmp_path / "sys/bus/dax/devices/dax1.0/target_node").unlink()
    tree.write("sys/devices/pci0009:00/0009:01:00.0/vendor", "0x15b3")  # Graviton and Axion have these cores, too
    assert discover_live(tmp_path).facts.number("memory_total") == 576 << 30


def test_the_memory_of_a_GPU_beside_POWER9(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    add_node(tree, 255, set(), 16 << 20, "80 80 10")
    tree.write("proc/meminfo", f"MemTotal: {80 << 20} kB")
    assert discover_live(tmp_path).facts.number("memory_total") == 80 << 30
    tree.write("proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n")
    tree.write("proc/driver/nvidia/gpus/0004:04:00.0/information", "Model: \t\t Tesla V100-SXM2-16GB")
    assert discover_live(tmp_path).facts.number("memory_total") == 64 << 30
