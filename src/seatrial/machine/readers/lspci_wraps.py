"""Listings whose lines a terminal wrapped at its width -> the lines that lspci printed.

A continuation begins in the first columns, where lspci prints only addresses and the drawing of a tree. Lines are
joined only if the width is proven: no line of the listing is longer, and several lines of exactly this width are
followed by text that cannot begin a line. Text wrapped between words, at varying widths, stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.machine.readers.dump import Line

_BEGINS_FUNCTION = re.compile(r" {0,3}(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7][ /]")
_BEGINS_TREE = re.compile(r" {0,3}-(?:\+-)?\[")
_CONTINUES = re.compile(r" {0,3}(?!```|~~~|[|\\]|\+-|-\[|-\+-)\S")
_WIDTHS = range(60, 300)
_MIN_FULL = 2
_MAX_SPACES = 2  # lost at the end of a line: lspci prints no more consecutive spaces inside a line


def without_breaks(lines: Sequence[Line], texts: Sequence[str]) -> tuple[Line, ...]:
    """The lines, wrapped ones joined; `texts` are the same lines without prefixes, tabs and trailing spaces.

    A joined line has the number of its first piece.
    """
    inside = _inside(texts)
    width = max((len(text) for text, known in zip(texts, inside, strict=True) if known), default=0)
    broken = [
        number
        for number in range(1, len(texts))
        if inside[number] and inside[number - 1] and _is_piece(texts[number], texts[number - 1], width)
    ]
    full = sum(1 for number in broken if len(texts[number - 1]) == width)
    if width not in _WIDTHS or full < _MIN_FULL:
        return tuple(lines)
    pieces = set(broken)
    result: list[Line] = []
    for number, line in enumerate(lines):
        if number in pieces:
            missing = " " * (width - len(texts[number - 1]))
            result[-1] = replace(result[-1], text=result[-1].text + missing + texts[number], is_ended=line.is_ended)
        else:
            result.append(replace(line, text=texts[number]) if number + 1 in pieces else line)
    return tuple(result)


def _inside(texts: Sequence[str]) -> list[bool]:
    """For each line, whether it is below the first line of a function or tree, without a blank line between."""
    inside: list[bool] = []
    is_inside = False
    for text in texts:
        is_inside = bool(text) and (is_inside or bool(_BEGINS_FUNCTION.match(text) or _BEGINS_TREE.match(text)))
        inside.append(is_inside)
    return inside


def _is_piece(text: str, before: str, width: int) -> bool:
    return (
        width - _MAX_SPACES <= len(before) <= width
        and _CONTINUES.match(text) is not None
        and _BEGINS_FUNCTION.match(text) is None
    )
