"""Made-up copies of /sys and /proc, written for the tests."""

from __future__ import annotations

import os
from pathlib import Path

from seatrial.machine.readers.scalars import write_cpu_list

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"


class Tree:
    """A folder that stands for the root of a machine."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str | int | bytes) -> None:
        """One file, its folders made as needed; text gets the newline that the kernel writes."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else f"{text}\n".encode())

    def link(self, path: str, target: str) -> None:
        """A relative symbolic link, as sysfs has them."""
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        (self.root / target.lstrip("/")).mkdir(parents=True, exist_ok=True)
        file.symlink_to(os.path.relpath(self.root / target.lstrip("/"), file.parent))


def cpuinfo_x86(cpus: int, flags: str = "fpu sse2 avx fma avx2 avx512f movbe", **fields: object) -> str:
    """/proc/cpuinfo of an x86 machine whose CPUs are alike."""
    told = {
        "vendor_id": "GenuineIntel",
        "cpu family": 6,
        "model": 143,
        "model name": "Intel(R) Xeon(R) Platinum 8480+",
        "stepping": 8,
        "microcode": "0x2b0004d0",
        "cpu MHz": "2000.000",
        **fields,
        "flags": flags,
    }
    lines = "".join(f"{key}\t: {value}\n" for key, value in told.items())
    return "\n".join(f"processor\t: {cpu}\n{lines}" for cpu in range(cpus))


CPUINFO_ARM = """processor\t: 0
BogoMIPS\t: 2100.00
Features\t: fp asimd evtstrm aes sve sve2 bf16 i8mm
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd4f
CPU revision\t: 1

processor\t: 1
BogoMIPS\t: 2100.00
Features\t: fp asimd evtstrm aes sve sve2 bf16 i8mm
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x0
CPU part\t: 0xd4f
CPU revision\t: 1
"""


def add_cpu(tree: Tree, cpu: int, package: int, core: int, siblings: set[int], l3: set[int]) -> None:
    """The sysfs files of one CPU: its place, its caches, its clock."""
    at = f"{CPU}/cpu{cpu}"
    tree.write(f"{at}/topology/physical_package_id", package)
    tree.write(f"{at}/topology/core_id", core)
    tree.write(f"{at}/topology/die_id", 0)
    tree.write(f"{at}/topology/core_cpus_list", write_cpu_list(frozenset(siblings)))
    caches = (("1", "Data", "48K", siblings), ("1", "Instruction", "32K", siblings))
    for index, (level, kind, size, shared) in enumerate(
        (*caches, ("2", "Unified", "2048K", siblings), ("3", "Unified", "107520K", l3))
    ):
        cache = f"{at}/cache/index{index}"
        tree.write(f"{cache}/level", level)
        tree.write(f"{cache}/type", kind)
        tree.write(f"{cache}/size", size)
        tree.write(f"{cache}/coherency_line_size", 64)
        tree.write(f"{cache}/shared_cpu_list", write_cpu_list(frozenset(shared)))
    for name, value in (
        ("scaling_governor", "performance"),
        ("scaling_driver", "intel_pstate"),
        ("cpuinfo_max_freq", 3800000),
        ("cpuinfo_min_freq", 800000),
        ("base_frequency", 2000000),
        ("scaling_cur_freq", 2950123),
    ):
        tree.write(f"{at}/cpufreq/{name}", value)


def add_node(tree: Tree, number: int, cpus: set[int], kib: int, distances: str) -> None:
    """One NUMA node."""
    at = f"{NODE}/node{number}"
    tree.write(f"{at}/cpulist", write_cpu_list(frozenset(cpus)))
    tree.write(f"{at}/meminfo", f"Node {number} MemTotal:       {kib} kB\nNode {number} MemFree:        1000 kB")
    tree.write(f"{at}/distance", distances)


def add_pci(tree: Tree, chain: str, class_id: str, ids: str, numa: int, **links: str | int) -> None:
    """A PCI function at the end of `chain` ("pci0000:00/0000:00:01.0"); `links` are max_link_speed and so on."""
    address = chain.rsplit("/", 1)[-1]
    at = f"sys/devices/{chain}"
    vendor, device = ids.split(":")
    tree.link(f"sys/bus/pci/devices/{address}", at)
    tree.write(f"{at}/class", f"0x{class_id}")
    tree.write(f"{at}/vendor", f"0x{vendor}")
    tree.write(f"{at}/device", f"0x{device}")
    tree.write(f"{at}/numa_node", numa)
    tree.write(f"{at}/local_cpulist", "0-1,4-5" if numa == 0 else "2-3,6-7")
    for name, value in links.items():
        tree.write(f"{at}/{name}", value)


def gen(speed: str, width: int, now_speed: str, now_width: int) -> dict[str, str | int]:
    """The four link files of a PCIe function."""
    return {
        "max_link_speed": f"{speed} GT/s PCIe",
        "max_link_width": width,
        "current_link_speed": f"{now_speed} GT/s PCIe",
        "current_link_width": now_width,
    }


def two_sockets(root: Path) -> Tree:
    """2 packages x 2 cores x 2 threads, a NUMA node each; a GPU trained down, a switch with an adapter and a disk."""
    tree = Tree(root)
    tree.write("proc/cpuinfo", cpuinfo_x86(8))
    tree.write(f"{CPU}/online", "0-7")
    tree.write(f"{CPU}/smt/active", 1)
    tree.write(f"{CPU}/intel_pstate/no_turbo", 0)
    for cpu in range(8):
        package = (cpu // 2) % 2
        siblings = {cpu % 4, cpu % 4 + 4}
        add_cpu(tree, cpu, package, cpu % 2, siblings, {c for c in range(8) if (c // 2) % 2 == package})
    add_node(tree, 0, {0, 1, 4, 5}, 32 << 20, "10 21")
    add_node(tree, 1, {2, 3, 6, 7}, 32 << 20, "21 10")
    tree.write(
        "proc/meminfo",
        "MemTotal:       66000000 kB\nMemAvailable:   60000000 kB\nSwapTotal:      0 kB\nHugePages_Total: 0",
    )
    tree.write("proc/sys/kernel/hostname", "node17")
    tree.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64")
    tree.write("proc/self/status", "Name:\tpython3\nUid:\t1000\t1000\t1000\t1000\nCpus_allowed_list:\t0-7")
    tree.write(
        "proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1234-secret quiet isolcpus=2-3 idle=poll -- password=hunter2"
    )
    tree.write("etc/os-release", 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian')
    tree.write("sys/class/dmi/id/sys_vendor", "ACME")
    tree.write("sys/class/dmi/id/product_name", "Cargo 9000")
    tree.write("sys/class/dmi/id/product_serial", "SERIAL-4711")
    tree.write("sys/class/dmi/id/bios_version", "2.1.3")
    _add_devices(tree)
    return tree


def _add_devices(tree: Tree) -> None:
    up = gen("16.0", 16, "16.0", 16)
    add_pci(tree, "pci0000:00/0000:00:01.0", "060400", "8086:352a", 0, **up)
    add_pci(tree, "pci0000:00/0000:00:01.0/0000:01:00.0", "030200", "10de:20b5", 0, **gen("16.0", 16, "8.0", 8))
    add_pci(tree, "pci0000:00/0000:00:1c.0", "060400", "8086:352b", 0)
    add_pci(tree, "pci0000:00/0000:00:1c.0/0000:02:00.0", "030000", "1a03:2000", 0)
    side = "pci0000:80/0000:80:01.0"
    add_pci(tree, side, "060400", "8086:352a", 1, **up)
    add_pci(tree, f"{side}/0000:81:00.0", "060400", "1000:c030", 1, **up)
    add_pci(tree, f"{side}/0000:81:00.0/0000:82:00.0", "060400", "1000:c030", 1, **gen("16.0", 16, "16.0", 16))
    add_pci(tree, f"{side}/0000:81:00.0/0000:82:01.0", "060400", "1000:c030", 1, **gen("16.0", 4, "16.0", 4))
    adapter = f"{side}/0000:81:00.0/0000:82:00.0/0000:83:00.0"
    add_pci(tree, adapter, "020700", "15b3:101b", 1, **gen("16.0", 16, "16.0", 16))
    tree.link("sys/class/net/ib0", f"sys/devices/{adapter}/net/ib0")
    tree.link(f"sys/devices/{adapter}/net/ib0/device", f"sys/devices/{adapter}")
    tree.write(f"sys/devices/{adapter}/net/ib0/operstate", "up")
    tree.write(f"sys/devices/{adapter}/net/ib0/address", "00:11:22:33:44:55")
    tree.link("sys/class/infiniband/mlx5_0", f"sys/devices/{adapter}/infiniband/mlx5_0")
    tree.link(f"sys/devices/{adapter}/infiniband/mlx5_0/device", f"sys/devices/{adapter}")
    port = f"sys/devices/{adapter}/infiniband/mlx5_0/ports/1"
    tree.write(f"{port}/rate", "200 Gb/sec (4X HDR)")
    tree.write(f"{port}/state", "4: ACTIVE")
    tree.write(f"{port}/link_layer", "InfiniBand")
    disk = f"{side}/0000:81:00.0/0000:82:01.0/0000:84:00.0"
    add_pci(tree, disk, "010802", "144d:a808", 1, **gen("8.0", 4, "8.0", 4))
    tree.link("sys/class/nvme/nvme0", f"sys/devices/{disk}/nvme/nvme0")
    tree.write(f"sys/devices/{disk}/nvme/nvme0/model", "SAMSUNG MZ")
    tree.write(f"sys/devices/{disk}/nvme/nvme0/serial", "S4YANX0N")
    tree.write(f"sys/devices/{disk}/nvme/nvme0/nvme0n1/size", 1875385008)
    tree.link("sys/class/block/nvme0n1", f"sys/devices/{disk}/nvme/nvme0/nvme0n1")
    tree.link("sys/class/block/loop0", "sys/devices/virtual/block/loop0")
    tree.link("sys/class/net/lo", "sys/devices/virtual/net/lo")
