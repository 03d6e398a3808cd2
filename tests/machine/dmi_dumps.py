"""dmidecode's text, written for the tests: servers by their slots, as dmidecode 3.3 prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

EMPTY = "No Module Installed"

SKYLAKE = ("Intel", "Type 0, Family 6, Model 85, Stepping 4", "Intel(R) Xeon(R) Gold 6142 CPU @ 2.60GHz")
ICE_LAKE = ("Intel", "Type 0, Family 6, Model 106, Stepping 6", "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz")
SAPPHIRE = ("Intel(R) Corporation", "Type 0, Family 6, Model 143, Stepping 8", "INTEL(R) XEON(R) GOLD 6430")
BROADWELL = ("Intel", "Type 0, Family 6, Model 79, Stepping 1", "Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz")
ROME = ("AMD", "Family 23, Model 49, Stepping 0", "AMD EPYC 7742 64-Core Processor")
MILAN = ("Advanced Micro Devices, Inc.", "Family 25, Model 1, Stepping 1", "AMD EPYC 7763 64-Core Processor")
GENOA = ("AMD", "Family 25, Model 17, Stepping 1", "AMD EPYC 9654 96-Core Processor")


@dataclass
class Slot:
    """One slot; `size` as dmidecode writes it."""

    locator: str
    size: str = EMPTY
    bank: str = "Not Specified"
    rank: str = "2"
    detail: str = "Synchronous Registered (Buffered)"
    speed: str = "3200 MT/s"
    configured: str = "2933 MT/s"
    type: str = "DDR4"
    technology: str = "DRAM"


@dataclass
class Server:
    """A whole dump: `processors` are (maker, signature, version), None where a socket is empty."""

    product: str
    processors: Sequence[tuple[str, str, str] | None]
    slots: Sequence[Slot]
    arrays: int = 1
    extra: str = ""
    speed_key: str = "Configured Memory Speed"
    types: frozenset[int] = field(default_factory=lambda: frozenset({0, 1, 4, 16, 17}))

    def text(self) -> str:
        """As `dmidecode` prints it; with fewer `types`, as `dmidecode -t` does."""
        whole = self.types >= {0, 1, 4, 16, 17}
        parts = ["# dmidecode 3.3\nGetting SMBIOS data from sysfs.\nSMBIOS 3.2.1 present.\n"]
        if whole:
            parts[0] += "Table at 0x6942C000.\n"
        parts += [text for kind, text in self._structures() if kind in self.types]
        if whole:
            parts.append("Handle 0xFEFF, DMI type 127, 4 bytes\nEnd Of Table\n")
        return "\n".join(parts) + "\n"

    def data(self) -> bytes:
        """The same as bytes."""
        return self.text().encode()

    def _structures(self) -> list[tuple[int, str]]:
        vendor, _, name = self.product.partition("|")
        bios = "BIOS Information\n\tVendor: ACME\n\tVersion: 1.2.3\n\tRelease Date: 03/09/2020\n\tCharacteristics:\n"
        bios += f"\t\tPCI is supported\n{self.extra}"
        system = f"System Information\n\tManufacturer: {vendor}\n\tProduct Name: {name}\n\tSerial Number: SECRET1\n"
        system += "\tUUID: 4c4c4544-SECRET2\n"
        found = [
            (0, f"Handle 0x0000, DMI type 0, 26 bytes\n{bios}"),
            (1, f"Handle 0x0100, DMI type 1, 27 bytes\n{system}"),
        ]
        found += [(4, _processor(index, cpu)) for index, cpu in enumerate(self.processors)]
        per_array = len(self.slots) // self.arrays
        found += [(16, _array(index, per_array)) for index in range(self.arrays)]
        found += [(17, _slot(i, 0x1000 + i // per_array, slot, self.speed_key)) for i, slot in enumerate(self.slots)]
        return found


def _processor(index: int, cpu: tuple[str, str, str] | None) -> str:
    maker, signature, version = cpu or ("Not Specified", "", "Not Specified")
    lines = [f"Handle 0x{0x400 + index:04X}, DMI type 4, 48 bytes", "Processor Information"]
    lines += [f"\tSocket Designation: CPU{index + 1}", "\tType: Central Processor", f"\tManufacturer: {maker}"]
    if cpu:
        lines += [f"\tSignature: {signature}", "\tFlags:", "\t\tFPU (Floating-point unit on-chip)"]
    lines += [f"\tVersion: {version}", f"\tStatus: {'Populated, Enabled' if cpu else 'Unpopulated'}"]
    return "\n".join([*lines, "\tSerial Number: SECRET3", ""])


def _array(index: int, slots: int) -> str:
    return (
        f"Handle 0x{0x1000 + index:04X}, DMI type 16, 23 bytes\nPhysical Memory Array\n"
        "\tLocation: System Board Or Motherboard\n\tUse: System Memory\n\tError Correction Type: Multi-bit ECC\n"
        f"\tMaximum Capacity: 3 TB\n\tError Information Handle: Not Provided\n\tNumber Of Devices: {slots}\n"
    )


def _slot(index: int, array: int, slot: Slot, speed_key: str) -> str:
    lines = [f"Handle 0x{0x1100 + index:04X}, DMI type 17, 84 bytes", "Memory Device", f"\tArray Handle: 0x{array:04X}"]
    lines += ["\tError Information Handle: Not Provided", "\tTotal Width: 72 bits", "\tData Width: 64 bits"]
    lines += [f"\tSize: {slot.size}", "\tForm Factor: DIMM", "\tSet: None", f"\tLocator: {slot.locator}"]
    lines += [f"\tBank Locator: {slot.bank}"]
    if slot.size == EMPTY:
        return "\n".join([*lines, "\tType: Unknown", "\tType Detail: Unknown", ""])
    lines += [f"\tType: {slot.type}", f"\tType Detail: {slot.detail}", f"\tSpeed: {slot.speed}"]
    lines += ["\tManufacturer: Samsung", "\tSerial Number: SECRET4", "\tAsset Tag: SECRET5"]
    lines += ["\tPart Number: M393A4K40DB3-CWE    ", f"\tRank: {slot.rank}", f"\t{speed_key}: {slot.configured}"]
    return "\n".join([*lines, f"\tMemory Technology: {slot.technology}", ""])


def dell(slots: int, filled: Sequence[int], size: str = "32 GB", sockets: str = "AB", **fields: str) -> list[Slot]:
    """Dell's slots A1 .. and B1 .., those with these numbers filled."""
    return [
        Slot(f"{letter}{n}", size if n in filled else EMPTY, **fields)
        for letter in sockets
        for n in range(1, slots + 1)
    ]


def hpe(slots: int, filled: Sequence[int], size: str = "32 GB", sockets: int = 2, **fields: str) -> list[Slot]:
    """HPE's "PROC 1 DIMM 3"."""
    return [
        Slot(f"PROC {cpu} DIMM {n}", size if n in filled else EMPTY, **fields)
        for cpu in range(1, sockets + 1)
        for n in range(1, slots + 1)
    ]


def lenovo(slots: int, filled: Sequence[int], size: str = "32 GB", sockets: int = 2, **fields: str) -> list[Slot]:
    """Lenovo's "DIMM 3" in bank "CPU 1"; the second processor counts on."""
    return [
        Slot(f"DIMM {cpu * slots + n}", size if n in filled else EMPTY, f"CPU {cpu + 1}", **fields)
        for cpu in range(sockets)
        for n in range(1, slots + 1)
    ]


def channels(names: str, filled: str, size: str = "32 GB", sockets: int = 1, **fields: str) -> list[Slot]:
    """Slots of AMD's reference firmware: bank "P0 CHANNEL A", one to a channel."""
    return [
        Slot("DIMM 0", size if name in filled else EMPTY, f"P{cpu} CHANNEL {name}", **fields)
        for cpu in range(sockets)
        for name in names
    ]
