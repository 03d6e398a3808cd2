"""/proc/meminfo and a NUMA node's meminfo -> bytes by name (Linux, Documentation/filesystems/proc.rst)."""

from __future__ import annotations

import re

from seatrial.errors import ParseError

_LINE = re.compile(r"(?:Node +\d+ +)?([A-Za-z0-9_()]+): +(\d{1,15})(?: +(kB))?\s*\Z", re.ASCII)


def read_meminfo(text: str) -> dict[str, int]:
    """Name -> bytes; page counts (no unit) stay counts. Raises ParseError for the first line of another form."""
    values: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = _LINE.match(line)
        if match is None:
            raise ParseError("meminfo", number, line)
        values[match[1]] = int(match[2]) * (1024 if match[3] else 1)  # "kB" means KiB here
    return values
