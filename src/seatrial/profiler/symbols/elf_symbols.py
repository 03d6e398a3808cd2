"""The functions that an ELF file names, and where its parts are loaded.

The form is that of the System V ABI, chapters "Section Header", "Symbol Table" and "Program Header" (ELF-64).
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_HEADER = struct.Struct("<HHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LOAD = 1
_SYMBOLS, _DYNAMIC_SYMBOLS = 2, 11
_FUNCTION, _INDIRECT_FUNCTION = 2, 10
_LARGEST_TABLE_B = 512 << 20


@dataclass(frozen=True, slots=True)
class ElfFile:
    """`loads` are (offset in the file, address, bytes) of what is loaded. `starts` ascend and are the addresses of
    functions, `symbols` their (size in bytes, name)."""

    loads: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]
    symbols: tuple[tuple[int, str], ...]

    def address(self, offset: int) -> int | None:
        """The address, before relocation, of what stands at an offset in the file; None if it is not loaded."""
        return next((at + offset - begin for begin, at, size in self.loads if begin <= offset < begin + size), None)


def read_elf(path: Path) -> ElfFile | None:
    """The functions of a program or library; None for any other file, and for one that cannot be read."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as image:
            return _read(image)
    except (OSError, ValueError, OverflowError, struct.error):
        return None


def _read(image: mmap.mmap) -> ElfFile:
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("it is not a little-endian ELF file of 64 bits")
    (_, _, _, _, segments, sections, _, _, size, count, section_size, section_count, _) = _HEADER.unpack_from(image, 16)
    if size != _SEGMENT.size or (section_count and section_size != _SECTION.size):
        raise ValueError("its tables have an unknown form")
    parts = [_SEGMENT.unpack_from(image, segments + k * size) for k in range(count)]
    loads = tuple((offset, address, length) for kind, _, offset, address, _, length, _, _ in parts if kind == _LOAD)
    tables = [_SECTION.unpack_from(image, sections + k * section_size) for k in range(section_count)]
    found: dict[int, tuple[int, str]] = {}
    for kind in (_DYNAMIC_SYMBOLS, _SYMBOLS):  # the full table, where it was not stripped, has the last word
        for section in tables:
            if section[1] == kind:
                found.update(_functions(image, section, tables))
    starts = tuple(sorted(found))
    return ElfFile(loads, starts, tuple(found[start] for start in starts))


def _functions(image: mmap.mmap, section: tuple[int, ...], tables: list[tuple[int, ...]]) -> dict[int, tuple[int, str]]:
    """Address -> (size, name) of the functions that one table of symbols defines."""
    _, _, _, _, offset, length, link, _, _, _ = section
    if link >= len(tables) or length > _LARGEST_TABLE_B or offset + length > len(image):
        raise ValueError("its table of symbols lies outside the file")
    names = tables[link][4]
    found = {}
    for name, info, _, where, value, size in _SYMBOL.iter_unpack(image[offset : offset + length // 24 * 24]):
        if info & 15 in (_FUNCTION, _INDIRECT_FUNCTION) and where:
            end = image.find(b"\0", names + name)
            found[value] = (size, image[names + name : end].decode("utf-8", "replace"))
    return found
