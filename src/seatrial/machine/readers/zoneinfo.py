"""/proc/zoneinfo -> the pages that exist (Linux, Documentation/filesystems/proc.rst; mm/vmstat.c)."""

from __future__ import annotations

import re

_PRESENT = re.compile(r"^ +present +(\d{1,15})$", re.MULTILINE | re.ASCII)


def read_present_pages(text: str) -> int | None:
    """The pages of all zones, with those that the kernel has not initialised yet; None if no zone states them."""
    numbers = [int(number) for number in _PRESENT.findall(text)]
    return sum(numbers) or None
