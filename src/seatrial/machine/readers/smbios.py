"""The SMBIOS structure table (/sys/firmware/dmi/tables/DMI) -> memory modules, memory arrays and sockets.

Format: DMTF DSP0134, System Management BIOS Reference Specification 3.7: 6.1 (structure header and strings), 7.5
(processor, type 4), 7.17 (memory array, type 16), 7.18 (memory device, type 17). Serial numbers and asset tags of
modules are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.errors import ParseError
from seatrial.machine.survey import MemoryModule
from seatrial.model.frozen import Frozen

TOOL = "smbios"
MAX_BYTES = 16 << 20

_MEMORY_TYPES = {
    0x12: "DDR", 0x13: "DDR2", 0x14: "DDR2 FB-DIMM", 0x18: "DDR3", 0x1A: "DDR4", 0x1B: "LPDDR", 0x1C: "LPDDR2",
    0x1D: "LPDDR3", 0x1E: "LPDDR4", 0x1F: "Logical non-volatile device", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5",
    0x23: "LPDDR5", 0x24: "HBM3", 0x07: "RAM", 0x0F: "SDRAM", 0x09: "Flash", 0x03: "DRAM",
}  # fmt: skip
_BUFFERING_BITS = ((0x8000, "LRDIMM"), (0x2000, "RDIMM"), (0x4000, "UDIMM"))
_ERROR_CORRECTION = {3: "none", 4: "parity", 5: "single-bit ECC", 6: "multi-bit ECC", 7: "CRC"}

_PERSISTENT_TECHNOLOGIES = frozenset({4, 5, 6, 7})
"""Memory Technology (7.18.6): NVDIMM-N, NVDIMM-F, NVDIMM-P, Intel Optane persistent memory."""

_VIRTUAL_PRODUCTS = (
    ("kvm", "kvm"), ("qemu", "kvm"), ("vmware", "vmware"), ("virtualbox", "virtualbox"), ("innotek", "virtualbox"),
    ("hvm domu", "xen"), ("virtual machine", "hyperv"), ("google compute engine", "kvm"), ("openstack", "kvm"),
    ("parallels", "parallels"), ("bhyve", "bhyve"), ("xen", "xen"), ("amazon ec2", "kvm"), ("alibaba cloud ecs", "kvm"),
)  # fmt: skip
"""Text in the DMI vendor or product -> hypervisor, as in systemd-detect-virt (src/basic/virt.c)."""


def hypervisor_of(product: str, *, virtual_cpu: bool | None) -> str | None:
    """The hypervisor that the DMI vendor and product name, or None. `virtual_cpu`: whether CPUID shows one, None if
    that is unknown: clouds have bare-metal instances of the same names."""
    text = product.lower()
    if virtual_cpu is False or (virtual_cpu is None and "metal" in text):
        return None
    return next((name for mark, name in _VIRTUAL_PRODUCTS if mark in text), None)


EMPTY_WORDS = frozenset(
    {"", "unknown", "not specified", "no dimm", "none", "n/a", "empty", "not installed", "undefined", "<bad index>"}
)
"""Placeholders of firmware for missing values."""


class SmbiosStructure(Frozen):
    """One structure: its formatted part (header included) and its strings."""

    type: int
    handle: int
    data: bytes
    strings: tuple[str, ...]

    def byte(self, offset: int) -> int | None:
        """The byte at an offset of the formatted part; None if the structure (of an older version) is shorter."""
        return self.data[offset] if offset < len(self.data) else None

    def number(self, offset: int, size: int) -> int | None:
        """The little-endian number of `size` bytes at an offset, or None."""
        return int.from_bytes(self.data[offset : offset + size], "little") if offset + size <= len(self.data) else None

    def string(self, offset: int) -> str | None:
        """The string whose number (from 1) is at an offset, stripped; None for no string or a placeholder."""
        index = self.byte(offset)
        if not index or index > len(self.strings):
            return None
        text = self.strings[index - 1].strip()
        return None if text.lower() in EMPTY_WORDS else text


class SmbiosModule(MemoryModule):
    """A memory slot (type 17) with its handle and that of its array; `is_persistent` marks modules that keep their
    contents without power."""

    handle: int = -1
    array: int | None = None
    is_persistent: bool = False


class SmbiosArray(Frozen):
    """A physical memory array (type 16) that is used as system memory."""

    handle: int
    slots: int | None
    error_correction: str | None


class Smbios(Frozen):
    """The parsed parts of a table. `sockets` are the designations of populated processor sockets."""

    modules: tuple[SmbiosModule, ...]
    arrays: tuple[SmbiosArray, ...]
    sockets: tuple[str, ...]


def read_smbios(table: bytes) -> Smbios:
    """Parse a structure table. Raises ParseError if it is cut off or empty, or a length is impossible."""
    if len(table) > MAX_BYTES:
        raise ParseError(TOOL, None, "", f"larger than {MAX_BYTES >> 20} MiB")
    modules: list[SmbiosModule] = []
    arrays: list[SmbiosArray] = []
    sockets: list[str] = []
    structures = list(_structures(table))
    if not structures:
        raise ParseError(TOOL, None, table[:16].hex(), "no structures in the table")
    for structure in structures:
        if structure.type == 17:
            modules.append(_module(structure))
        elif structure.type == 16 and structure.byte(0x05) == 3:  # use: system memory
            correction = _ERROR_CORRECTION.get(structure.byte(0x06) or 0)
            arrays.append(SmbiosArray(structure.handle, structure.number(0x0D, 2), correction))
        elif structure.type == 4 and (structure.byte(0x18) or 0) & 0x40:  # status bit 6: socket populated
            sockets.append(structure.string(0x04) or f"socket {len(sockets)}")
    return Smbios(tuple(modules), tuple(arrays), tuple(sockets))


def _structures(table: bytes) -> Iterator[SmbiosStructure]:
    offset = 0
    while offset < len(table):
        header = table[offset : offset + 4]
        if len(header) < 4 or header[1] < 4 or offset + header[1] > len(table):
            raise ParseError(TOOL, None, header.hex(), f"a truncated or invalid structure at offset {offset:#x}")
        kind, length = header[0], header[1]
        if kind == 127:  # end of table; what follows is padding
            return
        # The strings follow, each terminated by a zero byte, the list by another one: two zeros if there are none.
        end = table.find(b"\0\0", offset + length)
        if end < 0:
            why = f"the strings of the structure at offset {offset:#x} are not terminated"
            raise ParseError(TOOL, None, header.hex(), why)
        text = table[offset + length : end]
        strings = tuple(part.decode("latin-1") for part in text.split(b"\0")) if text else ()
        yield SmbiosStructure(kind, int.from_bytes(header[2:4], "little"), table[offset : offset + length], strings)
        offset = end + 2


def _module(structure: SmbiosStructure) -> SmbiosModule:
    detail = structure.number(0x13, 2) or 0
    return SmbiosModule(
        handle=structure.handle,
        array=structure.number(0x04, 2),
        locator=structure.string(0x10) or "",
        bank=structure.string(0x11) or "",
        size_bytes=_size(structure),
        memory_type=_MEMORY_TYPES.get(structure.byte(0x12) or 0),
        rated_MTps=_rate(structure, 0x15, 0x54),
        configured_MTps=_rate(structure, 0x20, 0x58),
        rank=(structure.byte(0x1B) or 0) & 0x0F or None,
        manufacturer=structure.string(0x17),
        part_number=structure.string(0x1A),
        # Type Detail (7.18.3): LRDIMMs may set the bit of registered modules as well.
        buffering=next((name for bit, name in _BUFFERING_BITS if detail & bit), None),
        is_persistent=structure.byte(0x12) == 0x1F
        or bool(detail & 0x1000)
        or structure.byte(0x28) in _PERSISTENT_TECHNOLOGIES,
        data_bits=_width(structure.number(0x0A, 2)),
        total_bits=_width(structure.number(0x08, 2)),
    )


def _width(bits: int | None) -> int | None:
    """7.18: 0 and 0xFFFF are unknown (0 with a total width: only ECC)."""
    return None if bits in (None, 0, 0xFFFF) else bits


def _size(structure: SmbiosStructure) -> int | None:
    """7.18.4: 0 empty, 0xFFFF unknown, 0x7FFF see the extended size in MiB, bit 15 KiB instead of MiB."""
    size = structure.number(0x0C, 2)
    if size is None or size == 0xFFFF:
        return None
    if size == 0x7FFF:
        extended = structure.number(0x1C, 4)
        return (extended & 0x7FFFFFFF) << 20 if extended is not None else None
    return (size & 0x7FFF) << 10 if size & 0x8000 else size << 20


def _rate(structure: SmbiosStructure, offset: int, extended_offset: int) -> float | None:
    """7.18.4: MT/s; 0 unknown, 0xFFFF see the extended field."""
    rate = structure.number(offset, 2)
    if rate == 0xFFFF:
        extended = structure.number(extended_offset, 4)
        rate = extended & 0x7FFFFFFF if extended is not None else None
    return float(rate) if rate else None
