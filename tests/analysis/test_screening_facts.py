"""Facts on which nodes differ, from real dumps of which one has another BIOS, module, or link, and from copies of
sysfs."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from conftest import SHARED_DATA
from machine.machine_trees import CPU, Tree, cpuinfo_x86, two_sockets

from seatrial.analysis.screening.screen import facts_of_node, screen_cluster
from seatrial.interface.machines import discover
from seatrial.machine.assemble import assemble
from seatrial.machine.files import FileTree
from seatrial.machine.live import survey_live
from seatrial.machine.sysfs.software import survey_software
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.fact import FactValue
from seatrial.model.study.screen import NoResult, Screen, ScreenInput
from seatrial.report.text.history import screen_text

TOPOLOGY = SHARED_DATA / "topology"
DMI = "dmi_dell-c6525_8of16_epyc.txt"
LSPCI = "lspci-vvd10de_a6000_neuropoly.md.txt"


def sample(name: str) -> str:
    if not (TOPOLOGY / name).is_file():
        pytest.skip(f"{TOPOLOGY / name} is not here")
    return (TOPOLOGY / name).read_text()


def screened(facts: Mapping[str, Mapping[str, FactValue]]) -> Screen:
    return screen_cluster(ScreenInput(tuple(facts), facts=facts))


def nodes_with(kind: str, text: str, changed: str, folder: Path) -> Screen:
    """Four nodes with the same dump, of which n3 has another one."""
    facts = {}
    for node in ("n1", "n2", "n3", "n4"):
        dump = folder / f"{node}.txt"
        dump.write_text(changed if node == "n3" else text)
        facts[node] = facts_of_node(machine_document(discover({kind: dump})))
    return screened(facts)


def differing(found: Screen) -> dict[str, tuple[str, ...]]:
    return {one.fact: one.odd for one in found.facts_that_differ}


def test_another_bios_is_listed_and_nobody_is_drained_for_it(tmp_path: Path) -> None:
    text = sample(DMI)
    found = nodes_with("dmidecode", text, text.replace("Version: 2.6.7\n", "Version: 2.4.1\n", 1), tmp_path)
    assert differing(found) == {"bios version": ("n3",)} and found.odd == ()


def test_a_module_that_is_missing_is_the_node(tmp_path: Path) -> None:
    text = sample(DMI)
    first = text.index("\tSize: 32 GB\n")
    found = nodes_with(
        "dmidecode",
        text,
        text[:first] + text[first:].replace("\tSize: 32 GB\n", "\tSize: No Module Installed\n", 1),
        tmp_path,
    )
    assert {one.what for one in found.odd} == {"n3"}
    assert {one.figure for one in found.odd} <= {"memory", "memory modules"} and "memory" in differing(found)
    assert all("dmidecode -t memory" in one.remedy for one in found.odd)


def test_a_narrower_link_is_the_device_and_an_idle_one_is_not(tmp_path: Path) -> None:
    text = sample(LSPCI)
    idle = "LnkSta: Speed 2.5GT/s (downgraded), Width x16 (ok)"
    assert idle in text
    busy = text.replace(idle, "LnkSta: Speed 16GT/s (ok), Width x16 (ok)", 1)
    assert nodes_with("lspci-vv", text, busy, tmp_path).odd == ()
    narrow = text.replace(idle, "LnkSta: Speed 2.5GT/s (downgraded), Width x8 (downgraded)", 1)
    (odd,) = nodes_with("lspci-vv", text, narrow, tmp_path).odd
    assert (odd.kind, odd.value, odd.usual) == ("device", 8.0, 16.0)
    assert odd.what.endswith(" of n3") and odd.figure.endswith("link width") and "lspci -vv" in odd.remedy


def test_microcode_kernel_driver_and_governor(tmp_path: Path) -> None:
    facts = {}
    for node in ("n1", "n2", "n3", "n4"):
        tree = two_sockets(tmp_path / node)
        is_odd = node == "n3"
        tree.write("proc/cpuinfo", cpuinfo_x86(8, microcode="0x2b000461" if is_odd else "0x2b0004d0"))
        tree.write("proc/sys/kernel/osrelease", "6.1.0-15-amd64" if is_odd else "6.1.0-18-amd64")
        for cpu in range(8):
            tree.write(f"{CPU}/cpu{cpu}/cpufreq/scaling_governor", "powersave" if is_odd else "performance")
        _driver(tree, "mlx5_core" if not is_odd else "vfio-pci")
        machine = assemble(survey_live(tree.root, use_hwloc=False))
        facts[node] = facts_of_node(machine_document(machine))
    found = screened(facts)
    names = differing(found)
    assert {"kernel", "governor", "CPU microcode"} <= names.keys()
    assert any(name.endswith(" driver") for name in names)
    assert set(names.values()) == {("n3",)} and found.odd == ()


def _driver(tree: Tree, name: str) -> None:
    adapter = "sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0"
    tree.link(f"{adapter}/driver", f"sys/bus/pci/drivers/{name}")


def _with_software(tree: Tree, *, is_odd: bool) -> None:
    """A loader's cache that names libmpi, another one with the odd node; modules and packages."""
    file = "/opt/mpi/lib/libmpi.so.40.20.2" if is_odd else "/usr/lib64/libmpi.so.40.30.4"
    tree.write(file, b"\x7fELF\x02\x01" + file.encode())
    names = f"libmpi.so.40\0{file}\0libm32.so.6\0/lib/libm32.so.6\0".encode()
    head = 48 + 2 * 24
    path = head + len("libmpi.so.40") + 1
    entries = struct.pack("<iIIIQ", 0x303, head, path, 0, 0) + struct.pack("<iIIIQ", 3, path, path, 0, 1 << 62)
    cache = struct.pack("<20sII20x", b"glibc-ld.so.cache1.1", 2, len(names)) + entries + names
    tree.write("etc/ld.so.cache", b"ld.so-1.7.0\0" + cache if is_odd else cache)
    tree.write("sys/module/mlx5_core/taint", "OE")
    tree.write("sys/module/mlx5_core/version", "5.8-2.0.3" if is_odd else "23.10-1.1.9")
    tree.write("sys/module/ext4/taint", "")
    version = "1.13.1-1" if is_odd else "1.15.0-2"
    unused = "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\nArchitecture: all\n"
    tree.write("var/lib/dpkg/status", f"Package: libucx0\nStatus: install ok installed\nArchitecture: amd64\n"
               f"Version: {version}\nDescription: x\n more\n\n{unused}")  # fmt: skip


def test_another_mpi_kernel_module_or_package_is_named_with_both_values(tmp_path: Path) -> None:
    facts = {}
    for node in ("n1", "n2", "n3", "n4"):
        tree = two_sockets(tmp_path / node)
        tree.write("proc/sys/kernel/osrelease", "6.1.0-15-amd64" if node == "n2" else "6.1.0-18-amd64")
        _with_software(tree, is_odd=node == "n3")
        facts[node] = facts_of_node(machine_document(assemble(survey_live(tree.root, use_hwloc=False))))
    found = screened(facts)
    assert differing(found) == {
        "kernel": ("n2",),
        **dict.fromkeys(
            ("kernel module mlx5_core", "library libmpi.so.40", "package libucx0", "installed packages"), ("n3",)
        ),
    }
    text = " ".join(screen_text(found).split())
    assert "n2 differs in kernel: 6.1.0-15-amd64; most have 6.1.0-18-amd64" in text
    assert "n3 differs in package libucx0: 1.13.1-1; most have 1.15.0-2" in text
    assert ", but n2, n3 differ in facts" in text
    named = "n3 differs in library libmpi.so.40: /opt/mpi/lib/libmpi.so.40.20.2 ("
    assert named in text and "most have /usr/lib64/libmpi.so.40.30.4 (" in text


def test_a_damaged_cache_of_the_loader_names_no_library(tmp_path: Path) -> None:
    tree = two_sockets(tmp_path)
    _with_software(tree, is_odd=False)
    whole = (tmp_path / "etc/ld.so.cache").read_bytes()
    for end in range(0, len(whole), 5):
        tree.write("etc/ld.so.cache", whole[:end])
        survey_software(FileTree(tmp_path), {})
    tree.write("etc/ld.so.cache", whole.replace(struct.pack("<I", 96), b"\xff\xff\xff\x7f"))
    assert "library_libmpi.so.40" not in survey_software(FileTree(tmp_path), {}).facts


def test_a_node_on_which_a_benchmark_gave_no_result_is_odd() -> None:
    nodes = ("n1", "n2", "n3", "n4")
    trial = frozenset({"memory.stream", "cpu.peak"})
    results = dict.fromkeys(nodes, trial) | {"n3": frozenset({"cpu.peak"})}
    why = "memory.stream skipped: it needs 8 GiB, and 2 GiB are free"
    given = ScreenInput(nodes, results=results, no_results=(NoResult("n3", "memory.stream", why),))
    (odd,) = screen_cluster(given).odd
    assert (odd.what, odd.value, odd.usual) == ("n3", 1.0, 2.0) and why in " ".join(
        screen_text(screen_cluster(given)).split()
    )
    nowhere = ScreenInput(nodes, results=results, no_results=(NoResult("n3", "gpu.triad", "no GPU"),))
    assert screen_cluster(nowhere).odd == ()
    nothing = ScreenInput(nodes, results=dict.fromkeys(nodes[:3], trial), no_results=(NoResult("n4", "cpu.peak", "x"),))
    assert [one.what for one in screen_cluster(nothing).odd] == ["n4"] and "x" in screen_text(screen_cluster(nothing))
