"""/etc/os-release -> its fields (os-release(5): shell-like assignments, quoted or not)."""

from __future__ import annotations

import re
import shlex

from seatrial.errors import ParseError

_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)\Z", re.DOTALL)


def read_os_release(text: str) -> dict[str, str]:
    """Field -> value. Raises ParseError for a line that is neither an assignment nor a comment."""
    fields: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line.strip())
        if match is None:
            raise ParseError("os-release", number, line)
        try:
            fields[match[1]] = " ".join(shlex.split(match[2]))
        except ValueError as error:
            raise ParseError("os-release", number, line, "an unclosed quote") from error
    return fields
