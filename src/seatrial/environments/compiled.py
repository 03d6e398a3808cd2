"""The compiler and flags that a program states about itself: read from its ELF file, if it has them.

Sources, in this order: the section .GCC.command.line (gcc and clang with -frecord-gcc-switches), DW_AT_producer of the
debug information (-g; gcc adds the flags, clang only with -grecord-command-line). The section .comment has the compiler
alone. Formats: DWARF 5, 7.5.1 (unit headers), 7.5.3 (abbreviations), 7.5.6 (forms), and DWARF 4.

Only the top entry of each unit is decoded, of at most `_MOST_UNITS`, from slices of the sections: a damaged or hostile
file costs no more, and gives nothing.

The source files of a measuring program, and the headers that GCC has read once for all.

A header of `native/` with a source of the same name beside it (`team.hpp`, `team.cpp`) is a part that is compiled once
and linked with every program that includes it, directly or through another header.

The standard library's headers as GCC has read them, once for all programs: reading them takes a third to a half of
the time of most compilations.

They change nothing in the code that is generated: each source includes what it needs, and is compiled without them if
the compiler does not take them (GCC manual, "Using Precompiled Headers": flags and macros must match).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.environments.asking import once_for_each_file
from seatrial.environments.cached_files import KeptFile, kept_file, make_file, needed_file
from seatrial.environments.elf import read_sections
from seatrial.errors import BuildError, ParseError
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import content_key
from seatrial.store.cache import cache_folder

_INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_EMBEDDED = re.compile(r'^SEATRIAL_EMBEDDED_TEXT\(\w+,\s*"([^"]+)"\)', re.MULTILINE)
_UNTIMED = re.compile(r"^// untimed: (-O[0-3])$", re.MULTILINE)
_NEEDS_MPI = re.compile(r"^\s*#\s*include\s*<mpi\.h>", re.MULTILINE)


class Unit(Frozen):
    """A translation unit: a source with all of our files that it includes, directly or indirectly.

    `digests` holds the SHA-256 of each file by its path (`native/team.hpp`), or by its name if it is elsewhere.
    `embeds`: whether files are embedded in the program (native/device/embedded.hpp). `optimisation`: the flag that the
    source chooses because it is not timed, or an empty string.
    """

    source: Path
    digests: tuple[tuple[str, str], ...]
    parts: tuple[Path, ...]
    needs_mpi: bool
    embeds: bool
    optimisation: str = ""


@cache
def units_of(source: Path, headers: Path) -> tuple[Unit, ...]:
    """The unit of a program's source, then those of the parts that it is linked with, in the order of their names.
    `headers` is the folder of the shared headers.

    Raises BuildError if a file cannot be read. Missing includes are left to the compiler.
    """
    try:
        own = _unit(source, headers)
        parts: dict[Path, Unit] = {}
        waiting = list(own.parts)
        while waiting:
            path = waiting.pop()
            if path not in parts:
                parts[path] = _unit(path, headers)
                waiting += parts[path].parts
    except OSError as error:
        raise BuildError(
            f"the source {error.filename} cannot be read: {error.strerror}", "reinstall seatrial"
        ) from error
    return (own, *(parts[path] for path in sorted(parts)))


def _unit(source: Path, headers: Path) -> Unit:
    contents: dict[Path, bytes] = {}
    waiting = [source]
    needs_mpi = embeds = False
    while waiting:
        path = waiting.pop()
        if path in contents:
            continue
        contents[path] = path.read_bytes()
        text = contents[path].decode("utf-8", "replace")
        embedded = _EMBEDDED.findall(text)
        places = [(path.parent / name, headers / name) for name in (*_INCLUDED.findall(text), *embedded)]
        waiting += [place for both in places if (place := next(filter(Path.is_file, both), None)) is not None]
        needs_mpi |= _NEEDS_MPI.search(text) is not None
        embeds |= bool(embedded)
    beside = {path.with_suffix(".cpp") for path in contents if path.suffix == ".hpp"} - {source}
    digests = {_name(path, headers): hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    parts = tuple(sorted(path for path in beside if path.is_file()))
    chosen = _UNTIMED.search(contents[source].decode("utf-8", "replace"))
    optimisation = "" if chosen is None else chosen[1]
    return Unit(source, tuple(sorted(digests.items())), parts, needs_mpi, embeds, optimisation)


def _name(path: Path, headers: Path) -> str:
    return f"native/{path.relative_to(headers)}" if path.is_relative_to(headers) else path.name


SUFFIX = ".gch"
_PAYS_OFF = 4
"""The fewest compilations for which it pays off: with GCC 12, reading takes 4.9 s, and saves 1.2 s of each."""


def standard_headers(
    source: Path, compiler: Sequence[str], environment: Mapping[str, Any], compilations: int
) -> KeptFile | None:
    """The headers that `source` includes, as GCC reads them with these words; None if the cache has none and there are
    too few compilations to make them. `environment` is the document that identifies the words. Raises BuildError."""
    key = content_key({"environment": environment, "source": hashlib.sha256(source.read_bytes()).hexdigest()})
    place = cache_folder() / "headers" / key / f"{source.name}{SUFFIX}"
    kept = kept_file(place)
    if kept is None and compilations >= _PAYS_OFF:
        make_file((*compiler, "-x", "c++-header", str(source)), place, environment)
        kept = needed_file(place)
    return kept


def with_headers(command: Sequence[str], headers: KeptFile, words: int) -> tuple[str, ...]:
    """The command with these headers after its first `words` words, the compiler and its flags."""
    return (*command[:words], "-include", str(headers.path), *command[words:])


_SECTIONS = (".GCC.command.line", ".comment", ".debug_info", ".debug_abbrev", ".debug_str", ".debug_line_str",
             ".debug_str_offsets")  # fmt: skip
_MOST_B = 32 << 20
_MOST_UNITS = 256
_MOST_WORDS = 400
_LONGEST = 4000
_PRODUCER = 0x25
_NO_FLAGS = ("-g", "-frecord-", "-dumpdir", "-dumpbase", "-fdebug-prefix-map",
             "-ffile-prefix-map", "-fmacro-prefix-map", "-frandom-seed", "-imultiarch", "-iprefix")  # fmt: skip
"""Flags that name files or debug information, not code; some have a value in the next word."""
_WITH_VALUE = frozenset({"-o", "-dumpdir", "-dumpbase", "-dumpbase-ext", "-imultiarch", "-iprefix", "-D", "-U", "-I",
                         "-isystem", "-include", "-x", "-L", "-l"})  # fmt: skip
_SIZES = {0x0B: 1, 0x0C: 1, 0x11: 1, 0x05: 2, 0x12: 2, 0x06: 4, 0x13: 4, 0x07: 8, 0x14: 8, 0x20: 8, 0x1E: 16, 0x19: 0,
          0x21: 0, 0x25: 1, 0x26: 2, 0x27: 3, 0x28: 4, 0x29: 1, 0x2A: 2, 0x2B: 3, 0x2C: 4}  # fmt: skip
"""Form -> its size in bytes, for those that have a fixed one."""
_OFFSETS = frozenset({0x0E, 0x17, 0x1F, 0x10, 0x1D})
"""strp, sec_offset, line_strp, ref_addr, strp_sup: 4 bytes in the 32-bit format, 8 in the 64-bit one."""
_ADDRESS = 0x01
_LEB128 = frozenset({0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23})


class Compilation(Frozen):
    """What a program states: `compiler` such as "GNU C17 12.2.0", `flags` in their order; "" if it does not say. Of a
    program whose parts differ, the most frequent flags, the others after " | "."""

    compiler: str = ""
    flags: str = ""


def compilation_of(path: Path) -> Compilation:
    """What a program states about its compilation; nothing if it is not an ELF file, or cannot be read."""
    try:
        sections = read_sections(path, _SECTIONS, _MOST_B)
    except (OSError, ParseError):
        return Compilation()
    recorded = [line for line in _strings(sections.get(".GCC.command.line", b"")) if line]
    if recorded and not recorded[0].startswith(("GNU ", "clang", "/")) and all(line[0] == "-" for line in recorded):
        recorded = [" ".join(recorded)]  # gcc before 11: a string for each flag
    produced = recorded or list(_producers(sections))
    flags = Counter(_flags(line) for line in produced)
    del flags[""]
    compilers = ["" if line.startswith("-") else line.partition(" -")[0].strip() for line in produced]
    compilers += _strings(sections.get(".comment", b""))
    return Compilation(
        compiler=next(filter(None, compilers), "")[:200],
        flags=" | ".join(text for text, _ in flags.most_common(3))[:_LONGEST],
    )


def _strings(section: bytes) -> Iterator[str]:
    for text in section[: _LONGEST * 16].split(b"\0")[:_MOST_WORDS]:
        shown = "".join(c for c in text.decode("utf-8", "replace") if c.isprintable())
        if shown:
            yield shown[:_LONGEST]


def _flags(line: str) -> str:
    """The flags that shape code."""
    words = line.split()[:_MOST_WORDS]
    kept: list[str] = []
    skip = False
    for number, word in enumerate(words):
        if skip or not word.startswith("-"):
            skip = False
            continue
        value = words[number + 1] if word in _WITH_VALUE and number + 1 < len(words) else None
        skip = value is not None
        if word.startswith(_NO_FLAGS) or word == "-o":
            continue
        kept.append(word if value is None else f"{word} {value}")
    return " ".join(kept)


def _producers(sections: Mapping[str, bytes]) -> Iterator[str]:
    """DW_AT_producer of each compilation unit that can be decoded."""
    info, at = sections.get(".debug_info", b""), 0
    for _ in range(_MOST_UNITS):
        try:
            unit = _Unit(info, at)
            producer = unit.producer(sections)
        except (IndexError, ValueError):
            return
        if producer:
            yield producer
        at = unit.end


class _Unit:
    """The header of a unit in .debug_info. Raises ValueError or IndexError if it is damaged."""

    def __init__(self, info: bytes, at: int) -> None:
        self._info = info
        length = _number(info, at, 4)
        self._offset_B, at = (8, at + 12) if length == 0xFFFFFFFF else (4, at + 4)
        if self._offset_B == 8:
            length = _number(info, at - 8, 8)
        self.end = at + length
        if length < 8 or at >= len(info):
            raise ValueError("no further unit")
        self._version = _number(info, at, 2)
        at += 2
        kind = 1
        if self._version >= 5:
            kind, self._address_B = info[at], info[at + 1]
            self._abbreviations = _number(info, at + 2, self._offset_B)
            at += 2 + self._offset_B
        else:
            self._abbreviations = _number(info, at, self._offset_B)
            self._address_B = info[at + self._offset_B]
            at += self._offset_B + 1
        if kind in (4, 5):  # a skeleton or split unit has its own identifier
            at += 8
        elif kind in (2, 6):  # a type unit has no producer
            at += 8 + self._offset_B
        self._entry = at

    def producer(self, sections: Mapping[str, bytes]) -> str:
        """The producer of the top entry, or ""."""
        code, at = _leb128(self._info, self._entry)
        for attribute, form in _attributes(sections.get(".debug_abbrev", b""), self._abbreviations, code):
            if attribute == _PRODUCER:
                return self._text(sections, form, at)
            at = self._after(form, at)
        return ""

    def _after(self, form: int, at: int) -> int:
        """The offset after a value. Raises ValueError for a form that is unknown."""
        if form in _SIZES:
            return at + _SIZES[form]
        if form in _OFFSETS:
            return at + self._offset_B
        if form == _ADDRESS:
            return at + self._address_B
        if form in _LEB128:
            return _leb128(self._info, at)[1]
        if form == 0x08:
            return self._info.index(b"\0", at) + 1
        if form == 0x18:
            size, at = _leb128(self._info, at)
            return at + size
        raise ValueError(f"unknown form {form:#x}")

    def _text(self, sections: Mapping[str, bytes], form: int, at: int) -> str:
        if form == 0x08:
            return _text_at(self._info, at)
        if form in (0x0E, 0x1F):
            section = ".debug_str" if form == 0x0E else ".debug_line_str"
            return _text_at(sections.get(section, b""), _number(self._info, at, self._offset_B))
        if form in (0x1A, 0x25, 0x26, 0x27, 0x28):
            index = _leb128(self._info, at)[0] if form == 0x1A else _number(self._info, at, form - 0x24)
            # The table of the first unit begins after its header of 8 bytes; a unit with another base is not decoded.
            offset = _number(sections.get(".debug_str_offsets", b""), 8 + index * self._offset_B, self._offset_B)
            return _text_at(sections.get(".debug_str", b""), offset)
        return ""


def _attributes(table: bytes, at: int, wanted: int) -> list[tuple[int, int]]:
    """(attribute, form) of one abbreviation; empty if it is not among the first ones."""
    for _ in range(_MOST_WORDS):
        code, at = _leb128(table, at)
        if code == 0:
            return []
        _, at = _leb128(table, at)
        at += 1
        found: list[tuple[int, int]] = []
        while len(found) < _MOST_WORDS:
            attribute, at = _leb128(table, at)
            form, at = _leb128(table, at)
            if form == 0x21:  # the value is in the table
                _, at = _leb128(table, at)
            if attribute == 0 and form == 0:
                break
            found.append((attribute, form))
        if code == wanted:
            return found
    return []


def _number(data: bytes, at: int, size: int) -> int:
    if at < 0 or at + size > len(data):
        raise IndexError("it is cut off")
    return int.from_bytes(data[at : at + size], "little")


def _leb128(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned number of at most ten bytes, and the offset after it."""
    value = 0
    for k in range(10):
        byte = data[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value, at + k + 1
    raise ValueError("a number is too long")


def _text_at(data: bytes, at: int) -> str:
    if not 0 <= at < len(data):
        return ""
    text = data[at : at + _LONGEST].partition(b"\0")[0].decode("utf-8", "replace")
    return "".join(c for c in text if c.isprintable())


_MOST_PROGRAMS = 8


def with_compilation(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The notes, with `compiler` and `flags` of each of the `programs` that states them. A file is read once."""
    programs = notes.get("programs")
    if not isinstance(programs, Mapping):
        return dict(notes)
    found: dict[str, Any] = {}
    for number, (name, entry) in enumerate(programs.items()):
        path = entry.get("path") if isinstance(entry, Mapping) else None
        stated = _stated(path) if isinstance(path, str) and number < _MOST_PROGRAMS else Compilation()
        said = {key: text for key, text in (("compiler", stated.compiler), ("flags", stated.flags)) if text}
        found[name] = {**entry, **said} if said else entry
    return {**notes, "programs": found}


def _stated(path: str) -> Compilation:
    try:
        return _read(Path(path))
    except (OSError, ValueError):
        return Compilation()


_read = once_for_each_file(compilation_of)
