"""The width of text without a font: an upper estimate, so that text never leaves its box.

The widths are those of DejaVu Sans regular and bold, in 1/100 of the font size: the widest of the fallback families of
the page. Every other character counts as a full em, which covers East Asian ones.
"""

from __future__ import annotations

import re
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
