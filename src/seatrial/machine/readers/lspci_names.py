"""Names that lspci prints instead of numbers: PCI classes, vendors, and devices whose name shows their kind.

lspci takes its names from the PCI ID database (https://pci-ids.ucw.cz, the file pci.ids); classes are those of the PCI
Code and ID Assignment Specification. A name missing here stays unknown: nothing is guessed from similar names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind

UNKNOWN_CLASS = "0000"
"""Stands for the class of a function if the text does not state it (see `PciPart`)."""


def _numbered(file: str) -> Iterator[tuple[str, str]]:
    """The number and the name in each line of a file of this package."""
    for line in resources.files(__package__).joinpath(file).read_text(encoding="utf-8").splitlines():
        number, _, name = line.partition(" ")
        yield number, name


CLASS_BY_NAME = {name.casefold(): number for number, name in _numbered("pci_classes.txt")}
"""Class name as lspci prints it, case-folded (older databases write "USB Controller") -> base class and subclass."""


_VENDORS = tuple(
    sorted(((name, number) for number, name in _numbered("pci_vendors.txt")), key=lambda pair: -len(pair[0]))
)
_RED_HAT_QEMU = re.compile(r"QEMU|QXL")  # Red Hat has two vendor ids; QEMU's own devices use 1b36

_IDS = re.compile(r"(?:(.*) )?\[?\b([0-9a-f]{4}):([0-9a-f]{4})\]?\Z", re.DOTALL)
_UNNAMED = re.compile(r"(.*?) ?\bDevice(?: ([0-9a-f]{4}))?\Z", re.DOTALL)


class PciIdentity(Frozen):
    """Vendor and name of a function, as far as stated; ids have four hex digits."""

    vendor_id: str | None = None
    device_id: str | None = None
    vendor: str | None = None
    name: str | None = None


def read_identity(text: str) -> PciIdentity:
    """Parse lspci's text for vendor and device: names, numbers (-n), or both (-nn).

    "NVIDIA Corporation GA102GL [RTX A6000] [10de:2230]", "10de:2230", "Intel Corporation Device 0998", "Device
    1234:1111". A known vendor name gives the vendor id; with an unknown one, vendor and device cannot be separated and
    `name` is the whole text.
    """
    vendor_id = device_id = None
    ids = _IDS.match(text)
    if ids is not None:
        text, vendor_id, device_id = ids[1] or "", ids[2], ids[3]
    vendor, known_id, name = _split_vendor(text)
    unnamed = _UNNAMED.match(name)
    if unnamed is not None and (not unnamed[1] or (vendor is None and unnamed[2])):
        device_id = device_id or unnamed[2]
        vendor, name = vendor or unnamed[1] or None, ""
    return PciIdentity(vendor_id or known_id, device_id, vendor, name or None)


def _split_vendor(text: str) -> tuple[str | None, str | None, str]:
    for vendor, vendor_id in _VENDORS:
        if text[: len(vendor)].casefold() == vendor.casefold() and text[len(vendor) : len(vendor) + 1] in ("", " "):
            name = text[len(vendor) + 1 :]
            return text[: len(vendor)], "1b36" if vendor_id == "1af4" and _RED_HAT_QEMU.match(name) else vendor_id, name
    return None, None, text


_NVIDIA_SWITCHES = frozenset({"1af1", "22a3"})  # on A100 and H100 boards
_NVIDIA_GPUS = frozenset(
    {
        "1db1", "1db2", "1db3", "1db4", "1db5", "1db6", "1db7", "1db8", "1df5", "1df6", "1eb8", "20b0", "20b1", "20b2",
        "20b3", "20b5", "20b7", "20f1", "20f3", "20f5", "20f6", "2235", "2236", "2237", "25b6", "26b5", "26b9", "27b8",
        "2322", "2324", "2330", "2331", "2336", "2339",
    }
)  # fmt: skip
"""Data centre GPUs, V100 to H100: with an ID database older than the device, lspci prints only its number."""

_AMD_GPUS = frozenset({"66a0", "66a1", "738c", "738e", "7408", "740c", "740f", "74a0", "74a1"})  # Instinct
_MELLANOX_NICS = frozenset(
    {
        "1003", "1004", "1007", "1013", "1014", "1015", "1016", "1017", "1018", "1019", "101a", "101b", "101c", "101d",
        "101e", "101f", "1021", "1023", "a2d2", "a2d6", "a2dc",
    }
)  # fmt: skip

_NVIDIA_GPU = re.compile(
    r"\w{2,8} ?\[(?:GeForce|Quadro|Tesla|RTX|TITAN|GRID|NVS\b|CMP|[ABHLT]\d{1,4}\w?\b|G[BH]\d{3}\b)[^\[\]]*\]\Z"
)
_AMD_GPU = re.compile(r"[^\[\]]*\[[^\[\]]*\b(?:Radeon|Instinct|FirePro)\b[^\[\]]*\]\Z")
_INTEL_GPU = re.compile(r"[^\[\]]*\[Data Center GPU [^\[\]]*\]\Z")
_NO_GPU = re.compile(r"Audio|HDMI|USB|Bridge|Switch|Controller|Port\b|Function", re.IGNORECASE)

_MELLANOX_NIC = re.compile(r"\[ConnectX|\bintegrated\b.*\bnetwork controller\b")
_NO_NIC = re.compile(r"Recovery|Bridge|Management|Switch|Auxiliary|Programmable|Audio|USB|SATA|RAID", re.IGNORECASE)
_NIC = re.compile(
    r"\bEthernet (?:Controller|Connection|(?:Network |Server |Converged Network )?Adapter|Virtual Function)\b"
    r"|\bGigabit Network Connection\b|\bElastic Network Adapter\b|\bOmni-Path HFI\b"
    r"|\bVirtio (?:1\.0 )?network device\b",
    re.IGNORECASE,
)
_NVME = re.compile(r"\bNVMe (?:SSD|EBS)\b|\bNVMe Datacenter SSD\b|\bPCIe Data Center SSD\b|\bNVM Express Controller\b")
_NO_NVME = re.compile(r"RAID|Bridge|Switch|Virtual Function", re.IGNORECASE)


def kind_by_name(identity: PciIdentity) -> DeviceKind | None:
    """The kind of a function, if its ids or name determine it without the class; else None."""
    vendor, device, name = identity.vendor_id, identity.device_id, identity.name or ""
    if vendor == "10de":
        if device in _NVIDIA_SWITCHES or name.endswith("NVSwitch]"):
            return DeviceKind.SWITCH
        if device in _NVIDIA_GPUS or _NVIDIA_GPU.match(name):
            return DeviceKind.GPU
    if vendor == "1002" and (device in _AMD_GPUS or (_AMD_GPU.match(name) and not _NO_GPU.search(name))):
        return DeviceKind.GPU
    if vendor == "8086" and _INTEL_GPU.match(name):
        return DeviceKind.GPU
    is_mellanox = vendor == "15b3" and (device in _MELLANOX_NICS or _MELLANOX_NIC.search(name))
    if (is_mellanox or _NIC.search(name)) and not _NO_NIC.search(name):
        return DeviceKind.NIC
    if _NVME.search(name) and not _NO_NVME.search(name):
        return DeviceKind.NVME
    return None
