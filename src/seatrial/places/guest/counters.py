"""What the kernel of a guest counts around a program: CPU time that its host gave to others, and its memory."""

from __future__ import annotations

import json
import re
from pathlib import Path

SEEN = "guest.json"
"""The file in the folder of a repeat."""
STATE = ("cat", "/proc/stat", "/proc/meminfo")
"""Prints what is read here."""
_TICKS_PER_S = 100
"""USER_HZ, which Linux has fixed on x86."""
_STEAL = re.compile(rb"^cpu(?: +\d+){7} +(\d+)", re.MULTILINE)
_MEMORY = re.compile(rb"^MemTotal: +(\d+) kB$", re.MULTILINE)
_KEYS = frozenset({"steal_s", "memory_before_B", "memory_after_B"})


def write_counters(directory: Path, before: bytes, after: bytes) -> None:
    """Keep what changed between two outputs of `STATE`. Raises OSError."""
    found: dict[str, float] = {}
    steal = [match and int(match[1]) for match in (_STEAL.search(before), _STEAL.search(after))]
    if steal[0] is not None and steal[1] is not None:
        found["steal_s"] = max(0, steal[1] - steal[0]) / _TICKS_PER_S
    for name, text in (("memory_before_B", before), ("memory_after_B", after)):
        if (match := _MEMORY.search(text)) is not None:
            found[name] = int(match[1]) * 1024
    (directory / SEEN).write_text(json.dumps(found))


def guest_counters(directory: Path) -> dict[str, float]:
    """What was kept; {} if nothing was, or it is damaged."""
    try:
        found = json.loads((directory / SEEN).read_bytes())
        return {name: float(value) for name, value in found.items() if name in _KEYS}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}
