"""Durations as text: rounded, as people say them, and as an option takes them."""

from __future__ import annotations

import math

_UNITS = ((86400.0, "days", "d"), (3600.0, "h", "h"), (60.0, "min", "min"))


def duration(seconds: float) -> str:
    """A duration in its unit: "48 s", "4 min", "3 h", "2 days"; below two of a unit in the next smaller one."""
    seconds = max(0.0, seconds)
    for size_s, unit, _ in _UNITS:
        if seconds >= 2 * size_s:
            return f"{seconds / size_s:.0f} {unit}"
    return f"{seconds:.0f} s"


def budget_for(seconds: float) -> str:
    """The least round budget that is not less, as an option takes it: "50s", "4min", "3h"."""
    for size_s, _, unit in _UNITS[1:]:
        if seconds > 2 * size_s:
            return f"{math.ceil(seconds / size_s)}{unit}"
    return f"{math.ceil(seconds / 5.0) * 5}s"
