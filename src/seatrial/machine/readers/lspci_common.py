"""What both forms of lspci's output share: addresses, and lines as people paste them.

Formats: pciutils 3.x, lspci(8); the samples in the tests were printed by it.
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
"""More than any machine has; a longer listing is hostile, and its functions are compared with one another."""

_MAX_LINES = 1 << 20
_MAX_LINE = 4096
_PREFIX = re.compile(r"(?:[ \t]{0,8}(?:[#>]|&gt;) ?)*")  # "|" is no prefix here: trees begin with it


def read_text(data: bytes, tool: str) -> tuple[Line, ...]:
    """The lines of a text, those that a terminal broke joined.

    Raises ParseError if there are more than `lspci -vvv` prints of any machine.
    """
    lines = read_lines(data, tool)
    if len(lines) > _MAX_LINES:
        raise lines[_MAX_LINES].error(tool, "more lines than lspci prints of any machine")
    return without_breaks(lines, [plain_text(line) for line in lines])


def plain_text(line: Line) -> str:
    """The line without `# ` and `> ` before it, tabs as spaces, no white space at its end; cut at an absurd length."""
    text = line.text[:_MAX_LINE]
    match = _PREFIX.match(text)
    return text[match.end() if match else 0 :].expandtabs(8).rstrip()


def indent_of(text: str) -> int:
    """Spaces before the text."""
    return len(text) - len(text.lstrip(" "))


def make_address(domain: str | None, bus: str, device_function: str) -> str:
    """As sysfs names the function, "0000:41:00.0": lower case, domain 0000 where lspci leaves it out.

    Leading zeros of a domain beyond four digits go, as in "00000000:C1:00.0" of nvidia-smi.
    """
    return f"{make_domain(domain)}:{bus}:{device_function}".lower()


def make_domain(domain: str | None) -> str:
    """At least four hex digits, lower case."""
    return (domain or "0").lower().lstrip("0").rjust(4, "0")


def has_open_bracket(text: str) -> bool:
    """Whether brackets do not pair: no name in the PCI ID database is like that, so the text has been cut."""
    return any(text.count(opening) != text.count(closing) for opening, closing in ("()", "[]"))


def torn_line_number(lines: Sequence[Line]) -> int | None:
    """The number of the line that the file ends in (without a line end): it may have been cut off."""
    return next((line.number for line in lines if not line.is_ended), None)
