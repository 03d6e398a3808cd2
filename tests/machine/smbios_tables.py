"""SMBIOS structure tables, built byte by byte from DSP0134 for the tests."""

from __future__ import annotations

import struct
from dataclasses import dataclass


def structure(kind: int, handle: int, body: bytes, strings: tuple[str, ...] = ()) -> bytes:
    """One structure: header, formatted part, strings."""
    text = b"".join(s.encode("latin-1") + b"\0" for s in strings) + b"\0"
    return struct.pack("<BBH", kind, 4 + len(body), handle) + body + (text if strings else b"\0\0")


def memory_array(handle: int, slots: int, correction: int = 6) -> bytes:
    """Type 16: an array of system memory."""
    return structure(16, handle, struct.pack("<BBBIHHQ", 3, 3, correction, 0x80000000, 0xFFFE, slots, 4 << 40))


@dataclass
class Dimm:
    """What one slot says."""

    locator: str
    bank: str = "Not Specified"
    size_mib: int = 32768
    memory_type: int = 0x22
    rated: int = 4800
    configured: int = 4400
    rank: int = 2

    def structure(self, handle: int, array: int) -> bytes:
        """Type 17 in the form of SMBIOS 3.3 (92 bytes with header)."""
        size = 0x7FFF if self.size_mib >= 0x7FFF else self.size_mib
        body = struct.pack(
            "<HHHHHBBBBBHHBBBBBIHHHH",
            array, 0xFFFE, 72, 64, size, 0x09, 0, 1, 2, self.memory_type, 0x80, min(self.rated, 0xFFFF),
            3, 4, 5, 6, self.rank, self.size_mib if size == 0x7FFF else 0, min(self.configured, 0xFFFF),
            1100, 1100, 1100,
        )  # fmt: skip
        body += struct.pack("<BHBHHHHQQQQ", 3, 8, 7, 0x2C80, 0, 0, 0, 0, self.size_mib << 20, 0, 0)
        body += struct.pack(
            "<II", self.rated if self.rated >= 0xFFFF else 0, self.configured if self.configured >= 0xFFFF else 0
        )
        return structure(
            17, handle, body, (self.locator, self.bank, "Micron", "SECRET-SERIAL", "SECRET-TAG", "MTC20F", "FW1")
        )


def processor(handle: int, name: str, populated: bool = True) -> bytes:
    """Type 4, as far as SMBIOS 2.3 has it."""
    body = struct.pack("<BBBBQBBHHHBB", 1, 3, 0xB3, 2, 0x0F, 0, 0, 100, 4000, 2000, 0x41 if populated else 0, 0x32)
    body += struct.pack("<HHHBBB", 0xFFFF, 0xFFFF, 0xFFFF, 0, 0, 0)
    return structure(4, handle, body, (name, "Intel"))


def table(dimms: list[Dimm], arrays: int = 1, declared: int | None = None) -> bytes:
    """A whole table: sockets, arrays, slots, end."""
    per_array = (declared if declared is not None else len(dimms)) // arrays
    parts = [processor(0x400 + n, f"CPU{n}") for n in range(2)]
    parts += [memory_array(0x1000 + n, per_array) for n in range(arrays)]
    for n, dimm in enumerate(dimms):
        parts.append(dimm.structure(0x1100 + n, 0x1000 + n * arrays // max(1, len(dimms))))
    return b"".join(parts) + structure(127, 0xFEFF, b"")


def dump(data: bytes) -> bytes:
    """The table in the form that `dmidecode --from-dump` reads: a 64-bit entry point, the table at offset 32."""
    entry = bytearray(struct.pack("<5sBBBBBBBIQ", b"_SM3_", 0, 24, 3, 3, 0, 1, 0, len(data), 32))
    entry[5] = -sum(entry) & 0xFF
    return bytes(entry).ljust(32, b"\0") + data


def slots(sockets: int, channels: int, per_channel: int = 1, **fields: int) -> list[Dimm]:
    """Every slot of some sockets, named as AMD's reference firmware does."""
    return [
        Dimm(f"DIMM {slot}", f"P{socket} CHANNEL {chr(65 + channel)}", **fields)
        for socket in range(sockets)
        for channel in range(channels)
        for slot in range(per_channel)
    ]
