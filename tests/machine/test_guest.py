"""What a guest shows of its host: devices passed through, SR-IOV or emulated; memory balloon; steal."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import SHARED_DATA
from machine.dmi_dumps import SKYLAKE, Server, dell
from machine.machine_trees import Tree, cpuinfo_x86, two_sockets

from seatrial.machine.assemble import assemble
from seatrial.machine.attachment import attachment_of
from seatrial.machine.live import discover_live
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.machine.readers.lspci_vv import read_lspci_vv
from seatrial.machine.readers.procfs import read_steal_share
from seatrial.machine.survey import Survey
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import DeviceKind, Platform, Sign


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
    (ids("1af4:1110"), "", "paravirtual"),
    (ids("8086:0d93"), "", "emulated"),
    (ids("1234:1111"), "", "emulated"),
    (ids("8086:10d3", subsystem_vendor_id="1af4", subsystem_id="1100"), "", "emulated"),
    (facts(), "Virtio 1.0 network device", "paravirtual"),
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


ADAPTER = "/sys/devices/pci0000:80/0000:80:01.0/0000:81:00.0/0000:82:00.0/0000:83:00.0"
DISK = "/sys/devices/pci0000:00/0000:00:06.0"


def guest(root: Path) -> Tree:
    """A virtual machine of KVM with a disk of virtio, an NVMe disk passed through and a virtual function of an adapter
    (a ConnectX-6)."""
    tree = two_sockets(root)
    tree.write("/proc/cpuinfo", cpuinfo_x86(8, "fpu sse2 hypervisor"))
    tree.write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "kvm-clock tsc acpi_pm")
    tree.write("/proc/stat", "cpu  60 0 20 10 0 0 0 10 0 0")
    for name, word in (("vendor", "0x1af4"), ("device", "0x1042"), ("class", "0x010000")):
        tree.write(f"{DISK}/{name}", word)
    tree.link("/sys/bus/pci/devices/0000:00:06.0", DISK)
    tree.write(f"{DISK}/virtio1/block/vda/size", 2048)
    tree.link("/sys/class/block/vda", f"{DISK}/virtio1/block/vda")
    tree.link(f"{DISK}/virtio1/block/vda/device", f"{DISK}/virtio1")
    tree.write(f"{ADAPTER}/device", "0x101c")
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
    attached = {device.name: device.facts.text("attachment") for device in found.devices}
    assert (attached["vda"], attached["mlx5_0"], attached["nvme0n1"]) == (
        "paravirtual",
        "virtual function",
        "passed through",
    )
    assert [sign.kind for sign in found.platform.virtualization] == ["kvm"]
    assert "balloon" not in before.facts and found.facts.text("balloon") == "virtio"
    assert (before.facts.number("steal_share"), found.facts.number("steal_share")) == (0.1, 0.5)
    assert machine_identity(found) == machine_identity(before)


def test_a_real_machine_has_no_facts_of_a_guest_but_names_its_virtual_functions(tmp_path: Path) -> None:
    tree = guest(tmp_path)
    balloon(tree)
    tree.write("/proc/cpuinfo", cpuinfo_x86(8))
    tree.write("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet acpi_pm")
    tree.write(f"{ADAPTER}/device", "0x101b")
    tree.write("/sys/devices/pci0000:80/0000:80:02.0/sriov_numvfs", 4)
    tree.link(f"{ADAPTER}/physfn", "/sys/devices/pci0000:80/0000:80:02.0")
    found = discover_live(tmp_path)
    assert not found.platform.virtualization and "balloon" not in found.facts and "steal_share" not in found.facts
    attached = {d.name: fact for d in found.devices if (fact := d.facts.best("attachment")) is not None}
    assert list(attached) == ["mlx5_0"] and "physfn (0000:80:02.0)" in attached["mlx5_0"].source


def test_the_devices_of_a_guest_of_qemu_in_its_dump() -> None:
    path = SHARED_DATA / "topology-misread" / "lspci-vv_qemu-2numa-switch-2nvme.txt"
    if not path.exists():
        pytest.skip(f"{path.name} is absent")
    listing = read_lspci_vv(path.read_bytes())
    machine = assemble([listing, Survey("the test", facts=facts(hypervisor="kvm"))])
    ends = (*machine.of_kind(DeviceKind.NIC), *machine.of_kind(DeviceKind.NVME))
    assert [device.facts.text("attachment") for device in ends] == ["paravirtual", "emulated", "emulated"]
    alone = assemble([listing])
    assert alone.facts.text("hypervisor") == "qemu", "its devices show it"
    assert [alone.device(device.id) for device in ends] == list(ends)


def test_nested_containers_are_listed_from_the_outside() -> None:
    signs = tuple(Sign(kind, "the test") for kind in ("apptainer", "docker", "kubernetes", "wsl"))
    found = assemble([Survey("the test", platform=Platform((), signs))])
    assert [sign.kind for sign in found.platform.container] == ["wsl", "kubernetes", "docker", "apptainer"]


_OLD_BRIDGE = "00:00.0 Host bridge: Intel Corporation 440FX - 82441FX PMC [Natoma]"
_V100 = "00:1e.0 3D controller: NVIDIA Corporation GV100GL [Tesla V100 SXM2 16GB] (rev a1)"
_VF = "00:02.0 Ethernet controller: Mellanox Technologies MT27710 Family [ConnectX-4 Lx Virtual Function]"
_ENA = "00:05.0 Ethernet controller: Amazon.com, Inc. Elastic Network Adapter (ENA)"


def listing(*titles: str) -> bytes:
    control = (
        "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx-\n"
    )
    return "".join(f"{title}\n{control}" for title in titles).encode()


@pytest.mark.parametrize(
    ("titles", "expected"),
    [
        ((_OLD_BRIDGE, _ENA, _V100), "kvm"),  # EC2
        ((_OLD_BRIDGE, "00:03.0 Non-VGA unclassified device: Red Hat, Inc. Virtio SCSI", _V100), "kvm"),  # GCE
        (("00:04.0 Ethernet controller: Google, Inc. Compute Engine Virtual Ethernet [gVNIC]",), "kvm"),
        (("00:08.0 VGA compatible controller: Microsoft Corporation Hyper-V virtual VGA", _V100), "hyperv"),
        (
            (  # Azure, second generation: only what is passed through
                "0001:00:00.0 3D controller: NVIDIA Corporation GA100 [A100 SXM4 40GB] (rev a1)",
                f"ae5d:{_VF}",
            ),
            "hyperv",
        ),
        (("00:0f.0 VGA compatible controller: VMware SVGA II Adapter",), "vmware"),
        ((_ENA, _V100), None),  # a bare-metal instance has Amazon's cards, too
        (("00:03.0 Ethernet controller: Red Hat, Inc. Virtio 1.0 network device", _V100), None),  # of a DPU
        ((_OLD_BRIDGE,), None),
        ((f"0001:{_VF}",), None),
    ],
)
def test_clouds_are_recognised_from_lspci(titles: tuple[str, ...], expected: str | None) -> None:
    machine = assemble([read_lspci_vv(listing(*titles))])
    assert machine.facts.text("hypervisor") == expected
    assert bool(machine.platform.virtualization) == (expected is not None)


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("Amazon EC2|m5.24xlarge", "kvm"),
        ("Amazon EC2|m5.metal", None),
        ("Google|Google Compute Engine", "kvm"),
        ("Microsoft Corporation|Virtual Machine", "hyperv"),
        ("Xen|HVM domU", "xen"),
        ("Dell Inc.|PowerEdge R740", None),
    ],
)
def test_clouds_are_recognised_from_dmidecode(product: str, expected: str | None) -> None:
    data = Server(product, [SKYLAKE], dell(12, range(1, 7))).data()
    assert assemble([read_dmidecode(data)]).facts.text("hypervisor") == expected
