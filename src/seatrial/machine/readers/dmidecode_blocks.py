"""dmidecode's text -> its structures, and the values in them.

A structure begins with a "Handle ..." line and its title; with `-q`, with the title alone. It ends at an empty line,
the next structure, or text outside the dump (a fence, a prompt).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from seatrial.machine.readers.dump import Line, is_fence, prefix_of, without_prefix
from seatrial.machine.readers.smbios import EMPTY_WORDS
from seatrial.model.frozen import Frozen

TOOL = "dmidecode"

_HANDLE = re.compile(r"\s*Handle (0x[0-9A-Fa-f]{1,8}), DMI type (\d{1,3}), (\d{1,5}) bytes\.?\s*\Z", re.ASCII)
_HEADER = re.compile(r"\s*#\s{0,4}dmidecode \d{1,3}\.\d{1,4}\b", re.ASCII)
_TABLE_AT = re.compile(r"\s*Table at 0x[0-9A-Fa-f]{1,16}\.", re.ASCII)
_ANNOUNCED = re.compile(r"\s*(\d{1,5}) structures occupying \d{1,9} bytes\.", re.ASCII)
_KEY = re.compile(r"\s*([A-Z][A-Za-z0-9 ()/.'_-]{0,60}):(?:\s(.*))?\Z", re.ASCII | re.DOTALL)
_PROMPT = re.compile(r"(?:\[?[\w.-]{1,64}@[\w.-]{1,64}\b[^#$%>]{0,80})?[#$%](?: .*)?\Z", re.ASCII)

_IDENTITY = frozenset({"Serial Number", "Asset Tag"})
_HIDDEN = re.compile(r"\s*(?:[0-9A-F]{32}|\.\.\.)\s*\Z", re.ASCII)
"""Text below a redacted serial number in published dumps (github.com/linuxhw/DMI)."""

_TITLES = {
    0: "BIOS Information",
    1: "System Information",
    2: "Base Board Information",
    4: "Processor Information",
    16: "Physical Memory Array",
    17: "Memory Device",
}
"""The structures that are parsed, by their type in DSP0134."""
_NAMES = frozenset(_TITLES.values())

_END = "End Of Table"

_STRICT = frozenset({"Physical Memory Array", "Memory Device"})
"""Structures without lists: every line is "Key: value"."""

_ONCE = frozenset({"BIOS Information", "System Information"})


_Read = TypeVar("_Read")


class DmiField(Frozen):
    """The value of a key, stripped, and its line."""

    line: Line
    value: str


class DmiBlock(Struct):
    """One structure. `handle` and `length` are None with `-q`; `items` are the lines other than "Key: value"."""

    title: str
    first: Line
    last: Line
    handle: int | None = None
    length: int | None = None
    fields: dict[str, DmiField] = {}
    items: list[str] = []

    def value(self, key: str) -> str | None:
        """The value of a key, or None."""
        found = self.fields.get(key)
        return found.value if found else None

    def read(self, how: Callable[[DmiField], _Read | None], *keys: str) -> _Read | None:
        """The value of the first of these keys that it has, or None. Raises ParseError as `how` does."""
        found = next((self.fields[key] for key in keys if key in self.fields), None)
        return how(found) if found else None

    def need(self, key: str) -> DmiField:
        """The field of a key. Raises ParseError for a structure without it: it is cut off."""
        found = self.fields.get(key)
        if found is None:
            raise self.last.error(TOOL, f"the dump is cut off: this {self.title} has no {key}")
        return found


class DmiSection(Struct):
    """The text below one header. `is_whole`: it has all types, as its "Table at ..." states; `has_end`: its end is
    present, or dmidecode reports that the table has none; `announced`: the number of structures that it states."""

    begin: int
    blocks: list[DmiBlock] = []
    is_whole: bool = False
    has_end: bool = False
    last: Line | None = None
    announced: int | None = None


class DmiDump(Struct):
    """The structures of one machine, in order, and the line where they begin.

    `handles` are those of all structures before the end of the table, sorted, also of those that are not parsed, and
    `structures` their number; `has_end` and `announced` as in a section, if the dump is exactly one.
    """

    begin: int
    blocks: list[DmiBlock] = []
    handles: list[int] = []
    structures: int = 0
    has_end: bool = False
    announced: int | None = None

    def continues(self, section: Sequence[DmiBlock]) -> bool:
        """Whether a further section (with its own header) may be of the same machine: it has other types."""
        return {block.title for block in self.blocks}.isdisjoint(block.title for block in section)


def split_dumps(lines: Sequence[Line]) -> list[DmiDump]:
    """All dumps of a text. Raises ParseError for a wrong line in a parsed structure."""
    splitter = _Splitter()
    for line in _without_prefixes(lines):
        splitter.read(line)
    splitter.end()
    dumps: list[DmiDump] = []
    for section in splitter.sections:
        if section.is_whole and not section.has_end and section.last is not None:
            raise section.last.error(TOOL, "the dump is cut off: the end of the table is missing")
        if not section.blocks:
            continue
        if dumps and dumps[-1].continues(section.blocks):
            dumps[-1].blocks += section.blocks
            dumps[-1].has_end, dumps[-1].announced = False, None
            continue
        parts = _split_repeats(section.begin, section.blocks)
        if len(parts) == 1:
            parts[0].has_end, parts[0].announced = section.has_end, section.announced
        dumps += parts
    for dump in dumps:
        handles = [b.handle for b in dump.blocks if b.handle is not None and b.title != _END]
        dump.handles, dump.structures = sorted(set(handles)), len(handles)
        dump.blocks = [block for block in dump.blocks if block.title in _NAMES]
        _check_handles(dump)
    return [dump for dump in dumps if dump.blocks]


def _without_prefixes(lines: Sequence[Line]) -> list[Line]:
    """The lines without the prefix of every line of the dump ("> ", "# "); dmidecode's own comments stay."""
    anchors = [line for line in lines if _is_anchor(without_prefix(line.text))]
    counts = Counter(prefix_of(line.text) for line in anchors)
    prefix = counts.most_common(1)[0][0].rstrip() if counts else ""
    if not prefix.strip():
        return list(lines)
    return [
        Line(line.number, line.text[len(prefix) :].removeprefix(" "), line.raw)
        if line.text.startswith(prefix)
        else line
        for line in lines
    ]


def _is_anchor(text: str) -> bool:
    bare = text.strip()
    return bare in _NAMES or (bare.startswith("Handle") and _HANDLE.match(text) is not None)


class _Splitter:
    """Parses line by line into the sections below each header; the text before the first header is one too. `block` is
    the open structure."""

    def __init__(self) -> None:
        self.sections = [DmiSection(1)]
        self.block: DmiBlock | None = None
        self.handle: tuple[Line, int, int, int] | None = None  # line, handle, type, length; its title must follow
        self.has_handles = False

    def read(self, line: Line) -> None:
        text = line.text
        bare = text.strip()  # most lines are fields: testing the first characters avoids the regular expressions
        match = _HANDLE.match(text) if bare.startswith("Handle") else None
        is_header = bare.startswith("#") and _HEADER.match(text) is not None
        is_gap = not bare or is_fence(text)
        if not is_gap and not is_header:
            self.sections[-1].last = line
        self._note(text, bare)
        if match is not None:
            self.end()
            self.handle = (line, int(match[1], 16), int(match[2]), int(match[3]))
            self.has_handles = True
        elif bare.startswith("Handle 0x"):
            raise line.error(TOOL, 'expected "Handle 0x..., DMI type ..., ... bytes"')
        elif is_header:
            self.end()
            self.sections.append(DmiSection(line.number))
        elif self.handle is not None:
            self._title(line)
        elif is_gap:
            self.block = None
        elif not self.has_handles and bare in _NAMES and ":" not in text:
            self._begin(bare, line)
        elif self.block is not None:
            self._content(self.block, line)
        else:
            self._orphan(line)

    def _note(self, text: str, bare: str) -> None:
        """Note whether a line announces a complete table or its end."""
        section = self.sections[-1]
        if bare.startswith("Table at") and _TABLE_AT.match(text):
            section.is_whole = True
        if section.announced is None and not section.blocks and (match := _ANNOUNCED.match(text)) is not None:
            section.announced = int(match[1])
        if "DMI table is broken" in text:
            section.has_end = True

    def end(self) -> None:
        if self.handle is not None and self.handle[2] in _TITLES:
            raise self.handle[0].error(TOOL, "the dump is cut off: nothing follows this handle")
        self.handle, self.block = None, None

    def _title(self, line: Line) -> None:
        handle_line, handle, kind, length = self.handle or (line, 0, -1, 0)
        self.handle = None
        title = line.text.strip()
        if kind in _TITLES and title != _TITLES[kind]:
            raise line.error(TOOL, f'expected the title "{_TITLES[kind]}" of DMI type {kind}')
        if kind not in _TITLES and title in _NAMES:
            raise line.error(TOOL, f"this is not the title of DMI type {kind}")
        self._begin(title, handle_line, handle, length)
        if self.block is not None:
            self.block.last = line

    def _begin(self, title: str, line: Line, handle: int | None = None, length: int | None = None) -> None:
        self.block = DmiBlock(title, line, line, handle, length)
        section = self.sections[-1]
        if not section.blocks and len(self.sections) == 1:
            section.begin = line.number
        section.has_end = section.has_end or title == _END
        section.blocks.append(self.block)

    def _content(self, block: DmiBlock, line: Line) -> None:
        text = line.text
        match = _KEY.match(text)
        if block.title in _STRICT:
            if match is None and _PROMPT.match(text):
                self.block = None
                return
            if match is None and _HIDDEN.match(text) and next(reversed(block.fields), None) in _IDENTITY:
                return
            if match is None:
                raise line.error(TOOL, f'expected "Key: value" in a {block.title}')
            if match[1] in block.fields:
                raise line.error(TOOL, f"{match[1]} occurs twice in one {block.title}")
        if match is not None:
            if block.title in _NAMES and "\t" in (match[2] or ""):
                raise line.error(TOOL, "two joined lines: dmidecode prints no tab inside a value")
            block.fields.setdefault(match[1], DmiField(line, (match[2] or "").strip()))
        else:
            block.items.append(text.strip())
        block.last = line

    def _orphan(self, line: Line) -> None:
        """A line outside structures: prose. Raises ParseError if it belongs to a structure without its first line."""
        if not self.has_handles:
            return
        if line.text[:1] == "\t" and not line.text.startswith("\t\t") and _MEMORY_KEY.match(line.text):
            raise line.error(TOOL, "a line of a Memory Device whose beginning is missing")
        if line.text.strip() in _STRICT and line.text.strip() == line.text.rstrip():
            raise line.error(TOOL, "a structure without its Handle line")


_MEMORY_KEY = re.compile(
    r"\t(?:Array Handle|Total Width|Data Width|Size|Form Factor|Locator|Bank Locator|Type Detail|Rank"
    r"|Configured (?:Memory|Clock) Speed): ",
    re.ASCII,
)


def _split_repeats(begin: int, blocks: Sequence[DmiBlock]) -> list[DmiDump]:
    """Dumps joined without a header: the next one begins where the first handle, or a structure that a dump has only
    once, occurs again."""
    dumps = [DmiDump(begin)]
    for block in blocks:
        current = dumps[-1].blocks
        is_again = bool(current) and block.handle is not None and block.handle == current[0].handle
        is_second = block.handle is None and block.title in _ONCE and any(b.title == block.title for b in current)
        if is_again or is_second:
            dumps.append(DmiDump(block.first.number))
        dumps[-1].blocks.append(block)
    return dumps


def _check_handles(dump: DmiDump) -> None:
    """Raise ParseError if two parsed structures have the same handle."""
    seen: dict[int, int] = {}
    for block in dump.blocks:
        if block.handle is None:
            continue
        if block.handle in seen:
            why = f"the handle {block.handle:#06x} is on line {seen[block.handle]} already"
            raise block.first.error(TOOL, why)
        seen[block.handle] = block.first.number


_EMPTY_WORDS = EMPTY_WORDS | {"<out of spec>", "not provided", "to be filled by o.e.m."}
"""Placeholders of firmware and dmidecode for missing values."""

_UNITS = {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE = re.compile(r"(\d{1,9}) (bytes|[kKMGT]B)\Z", re.ASCII)
_SIZE_WORDS = {"no module installed": 0, "not installed": 0, "none": 0, "unknown": None}
_RATE = re.compile(r"(\d{1,6}) (?:MT/s|MHz)(?: \([\d.]{1,6} ns\))?\Z", re.ASCII)
_WIDTH = re.compile(r"(\d{1,5}) bits\Z", re.ASCII)
_DURATION = re.compile(r"\d{1,6}(?:\.\d{1,3})? ns\Z", re.ASCII)
_RANK = re.compile(r"(\d{1,2})\Z", re.ASCII)
_COUNT = re.compile(r"\d{1,5}\Z", re.ASCII)
_NUMBER = re.compile(r"0x[0-9A-Fa-f]{1,8}\Z")


def read_word(field: DmiField) -> str | None:
    """A text of the firmware; None for a placeholder."""
    return None if field.value.lower() in _EMPTY_WORDS else field.value


def read_size(field: DmiField) -> int | None:
    """Bytes of a module: 0 for an empty slot, None for unknown. A GB is 2**30 bytes, as dmidecode prints it."""
    if field.value.lower() in _SIZE_WORDS:
        return _SIZE_WORDS[field.value.lower()]
    match = _matched(field, _SIZE, 'a size must be like "16 GB", "16384 MB", "No Module Installed" or "Unknown"')
    return int(match[1]) * _UNITS[match[2].lower()]


def read_rate(field: DmiField) -> float | None:
    """Transfer rate in MT/s (old versions print MHz); None if unknown, or a time in ns of older memory."""
    is_time = _DURATION.match(field.value)
    rate = None if is_time else _number(field, _RATE, 'a speed must be like "3200 MT/s", "2933 MHz" or "Unknown"')
    return None if rate is None else float(rate)


def read_width(field: DmiField) -> int | None:
    """Bits of "64 bits"; None if unknown."""
    return _number(field, _WIDTH, 'a width must be like "64 bits" or "Unknown"')


def read_rank(field: DmiField) -> int | None:
    """Ranks of a module, or None."""
    return _number(field, _RANK, "a rank must be a number or Unknown")


def read_count(field: DmiField) -> int:
    """The number of devices."""
    return int(_matched(field, _COUNT, "expected a number of devices")[0])


def read_handle(field: DmiField) -> int | None:
    """The handle of another structure, or None."""
    if field.value.lower() in _EMPTY_WORDS or field.value in ("No Error", "Not Provided"):
        return None
    return int(_matched(field, _NUMBER, 'a handle must be like "0x1000"')[0], 16)


def _number(field: DmiField, pattern: re.Pattern[str], why: str) -> int | None:
    """A number; None if it is 0 or not reported: dmidecode prints a word then, an empty value is a line that is cut
    off."""
    if field.value and field.value.lower() in _EMPTY_WORDS:
        return None
    return int(_matched(field, pattern, why)[1]) or None


def _matched(field: DmiField, pattern: re.Pattern[str], why: str) -> re.Match[str]:
    match = pattern.match(field.value)
    if match is None:
        raise field.line.error(TOOL, why)
    return match
