"""The text of a drawing: names, and the width of letters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_REGULAR = (
    "32 40 46 84 64 95 78 27 39 39 50 84 32 36 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 53 "
    "100 68 69 70 77 63 58 77 75 29 29 66 56 86 75 79 60 79 69 63 61 73 68 99 69 61 69 39 34 39 84 50 "
    "50 61 63 55 63 62 35 63 63 28 28 58 28 97 63 61 63 63 41 52 39 63 59 82 59 59 52 64 34 64 84"
)
_BOLD = (
    "35 46 52 84 70 100 87 31 46 46 52 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 58 "
    "100 77 76 73 83 68 68 82 84 37 37 77 64 100 84 85 73 85 77 72 68 81 77 110 77 72 73 46 37 46 84 50 "
    "50 67 72 59 72 68 44 72 71 34 34 67 34 104 71 69 72 72 49 60 48 71 65 92 65 65 58 71 37 71 84"
)
_FIRST = 32
_OTHERS = {
    "\N{MIDDLE DOT}": 38,
    "\N{MULTIPLICATION SIGN}": 84,
    "\N{EN DASH}": 50,
    "\N{MICRO SIGN}": 74,
    "\N{NO-BREAK SPACE}": 35,
}
_TABLES = {False: [int(w) / 100 for w in _REGULAR.split()], True: [int(w) / 100 for w in _BOLD.split()]}
_BREAKS = re.compile(r"[^ ,_-]*[ ,_-]?")
_NO_BREAK = "\N{NO-BREAK SPACE}"
_QUANTITY = re.compile(r"(?<=[0-9]) (?=[kMGTP]?i?B\b|MT/s)")


@lru_cache(maxsize=1 << 14)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width in the unit of `size`, at least that of a browser."""
    table = _TABLES[bold]
    ems = 0.0
    for character in text:
        place = ord(character) - _FIRST
        ems += table[place] if 0 <= place < len(table) else _OTHERS.get(character, 100) / 100
    return ems * size


def wrap(text: str, room: float, size: float, *, bold: bool = False) -> list[str]:
    """`text` in lines no wider than `room`, whole: a word that is wider is divided. A number is not separated from its
    unit."""
    wrapped: list[str] = []
    current = ""
    for piece in _BREAKS.findall(_QUANTITY.sub(_NO_BREAK, text)):
        if current and text_width((current + piece).rstrip(), size, bold=bold) > room:
            wrapped.append(current)
            current = ""
        *full, current = _divided(current + piece, room, size, bold=bold)
        wrapped += full
    return [line for each in (*wrapped, current) if (line := each.rstrip().replace(_NO_BREAK, " "))]


def _divided(word: str, room: float, size: float, *, bold: bool) -> list[str]:
    """A word in pieces no wider than `room`, of one character at least."""
    if text_width(word.rstrip(), size, bold=bold) <= room:
        return [word]
    pieces: list[str] = []
    start, width = 0, 0.0
    for place, character in enumerate(word):
        wide = text_width(character, size, bold=bold)
        if place > start and width + wide > room:
            pieces.append(word[start:place])
            start, width = place, 0.0
        width += wide
    return [*pieces, word[start:]]


_LONGEST = 200
_NOISE = re.compile(
    r"\((?:R|TM|C|r|tm)\)|[®™]|\b(?:Corporation|Corp\.|Inc\.|Co\., Ltd|Technologies|CPU|Processor)(?=\s|,|$)"
)
_CLOCK = re.compile(r"@ ?[0-9.]{1,8} ?GHz")
_CORES = re.compile(r"\b[0-9]{1,4}-Core\b")
_BRACKET = re.compile(r"\[([^\[\]]{3,60})\]\s*$")
_VENDORS = ("NVIDIA ", "Tesla ", "AMD Instinct ", "Advanced Micro Devices, ", "Mellanox ", "Broadcom ")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})$")


def clean(text: str, longest: int = _LONGEST) -> str:
    """`text` on one line without unprintable characters, cut to a length that a box can show."""
    kept = "".join(character if character.isprintable() else " " for character in text[:longest])
    return " ".join(kept.split())


def model_name(name: str) -> str:
    """A product's name without trade marks, clock and vendor: "Xeon Platinum 8174" keeps "Intel", "A100-SXM4-80GB"."""
    text = clean(name)
    bracket = _BRACKET.search(text)
    if bracket is not None:
        text = bracket[1]
    text = _CORES.sub("", _CLOCK.sub("", _NOISE.sub("", text)))
    for vendor in _VENDORS:
        text = text.removeprefix(vendor)
    return " ".join(text.split()).strip(" ,") or clean(name)


def several(names: Sequence[str]) -> str:
    """As "a", "a, b", "eth0 to eth7" if they are consecutive, else "a, b and 5 more"."""
    spelled = [clean(name) for name in names]
    if len(spelled) <= 2:
        return ", ".join(spelled)
    return _run(spelled) or f"{spelled[0]}, {spelled[1]} and {len(spelled) - 2} more"


def runs(names: Sequence[str]) -> str:
    """All names in their order, consecutive ones as a run: "GPU0 to GPU6, GPU8"."""
    groups: list[list[str]] = []
    for name in map(clean, names):
        if groups and _run([groups[-1][-1], name]) is not None:
            groups[-1].append(name)
        else:
            groups.append([name])
    return ", ".join(f"{group[0]} to {group[-1]}" if len(group) > 2 else ", ".join(group) for group in groups)


def _run(names: Sequence[str]) -> str | None:
    matches = [_NUMBERED.match(name) for name in names]
    parts = [(match[1], int(match[2])) for match in matches if match is not None]
    if len(parts) != len(names) or len({stem for stem, _ in parts}) != 1:
        return None
    numbers = [number for _, number in parts]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return None
    return f"{names[0]} to {names[-1]}"
