"""The small notations of sysfs and procfs: CPU lists and masks, sizes, bracketed choices, PCIe speeds."""

from __future__ import annotations

import re

from seatrial.errors import ParseError

MAX_CPUS = 1 << 16
"""More CPUs than Linux supports (NR_CPUS is at most 8192): a longer list is damaged and must not fill memory."""

_SIZE = re.compile(r"(\d{1,18})([KMG]?)\Z", re.ASCII)
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6})/(\d{1,6}))?)?\Z", re.ASCII)
_WORD = re.compile(r"(?:0x)?([0-9a-fA-F]{1,8})\Z", re.ASCII)
_SPEED = re.compile(r"(\d{1,3}(?:\.\d{1,2})?) ?GT/s(?: PCIe)?\Z", re.ASCII)


def read_cpu_list(text: str) -> tuple[int, ...]:
    """The numbers of "0-3,8,10-20:2/5" (Linux cpulist), sorted; "" means no CPUs. Raises ParseError."""
    numbers: set[int] = set()
    for item in text.strip().split(","):
        if not item.strip():
            continue
        match = _RANGE.match(item.strip())
        if match is None:
            raise ParseError("cpulist", 1, text.strip(), "not a list of CPU numbers")
        first, last = int(match[1]), int(match[2] or match[1])
        used, group = int(match[3] or 1), int(match[4] or 1)
        if last < first or last >= MAX_CPUS or not 1 <= used <= group:
            raise ParseError("cpulist", 1, text.strip(), "a range that is reversed or too long")
        for start in range(first, last + 1, group):
            numbers.update(range(start, min(start + used, last + 1)))
    return tuple(sorted(numbers))


def write_cpu_list(numbers: tuple[int, ...] | frozenset[int]) -> str:
    """The shortest Linux cpulist of these numbers: "0-3,8"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def read_cpu_mask(text: str) -> frozenset[int]:
    """The numbers of a mask of 32-bit words, highest first ("0x00000001,0xffffffff", "ff,ffffffff"). Raises ParseError.

    Also accepts hwloc's infinite mask ("0xf...f": no particular CPU, an empty set) and an empty word inside
    ("0x1,,0x3": a zero word in old hwloc).
    """
    stripped = text.strip()
    if stripped.startswith("0xf...f"):
        return frozenset()
    words = stripped.split(",")
    if len(words) * 32 > MAX_CPUS:
        raise ParseError("cpumask", 1, stripped[:200], "the mask is too long")
    numbers: set[int] = set()
    for position, word in enumerate(reversed(words)):
        if not word and len(words) > 1:
            continue
        match = _WORD.match(word)
        if match is None:
            raise ParseError("cpumask", 1, stripped[:200], "not a mask of CPUs")
        value = int(match[1], 16)
        numbers.update(position * 32 + bit for bit in range(32) if value >> bit & 1)
    return frozenset(numbers)


def read_size(text: str) -> int:
    """Bytes of "32K", "1024K", "16M", "1G" (binary prefixes, as sysfs writes cache sizes). Raises ParseError."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise ParseError("sysfs", 1, text.strip(), "not a size")
    return int(match[1]) * _SCALE[match[2]]


def read_choice(text: str) -> str:
    """The chosen word of "always [madvise] never"; a single word is the choice. Raises ParseError."""
    chosen = re.findall(r"\[([^\[\]\s]+)\]", text)
    if len(chosen) == 1:
        return str(chosen[0])
    words = text.split()
    if not chosen and len(words) == 1 and "[" not in text and "]" not in text:
        return words[0]
    raise ParseError("sysfs", 1, text.strip(), "not one choice in brackets")


def read_link_speed(text: str) -> float | None:
    """GT/s of "16.0 GT/s PCIe"; None for "Unknown" and any other text. Never fails."""
    match = _SPEED.match(text.strip())
    value = float(match[1]) if match else 0.0
    return value or None
