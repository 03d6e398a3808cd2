"""Reads the ELF files of programs and shared libraries without loading them.

pyelftools parses the headers. Symbols are unpacked in bulk: one object for each takes 30 times as long. Tables are
slices of the mapped file, so a damaged or hostile header cannot cause more to be read or allocated than the file holds.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen

if TYPE_CHECKING:
    from elftools.construct import Struct

_MOST_READ_B = 256 << 20
"""Limit for the tables and names of one file."""
_COMPRESSED = 0x800
_COMPRESSION = struct.Struct("<IIQQ")
"""ch_type, ch_reserved, ch_size, ch_addralign of a section with the flag SHF_COMPRESSED."""
_ZLIB = 1
_MOST_ENTRIES = 0xFF00
"""Limit for sections, segments or dynamic entries: above it, the format uses extended numbering (object files only)."""
_SYMBOL = struct.Struct("<IBBHQQ")
"""st_name, st_info, st_other, st_shndx, st_value, st_size."""
_FUNCTION, _INDIRECT_FUNCTION = 2, 10
_MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64", "ppc64le": "EM_PPC64", "riscv64": "EM_RISCV"}
"""`platform.machine()` -> e_machine."""


class SharedObject(Frozen):
    """`defined` are the names of the symbols that it exports, `used` those that it imports."""

    machine: str
    soname: str
    needed: tuple[str, ...]
    defined: frozenset[str]
    used: frozenset[str]

    def runs_on(self, architecture: str) -> bool:
        """Whether it is for this value of `platform.machine()`; True for an unknown one."""
        return _MACHINES.get(architecture, self.machine) == self.machine


class Functions(Frozen):
    """`loads` are (offset in the file, address, bytes) of the loaded segments. `starts` are the addresses of functions,
    ascending, `symbols` their (size in bytes, string table, offset of the name in it)."""

    loads: tuple[tuple[int, int, int], ...]
    starts: tuple[int, ...]
    symbols: tuple[tuple[int, bytes, int], ...]

    def address(self, offset: int) -> int | None:
        """The address, before relocation, of an offset in the file; None if it is not loaded."""
        return next((at + offset - begin for begin, at, size in self.loads if begin <= offset < begin + size), None)

    def name(self, address: int) -> str | None:
        """The function whose symbol covers an address; a symbol without a size extends to the next one."""
        place = bisect_right(self.starts, address) - 1
        if place < 0:
            return None
        size, strings, at = self.symbols[place]
        following = self.starts[place + 1] if place + 1 < len(self.starts) else self.starts[place] + 1
        end = self.starts[place] + size if size else following
        return (_string(strings, at) or None) if address < end else None


def read_shared_object(path: Path) -> SharedObject:
    """The shared library in a file. Raises ParseError for any other content, OSError if it cannot be read."""
    with _opened(path) as file:
        if file.elf["e_type"] != "ET_DYN":
            raise ValueError("its header is not that of a shared object")
        defined: set[str] = set()
        used: set[str] = set()
        for symbols, strings in file.symbols("SHT_DYNSYM"):
            for name, is_defined in {(name, section != 0) for name, _, _, section, _, _ in symbols}:
                (defined if is_defined else used).add(file.name(strings, name))
        soname, needed = file.dependencies()
        return SharedObject(str(file.elf["e_machine"]), soname, needed, frozenset(defined), frozenset(used))


def names_in(path: Path) -> tuple[str, tuple[str, ...]]:
    """The name by which a shared library is needed (DT_SONAME; "" for programs), and those of the libraries that it
    needs (DT_NEEDED), as it was linked. Raises ParseError for any other content, OSError if it cannot be read."""
    with _opened(path) as file:
        return file.dependencies()


def read_functions(path: Path) -> Functions:
    """The functions of a program or library, and where its segments are loaded.

    Raises ParseError for any other content, OSError if it cannot be read.
    """
    with _opened(path) as file:
        loads = file.loads()
        found: dict[int, tuple[int, bytes, int]] = {}
        for kind in ("SHT_DYNSYM", "SHT_SYMTAB"):  # the full table comes second and overrides, if not stripped
            for symbols, strings in file.symbols(kind):
                for name, info, _, section, value, size in symbols:
                    if section and info & 15 in (_FUNCTION, _INDIRECT_FUNCTION):
                        found[value] = (size, strings, name)
        starts = tuple(sorted(found))
        return Functions(loads, starts, tuple(found[start] for start in starts))


def read_sections(path: Path, names: Collection[str], most_B: int) -> dict[str, bytes]:
    """Name -> the content of these sections, at most `most_B` bytes of each, decompressed; absent ones are left out.

    Raises ParseError for any other content, OSError if it cannot be read.
    """
    with _opened(path) as file:
        return file.named(names, most_B)


@contextmanager
def _opened(path: Path) -> Iterator[_File]:
    """The tables of a file. Any error caused by its content becomes a ParseError."""
    from elftools.common.exceptions import ELFError

    with path.open("rb") as stream:
        try:
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as image:
                yield _File(image)
        except (ELFError, struct.error, ValueError, LookupError, OverflowError) as error:
            raise ParseError("ELF", None, str(path), f"not a program or shared library ({error})") from error


class _File:
    """The tables of a mapped file."""

    def __init__(self, image: mmap.mmap) -> None:
        from elftools.elf.elffile import ELFFile

        if image[:6] != b"\x7fELF\x02\x01":
            raise ValueError("it is not a little-endian 64-bit ELF file")
        self._image = image
        self._left_B = _MOST_READ_B
        self._stream = cast("IO[bytes]", image)  # it has the methods that pyelftools uses: seek, tell, read
        self.elf = ELFFile(self._stream)
        form = self.elf.structs.Elf_Shdr
        self._sections = self._parsed(form, self.elf["e_shoff"], self.elf["e_shnum"], self.elf["e_shentsize"])

    def loads(self) -> tuple[tuple[int, int, int], ...]:
        """(offset in the file, address, bytes) of the loaded segments."""
        form = self.elf.structs.Elf_Phdr
        parts = self._parsed(form, self.elf["e_phoff"], self.elf["e_phnum"], self.elf["e_phentsize"])
        return tuple((p["p_offset"], p["p_vaddr"], p["p_filesz"]) for p in parts if p["p_type"] == "PT_LOAD")

    def symbols(self, kind: str) -> Iterator[tuple[Iterator[tuple[int, ...]], bytes]]:
        """Each symbol table of one type: its entries as the fields of _SYMBOL, and its string table."""
        for section in self._sections:
            if section["sh_type"] == kind:
                content = self._content(section)
                entries = _SYMBOL.iter_unpack(content[: len(content) // _SYMBOL.size * _SYMBOL.size])
                yield entries, self._strings(section)

    def dependencies(self) -> tuple[str, tuple[str, ...]]:
        """The SONAME ("" if there is none), and the names of needed libraries."""
        form = self.elf.structs.Elf_Dyn
        names: dict[str, list[str]] = {"DT_SONAME": [], "DT_NEEDED": []}
        for section in self._sections:
            if section["sh_type"] == "SHT_DYNAMIC":
                strings = self._strings(section)
                count = section["sh_size"] // form.sizeof()
                for entry in self._parsed(form, section["sh_offset"], count, form.sizeof()):
                    if entry["d_tag"] in names:
                        names[entry["d_tag"]].append(self.name(strings, entry["d_val"]))
        return next(iter(names["DT_SONAME"]), ""), tuple(names["DT_NEEDED"])

    def named(self, names: Collection[str], most_B: int) -> dict[str, bytes]:
        """Name -> the first bytes of each section with one of these names, the first of equal names."""
        index = self.elf["e_shstrndx"]
        if index >= len(self._sections):
            return {}
        strings = self._content(self._sections[index])
        found: dict[str, bytes] = {}
        for section in self._sections:
            name = _string(strings, section["sh_name"])
            if name in names and name not in found and section["sh_type"] != "SHT_NOBITS":
                found[name] = self._first_bytes(section, most_B)
        return found

    def _first_bytes(self, section: Any, most_B: int) -> bytes:
        is_compressed = section["sh_flags"] & _COMPRESSED
        content = self._content(section, 2 * most_B if is_compressed else most_B)
        if not is_compressed:
            return content
        kind, _, _, _ = _COMPRESSION.unpack_from(content)
        if kind != _ZLIB:
            return b""
        try:
            plain = zlib.decompressobj().decompress(content[_COMPRESSION.size :], most_B)
        except zlib.error as error:
            raise ValueError(f"a section cannot be decompressed: {error}") from error
        self._read(len(plain))
        return plain

    def name(self, strings: bytes, at: int) -> str:
        """The string at an offset of a string table; counts towards the limit."""
        text = _string(strings, at)
        self._read(len(text))
        return text

    def _parsed(self, form: Struct, at: int, count: int, step: int) -> list[Any]:
        """`count` headers or entries, `step` bytes apart."""
        from elftools.common.utils import struct_parse

        if count > _MOST_ENTRIES:
            raise ValueError(f"a table has {count} entries, more than {_MOST_ENTRIES}")
        if at + count * step > len(self._image):
            raise ValueError("it is cut off")
        return [struct_parse(form, self._stream, at + k * step) for k in range(count)]

    def _strings(self, section: Any) -> bytes:
        """The string table that a section refers to."""
        if section["sh_link"] >= len(self._sections):
            raise ValueError("a table refers to no string table")
        strings = self._content(self._sections[section["sh_link"]])
        if not strings.endswith(b"\0"):
            raise ValueError("a string table is not terminated")
        return strings

    def _content(self, section: Any, most_B: int = _MOST_READ_B + 1) -> bytes:
        """The first bytes of a section; all of it, or what is too much."""
        begin, size = section["sh_offset"], section["sh_size"]
        if begin + size > len(self._image):
            raise ValueError("it is cut off")
        size = min(size, most_B)
        self._read(size)
        return self._image[begin : begin + size]

    def _read(self, size: int) -> None:
        """Names and tables may overlap, so their sum is limited."""
        self._left_B -= size
        if self._left_B < 0:
            raise ValueError(f"its tables have more than {_MOST_READ_B} bytes")


def _string(strings: bytes, at: int) -> str:
    """The string at an offset of a string table; "" if the offset is outside."""
    return strings[at : strings.find(b"\0", at)].decode("utf-8", "replace")
