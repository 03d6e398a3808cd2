"""The SMBIOS structure table (/sys/firmware/dmi/tables/DMI) -> memory modules, memory arrays and sockets.

Format: DMTF DSP0134, System Management BIOS Reference Specification 3.7: 6.1 (structure header and strings), 7.5
(processor, type 4), 7.17 (memory array, type 16), 7.18 (memory device, type 17). Serial numbers and asset tags of
modules are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen

TOOL = "smbios"
MAX_BYTES = 16 << 20

_MEMORY_TYPES = {
    0x12: "DDR", 0x13: "DDR2", 0x14: "DDR2 FB-DIMM", 0x18: "DDR3", 0x1A: "DDR4", 0x1B: "LPDDR", 0x1C: "LPDDR2",
    0x1D: "LPDDR3", 0x1E: "LPDDR4", 0x1F: "Logical non-volatile device", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5",
    0x23: "LPDDR5", 0x24: "HBM3", 0x07: "RAM", 0x0F: "SDRAM", 0x09: "Flash", 0x03: "DRAM",
}  # fmt: skip
_ERROR_CORRECTION = {3: "none", 4: "parity", 5: "single-bit ECC", 6: "multi-bit ECC", 7: "CRC"}

_PERSISTENT_TECHNOLOGIES = frozenset({4, 5, 6, 7})
"""Memory Technology (7.18.6): NVDIMM-N, NVDIMM-F, NVDIMM-P, Intel Optane persistent memory."""

_EMPTY_WORDS = frozenset(
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
        return None if text.lower() in _EMPTY_WORDS else text


class SmbiosModule(Frozen):
    """A memory slot (type 17). `size_bytes` is 0 for an empty slot; rates in MT/s; None is unknown.

    `buffering` is RDIMM, LRDIMM or UDIMM; `is_persistent` marks modules that keep their contents without power;
    `data_bits` is the width of the data bus without the bits for ECC, `total_bits` with them.
    """

    handle: int
    array: int | None
    locator: str
    bank: str
    size_bytes: int | None
    memory_type: str | None
    form_factor: int | None
    rated_MTps: float | None
    configured_MTps: float | None
    rank: int | None
    manufacturer: str | None
    part_number: str | None
    buffering: str | None
    is_persistent: bool
    data_bits: int | None = None
    total_bits: int | None = None


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
    count = 0
    for structure in _structures(table):
        count += 1
        if structure.type == 17:
            modules.append(_module(structure))
        elif structure.type == 16 and structure.byte(0x05) == 3:  # use: system memory
            arrays.append(_array(structure))
        elif structure.type == 4 and (structure.byte(0x18) or 0) & 0x40:  # status bit 6: socket populated
            sockets.append(structure.string(0x04) or f"socket {len(sockets)}")
    if count == 0:
        raise ParseError(TOOL, None, table[:16].hex(), "no structures in the table")
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
            raise ParseError(
                TOOL, None, header.hex(), f"the strings of the structure at offset {offset:#x} are not terminated"
            )
        text = table[offset + length : end]
        strings = tuple(part.decode("latin-1") for part in text.split(b"\0")) if text else ()
        handle = int.from_bytes(header[2:4], "little")
        yield SmbiosStructure(kind, handle, table[offset : offset + length], strings)
        offset = end + 2


def _array(structure: SmbiosStructure) -> SmbiosArray:
    return SmbiosArray(structure.handle, structure.number(0x0D, 2), _ERROR_CORRECTION.get(structure.byte(0x06) or 0))


def _module(structure: SmbiosStructure) -> SmbiosModule:
    attributes = structure.byte(0x1B)
    return SmbiosModule(
        handle=structure.handle,
        array=structure.number(0x04, 2),
        locator=structure.string(0x10) or "",
        bank=structure.string(0x11) or "",
        size_bytes=_size(structure),
        memory_type=_MEMORY_TYPES.get(structure.byte(0x12) or 0),
        form_factor=structure.byte(0x0E),
        rated_MTps=_rate(structure, 0x15, 0x54),
        configured_MTps=_rate(structure, 0x20, 0x58),
        rank=(attributes & 0x0F) or None if attributes is not None else None,
        manufacturer=structure.string(0x17),
        part_number=structure.string(0x1A),
        buffering=_buffering(structure.number(0x13, 2) or 0),
        is_persistent=structure.byte(0x12) == 0x1F
        or bool((structure.number(0x13, 2) or 0) & 0x1000)
        or structure.byte(0x28) in _PERSISTENT_TECHNOLOGIES,
        data_bits=_width(structure.number(0x0A, 2)),
        total_bits=_width(structure.number(0x08, 2)),
    )


def _width(bits: int | None) -> int | None:
    """7.18: 0 and 0xFFFF are unknown (0 with a total width: only ECC)."""
    return None if bits in (None, 0, 0xFFFF) else bits


def _buffering(detail: int) -> str | None:
    """Type Detail (7.18.3): bit 15 LRDIMM, bit 13 registered, bit 14 unbuffered. LRDIMMs may set bit 13 as well."""
    bits = ((0x8000, "LRDIMM"), (0x2000, "RDIMM"), (0x4000, "UDIMM"))
    return next((name for bit, name in bits if detail & bit), None)


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
