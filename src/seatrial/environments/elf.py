"""What a shared library says of itself in its file, without loading it: its symbols, its SONAME, what it needs.

The file's form is that of the System V ABI (ELF-64 object files, chapters "Program Header" and "Dynamic Section"); the
number of its symbols follows from one of its two hash tables, of which the GNU one is described by U. Drepper, "How To
Write Shared Libraries".
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from seatrial.errors import ParseError

_LARGEST_TABLE_B = 64 << 20
_MOST_HEADERS = 4096
_SHARED_OBJECT = 3
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _HASH, _STRINGS, _SYMBOLS, _STRINGS_SIZE, _SONAME, _GNU_HASH = 1, 4, 5, 6, 10, 14, 0x6FFFFEF5
_SYMBOL = struct.Struct("<IBBHQQ")
_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21, "riscv64": 243}
"""`platform.machine()` -> e_machine."""


@dataclass(frozen=True, slots=True)
class SharedObject:
    """`defined` holds the names of the symbols that others may use of it, `used` those that it uses of others."""

    machine: int
    soname: str
    needed: tuple[str, ...]
    defined: frozenset[str]
    used: frozenset[str]

    def runs_on(self, architecture: str) -> bool:
        """Whether it is for the processors that `platform.machine()` calls so; True for one that we do not know."""
        return _MACHINES.get(architecture, self.machine) == self.machine


def read_shared_object(path: Path) -> SharedObject:
    """The shared library in a file. Raises ParseError for any other content, OSError where it cannot be read."""
    with path.open("rb") as stream:
        try:
            return _Image(stream).shared_object()
        except (struct.error, ValueError, KeyError, OverflowError) as error:
            raise ParseError("ELF", None, str(path), f"this is no shared library ({error})") from error


class _Image:
    """The parts of the file, by the addresses at which they are loaded."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = stream.seek(0, os.SEEK_END)
        self._loads: list[tuple[int, int, int]] = []  # address, offset in the file, size there
        ident = self._at(0, 16)
        if ident[:6] != b"\x7fELF\x02\x01":
            raise ValueError("it is not a little-endian ELF file of 64 bits")
        kind, self._machine, _, _, offset, _, _, _, size, count = struct.unpack("<HHIQQQIHHH", self._at(16, 42))
        if kind != _SHARED_OBJECT or size != 56 or count > _MOST_HEADERS:
            raise ValueError("its header is not that of a shared object")
        dynamic = b""
        for segment, _, at, address, _, in_file, _, _ in struct.iter_unpack("<IIQQQQQQ", self._at(offset, 56 * count)):
            if segment == _LOAD:
                self._loads.append((address, at, in_file))
            elif segment == _DYNAMIC:
                dynamic = self._at(at, in_file // 16 * 16)
        self._entries = list(struct.iter_unpack("<QQ", dynamic))
        self._value = dict(reversed(self._entries))  # the first of each counts
        self._strings = self._loaded(self._value[_STRINGS], self._value[_STRINGS_SIZE])

    def shared_object(self) -> SharedObject:
        defined: set[str] = set()
        used: set[str] = set()
        for name, _, _, section, _, _ in _SYMBOL.iter_unpack(
            self._loaded(self._value[_SYMBOLS], self._symbols() * _SYMBOL.size)
        ):
            (defined if section else used).add(self._string(name))
        return SharedObject(
            self._machine,
            self._string(self._value[_SONAME]) if _SONAME in self._value else "",
            tuple(self._string(value) for tag, value in self._entries if tag == _NEEDED),
            frozenset(defined),
            frozenset(used),
        )

    def _symbols(self) -> int:
        """How many entries the table of symbols has."""
        if _HASH in self._value:
            _, chains = struct.unpack("<II", self._loaded(self._value[_HASH], 8))
            return int(chains)
        table = self._value[_GNU_HASH]
        buckets, first, bloom_words, _ = struct.unpack("<IIII", self._loaded(table, 16))
        chains_at = table + 16 + 8 * bloom_words + 4 * buckets
        last = max(struct.unpack(f"<{buckets}I", self._loaded(chains_at - 4 * buckets, 4 * buckets)), default=0)
        if last < first:
            return int(first)
        while not struct.unpack("<I", self._loaded(chains_at + 4 * (last - first), 4))[0] & 1:  # 1: end of a chain
            last += 1
        return int(last) + 1

    def _string(self, at: int) -> str:
        return self._strings[at : self._strings.index(b"\0", at)].decode("utf-8", "replace")

    def _loaded(self, address: int, size: int) -> bytes:
        """What lies at an address once it is loaded."""
        for start, offset, in_file in self._loads:
            if start <= address < start + in_file:
                return self._at(address - start + offset, size)
        raise ValueError("one of its tables is not in the file")

    def _at(self, offset: int, size: int) -> bytes:
        if size > _LARGEST_TABLE_B:
            raise ValueError(f"one of its tables has {size} bytes")
        if offset + size > self._size:
            raise ValueError("it is cut off")
        self._stream.seek(offset)
        return self._stream.read(size)
