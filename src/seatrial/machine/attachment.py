"""How a device reaches the system: emulated, paravirtual, a virtual function of SR-IOV, or passed through to a guest;
and the hypervisor that PCI functions show.

Pure: from ids, drivers and names that other readers found. Ids and names are those of the PCI ID database
(https://pci-ids.ucw.cz), the ids of QEMU's own devices those of its docs/specs/pci-ids.rst, those of virtio of the
Virtual I/O Device specification 1.2, section 4.1.2.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from seatrial.machine.survey import PciPart, merge_facts, one_fact
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import Device, DeviceKind

ATTACHMENT = "attachment"
"""The fact of a device: one of the words below. On a machine that is not virtual, only virtual functions have it."""

EMULATED, PARAVIRTUAL = "emulated", "paravirtual"
VIRTUAL_FUNCTION, PASSED_THROUGH = "virtual function", "passed through"

_KINDS = (DeviceKind.GPU, DeviceKind.NIC, DeviceKind.NVME, DeviceKind.BLOCK)

_VIRTIO = re.compile(r"1af4:10[0-7][0-9a-f]\Z")
"""1000 to 107f of Red Hat's first vendor id; 1100 and 1110 are other devices of QEMU."""

_PARAVIRTUAL_IDS = {
    "15ad:07b0": "VMware's vmxnet3",
    "15ad:07c0": "VMware's pvscsi",
    "1ae0:0042": "Google's gVNIC",
    "1af4:1110": "QEMU's shared memory, ivshmem",
    "5853:0001": "Xen's platform device",
}
_PARAVIRTUAL_DRIVERS = {
    "virtio": "virtio",
    "xen": "Xen",
    "vif": "Xen",
    "vbd": "Xen",
    "hv_": "Hyper-V",
    "netvsc": "Hyper-V",
    "storvsc": "Hyper-V",
    "vmxnet3": "VMware",
    "vmw_pvscsi": "VMware",
    "gve": "Google",
}
"""Beginning of a driver's name -> whose interface it is."""

_EMULATED_IDS = {
    "1013:00b8": "Cirrus Logic GD 5446",
    "1022:2000": "AMD PCnet",
    "10ec:8139": "RTL-8139",
    "1234:1111": "QEMU's standard VGA",
    "15ad:0405": "VMware's SVGA II",
    "80ee:beef": "VirtualBox's graphics",
    "80ee:cafe": "VirtualBox's guest service",
    "1414:5353": "Hyper-V's VGA",
    "1b36:0010": "QEMU's NVMe controller",
    "8086:0d93": "QEMU's CXL memory",
}
"""Devices that guests have only as a program: the chips are gone from servers, or never existed."""

_QEMU = ("1af4", "1100")  # Subsystem of what QEMU emulates under the ids of a real chip.

_VIRTUAL_FUNCTIONS = {
    "8086": ("10ca", "10ed", "1515", "1520", "154c", "1565", "15a8", "15c5", "1889"),
    "15b3": ("1002", "1004", "1012", "1014", "1016", "1018", "101a", "101c", "101e", "a2d3"),
}
"""Vendor (Intel, NVIDIA's ConnectX) -> device ids that its virtual functions alone have."""


def attachment_of(facts: Facts, names: Iterable[str], *, is_virtual: bool) -> tuple[str, str] | None:
    """The attachment of a device and what shows it; None: a device of a real machine, or not known.

    `facts` are those of its PCI function and drivers, `names` what tools call it.
    """
    vendor, device = ((facts.text(name) or "").lower() for name in ("vendor_id", "device_id"))
    ids = f"{vendor}:{device}"
    driver = facts.text("driver") or ""

    def named(pattern: str) -> str | None:
        return next((f"its name ({name})" for name in names if re.search(pattern, name)), None)

    if (parent := facts.best("physical_function")) is not None:
        return VIRTUAL_FUNCTION, f"{parent.source} ({parent.value})"
    if device in _VIRTUAL_FUNCTIONS.get(vendor, ()):
        return VIRTUAL_FUNCTION, f"PCI id {ids}"
    if (why := named("(?i)virtual function")) is not None:
        return VIRTUAL_FUNCTION, why
    if not is_virtual:
        return None
    if _VIRTIO.match(ids):
        return PARAVIRTUAL, f"PCI id {ids} (virtio)"
    if ids in _PARAVIRTUAL_IDS:
        return PARAVIRTUAL, f"PCI id {ids} ({_PARAVIRTUAL_IDS[ids]})"
    if (maker := next((m for begin, m in _PARAVIRTUAL_DRIVERS.items() if driver.startswith(begin)), None)) is not None:
        return PARAVIRTUAL, f"driver {driver} ({maker})"
    if (why := named(r"(?i)\Avirtio")) is not None:
        return PARAVIRTUAL, why
    if ids in _EMULATED_IDS:
        return EMULATED, f"PCI id {ids} ({_EMULATED_IDS[ids]})"
    if (facts.text("subsystem_vendor_id"), facts.text("subsystem_id")) == _QEMU:
        return EMULATED, "PCI subsystem 1af4:1100 (QEMU)"
    if (why := named("QEMU")) is not None:
        return EMULATED, why
    if vendor and device:
        return PASSED_THROUGH, f"PCI id {ids}, of real hardware"
    return None


_OF_A_HYPERVISOR = (
    (r"1b36:|1234:1111|1af4:1110", "QEMU", "qemu"),
    (r"15ad:", "VMware", "vmware"),
    (r"80ee:", "VirtualBox|InnoTek", "virtualbox"),
    (r"1414:5353", "Hyper-V", "hyperv"),
    (r"5853:", "XenSource.* Xen|Xen Platform Device", "xen"),
    (r"1ae0:0042", "Compute Engine Virtual Ethernet", "kvm"),
    (r"1ab8:", "Parallels, Inc", "parallels"),
)
"""Vendor and device, or the name, of what only a hypervisor makes -> the hypervisor. Virtio and Amazon's devices are
not among them: cards in servers present them, too."""

_OLD_CHIPSETS = (("8086:1237", "82441FX", r"1d0f:|1af4:|Amazon\.com|Virtio", "kvm"),)
"""A host bridge of 1996, beside devices that are younger: EC2 (Nitro) and Google Compute Engine."""
_HYPERV_DOMAIN = 0x100
"""Hyper-V derives the PCI domain of a function that it passes through from random bytes (pci-hyperv.c of Linux)."""


def hypervisor_of_pci(parts: Sequence[PciPart]) -> tuple[str, str] | None:
    """The hypervisor that made these PCI functions and the function that shows it; None if none does."""
    described = [(part, *_ids_and_name(part)) for part in parts if ":" in part.address and part.class_id]
    for part, ids, name in described:
        for of_ids, of_name, kind in _OF_A_HYPERVISOR:
            if re.match(of_ids, ids) or re.search(of_name, name):
                return kind, f"PCI function {part.address} ({name or ids})"
    for bridge, bridge_name, younger, kind in _OLD_CHIPSETS:
        old = next((part for part, ids, name in described if ids == bridge or bridge_name in name), None)
        if old is not None and any(re.match(younger, ids) or re.search(younger, name) for _, ids, name in described):
            return kind, f"PCI function {old.address} ({bridge_name}, a chipset of 1996, beside younger devices)"
    for part, _, name in described:
        domain, bus, _ = part.address.split(":") if part.address.count(":") == 2 else ("0", "", "")
        is_function = "Virtual Function" in name or "physical_function" in part.facts
        if is_function and bus == "00" and _HYPERV_DOMAIN <= int(domain, 16) <= 0xFFFF:
            return "hyperv", f"PCI function {part.address} ({name}, in a domain as Hyper-V assigns them)"
    return None


def _ids_and_name(part: PciPart) -> tuple[str, str]:
    ids = ":".join((part.facts.text(name) or "").lower() for name in ("vendor_id", "device_id"))
    return ids, part.facts.text("pci_name") or ""


def with_attachments(devices: Iterable[Device], *, is_virtual: bool) -> tuple[Device, ...]:
    """The devices, those of I/O with the fact `attachment` where it is known."""
    return tuple(_attached(device, is_virtual=is_virtual) for device in devices)


def _attached(device: Device, *, is_virtual: bool) -> Device:
    if device.kind not in _KINDS and not (device.kind is DeviceKind.MEMORY and device.pci is not None):
        return device
    facts = device.facts
    names = [text for text in (facts.text("model_name"), facts.text("pci_name"), device.name) if text]
    found = attachment_of(facts, names, is_virtual=is_virtual)
    return device if found is None else replace(device, facts=merge_facts(facts, one_fact(ATTACHMENT, *found)))
