"""Common to both forms of lspci's output: addresses, pasted and wrapped lines, links and settings of functions.

Formats: pciutils 3.x, lspci(8); the samples in the tests are its output.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.machine.readers.dump import Line, read_lines
from seatrial.machine.readers.lspci_wraps import without_breaks

DOMAIN = r"[0-9a-fA-F]{4,8}"
BUS = r"[0-9a-fA-F]{2}"
DEVICE_FUNCTION = r"[01][0-9a-fA-F]\.[0-7]"

MAX_FUNCTIONS = 1 << 14
"""More than any machine has; a longer listing is hostile input, and the work grows with its square."""

_MAX_LINES = 1 << 20
_MAX_LINE = 4096
_PREFIX = re.compile(r"(?:[ \t]{0,8}(?:[#>]|&gt;) ?)*")  # "|" is no prefix here: trees begin with it


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
