"""What a guest shows of its host: devices passed through, SR-IOV or emulated; memory balloon; steal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from machine.machine_trees import Tree, cpuinfo_x86, two_sockets

from seatrial.machine.assemble import assemble
from seatrial.machine.attachment import attachment_of
from seatrial.machine.live import discover_live
from seatrial.machine.readers.hwloc_xml import read_hwloc_xml
from seatrial.machine.readers.kernel_stat import read_steal_share
from seatrial.machine.survey import Survey
from seatrial.model.fact import Fact, Facts
from seatrial.model.machine import DeviceKind
from seatrial.model.machine_identity import machine_identity
from seatrial.model.platform import Platform, Sign

DUMPS = Path(__file__).parents[2] / ".." / "shared" / "data" / "topology"


def facts(**values: str) -> Facts:
    return Facts({name: (Fact(value, "the test"),) for name, value in values.items()})


def ids(text: str, **more: str) -> Facts:
    vendor, _, device = text.partition(":")
    return facts(vendor_id=vendor, device_id=device, **more)


GUEST = [
    (ids("1af4:1041"), "", "paravirtual"),
    (ids("1af4:1000"), "", "paravirtual"),
    (ids("15ad:07b0"), "", "paravirtual"),
    (facts(driver="xen_blkfront"), "", "paravirtual"),
    (facts(driver="hv_netvsc"), "", "paravirtual"),
    (ids("1b36:0010"), "", "emulated"),
    (ids("1234:1111"), "", "emulated"),
    (ids("8086:10d3", subsystem_vendor_id="1af4", subsystem_id="1100"), "", "emulated"),
    (facts(), "QEMU NVMe Ctrl", "emulated"),
    (ids("8086:10d3", subsystem_vendor_id="8086", subsystem_id="a01f"), "", "passed through"),
    (ids("10de:2330"), "H100", "passed through"),
    (ids("15b3:101e"), "", "virtual function"),
    (ids("8086:1889"), "", "virtual function"),
    (facts(), "Ethernet Virtual Function 700 Series", "virtual function"),
    (facts(), "eth0", None),
]


@pytest.mark.parametrize(("given", "name", "expected"), GUEST)
def test_the_attachment_of_a_device_in_a_guest(given: Facts, name: str, expected: str | None) -> None:
    found = attachment_of(given, [name], is_virtual=True)
    assert (found and found[0]) == expected and (found is None or found[1])


@pytest.mark.parametrize(("given", "name", "expected"), GUEST)
def test_on_a_real_machine_only_virtual_functions_are_named(given: Facts, name: str, expected: str | None) -> None:
    found = attachment_of(given, [name], is_virtual=False)
    assert (found and found[0]) == ("virtual function" if expected == "virtual function" else None)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("cpu  60 0 20 10 0 0 0 10 0 0\ncpu0 1 1 1 1 1 1 1 99 0 0\n", 0.1),
        ("cpu  60 0 20 20 0 0 0 0 0 0\n", 0.0),
        ("cpu  60 0 20 20\n", None),  # before Linux 2.6.11
        ("cpu  0 0 0 0 0 0 0 0 0 0\n", None),
        ("cpu  60 0 x 20 0 0 0 1\n", None),
        ("cpu  60 0 -3 20 0 0 0 1\n", None),
        ("intr 7\n", None),
        ("", None),
    ],
)
def test_steal(text: str, share: float | None) -> None:
    assert read_steal_share(text) == pytest.approx(share)


def guest(root: Path) -> Tree:
    """A virtual machine of KVM with a balloon, a disk of virtio and a virtual function of a ConnectX-6."""
    tree = two_sockets(root)
    tree.write("/proc/cpuinfo", cpuinfo_x86(8, "fpu sse2 hypervisor"))
    clock = "/sys/devices/system/clocksource/clocksource0"
    tree.write(f"{clock}/available_clocksource", "kvm-clock tsc acpi_pm")
    tree.write("/proc/stat", "cpu  60 0 20 10 0 0 0 10 0 0")
    for slot, vendor, device, class_id in (
        ("06", "0x1af4", "0x1042", "0x010000"),
        ("07", "0x15b3", "0x101c", "0x020700"),
    ):
        at = f"/sys/devices/pci0000:00/0000:00:{slot}.0"
        for name, word in (("vendor", vendor), ("device", device), ("class", class_id)):
            tree.write(f"{at}/{name}", word)
        tree.link(f"/sys/bus/pci/devices/0000:00:{slot}.0", at)
    tree.write("/sys/devices/pci0000:00/0000:00:06.0/virtio1/block/vda/size", 2048)
    tree.link("/sys/class/block/vda", "/sys/devices/pci0000:00/0000:00:06.0/virtio1/block/vda")
    tree.link(
        "/sys/devices/pci0000:00/0000:00:06.0/virtio1/block/vda/device", "/sys/devices/pci0000:00/0000:00:06.0/virtio1"
    )
    tree.write("/sys/devices/pci0000:00/0000:00:07.0/infiniband/mlx5_0/node_type", "1: CA")
    tree.link("/sys/class/infiniband/mlx5_0", "/sys/devices/pci0000:00/0000:00:07.0/infiniband/mlx5_0")
    tree.link("/sys/devices/pci0000:00/0000:00:07.0/infiniband/mlx5_0/device", "/sys/devices/pci0000:00/0000:00:07.0")
    return tree


def balloon(tree: Tree) -> None:
    tree.write("/sys/devices/pci0000:00/0000:00:09.0/virtio9/device", "0x0005")
    tree.link("/sys/devices/pci0000:00/0000:00:09.0/virtio9/driver", "/sys/bus/virtio/drivers/virtio_balloon")
    tree.link("/sys/bus/virtio/devices/virtio9", "/sys/devices/pci0000:00/0000:00:09.0/virtio9")


def test_a_guest_says_how_its_devices_reach_it_and_keeps_its_identity(tmp_path: Path) -> None:
    tree = guest(tmp_path)
    before = discover_live(tmp_path)
    balloon(tree)
    tree.write("/proc/stat", "cpu  60 0 20 10 0 0 0 90 0 0")
    found = discover_live(tmp_path)
    attached = {device.id: device.facts.text("attachment") for device in found.devices}
    assert attached["block-vda"] == "paravirtual" and attached["mlx5_0"] == "virtual function"
    assert [sign.kind for sign in found.platform.virtualization] == ["kvm"]
    assert "balloon" not in before.facts and found.facts.text("balloon") == "virtio"
    assert (before.facts.number("steal_share"), found.facts.number("steal_share")) == (0.1, 0.5)
    assert machine_identity(found) == machine_identity(before)


def test_a_real_machine_has_no_facts_of_a_guest_but_names_its_virtual_functions(tmp_path: Path) -> None:
    tree = guest(tmp_path)
    balloon(tree)
    tree.write("/proc/cpuinfo", cpuinfo_x86(8))
    tree.write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm")
    tree.write("/sys/devices/pci0000:00/0000:00:07.0/device", "0x1017")
    tree.write("/sys/devices/pci0000:00/0000:00:08.0/sriov_numvfs", 4)
    tree.link("/sys/devices/pci0000:00/0000:00:07.0/physfn", "/sys/devices/pci0000:00/0000:00:08.0")
    found = discover_live(tmp_path)
    assert not found.platform.virtualization and "balloon" not in found.facts and "steal_share" not in found.facts
    attached = {d.id: fact for d in found.devices if (fact := d.facts.best("attachment")) is not None}
    assert list(attached) == ["mlx5_0"] and "physfn (0000:00:08.0)" in attached["mlx5_0"].source


def test_virtual_functions_of_a_real_server_in_a_dump() -> None:
    """A server with two Ethernet ports and their 63 virtual functions each, none passed to a guest."""
    path = DUMPS / "hwloc_16intel64-manyVFs.xml.txt"
    if not path.exists():
        pytest.skip(f"{path.name} is absent")
    machine = assemble([read_hwloc_xml(path.read_bytes())])
    nics = machine.of_kind(DeviceKind.NIC)
    functions = [nic for nic in nics if nic.facts.text("attachment") == "virtual function"]
    named = len(re.findall(r'type="PCIDev".*?pci_type="[0-9a-f]+ \[8086:1520\]', path.read_text()))
    assert 0 < len(functions) < len(nics) and named >= len(functions)
    assert {nic.facts.text("attachment") for nic in nics} == {None, "virtual function"}


def test_nested_containers_are_listed_from_the_outside() -> None:
    signs = tuple(Sign(kind, "the test") for kind in ("apptainer", "docker", "kubernetes", "wsl"))
    found = assemble([Survey("the test", platform=Platform((), signs))])
    assert [sign.kind for sign in found.platform.container] == ["wsl", "kubernetes", "docker", "apptainer"]
