"""Common to both forms of lspci's output (pciutils 3.x, lspci(8)): addresses, and the lines that it printed.

A terminal may have wrapped them at its width. A continuation begins in the first columns, where lspci prints only
addresses and the drawing of a tree. Lines are joined only if the width is proven: no line of the listing is longer, and
several lines of exactly this width are followed by text that cannot begin a line. Text wrapped between words, at
varying widths, stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.machine.readers.dump import Line, read_lines

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


DOMAIN = r"[0-9a-fA-F]{4,8}"
BUS = r"[0-9a-fA-F]{2}"
DEVICE_FUNCTION = r"[01][0-9a-fA-F]\.[0-7]"

MAX_FUNCTIONS = 1 << 14
"""More than any machine has; a longer listing is hostile input, and the work grows with its square."""

_MAX_LINES = 1 << 20
_MAX_LINE = 4096
_PREFIX = re.compile(r"(?:[ \t]{0,8}(?:[#>]|&gt;) ?)*")  # "|" is not a prefix here: trees begin with it


def read_text(data: bytes, tool: str) -> tuple[Line, ...]:
    """The lines of a text; lines wrapped by a terminal are joined.

    Raises ParseError for more lines than `lspci -vvv` prints for any machine.
    """
    lines = read_lines(data, tool)
    if len(lines) > _MAX_LINES:
        raise lines[_MAX_LINES].error(tool, "more lines than lspci prints for any machine")
    return without_breaks(lines, [plain_text(line) for line in lines])


def plain_text(line: Line) -> str:
    """The line without leading `# ` and `> ` and trailing white space, tabs expanded; cut at an absurd length."""
    text = line.text[:_MAX_LINE]
    match = _PREFIX.match(text)
    return text[match.end() if match else 0 :].expandtabs(8).rstrip()


def indent_of(text: str) -> int:
    """The number of leading spaces."""
    return len(text) - len(text.lstrip(" "))


def make_address(domain: str | None, bus: str, device_function: str) -> str:
    """The address as in sysfs, "0000:41:00.0": lower case, domain 0000 if lspci omits it.

    Leading zeros of a domain beyond four digits are removed, as in "00000000:C1:00.0" of nvidia-smi.
    """
    return f"{make_domain(domain)}:{bus}:{device_function}".lower()


def make_domain(domain: str | None) -> str:
    """At least four hex digits, lower case."""
    return (domain or "0").lower().lstrip("0").rjust(4, "0")


def has_open_bracket(text: str) -> bool:
    """Whether brackets are unbalanced: no name in the PCI ID database is, so the text was cut."""
    return any(text.count(opening) != text.count(closing) for opening, closing in ("()", "[]"))


def torn_line_number(lines: Sequence[Line]) -> int | None:
    """The number of a last line without a line break, which may have been cut off."""
    return next((line.number for line in lines if not line.is_ended), None)
