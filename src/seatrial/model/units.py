"""Units and quantities, and durations as text: SI inside, one spelling for each unit.

`parse_quantity` reads quantities in study files and on the command line ("64MiB", "2.5GHz", "10min", "1%") and
returns the value in the SI unit. `seatrial.model.spelling` formats values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from seatrial.errors import UsageError, did_you_mean
from seatrial.model.frozen import Frozen

Unit = Literal["s", "B", "B/s", "flop/s", "op/s", "Hz", "W", "J", "1"]

UNITS: tuple[Unit, ...] = ("s", "B", "B/s", "flop/s", "op/s", "Hz", "W", "J", "1")

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_TIMES = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

_BASES: dict[str, tuple[Unit, float]] = {
    "B": ("B", 1.0),
    "bit": ("B", 1 / 8),
    "B/s": ("B/s", 1.0),
    "bit/s": ("B/s", 1 / 8),
    "flop/s": ("flop/s", 1.0),
    "FLOP/s": ("flop/s", 1.0),
    "op/s": ("op/s", 1.0),
    "Hz": ("Hz", 1.0),
    "W": ("W", 1.0),
    "J": ("J", 1.0),
}

_NUMBER_AND_SUFFIX = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-zµ%/]*)\s*\Z", re.ASCII)
_PREFIXED = re.compile(r"(Ki|Mi|Gi|Ti|Pi|[kKMGTPE]?)(" + "|".join(sorted(_BASES, key=len, reverse=True)) + r")\Z")


LARGEST_COUNT = 2**53
"""The largest integer up to which a double, and thus a number in JSON, represents every integer exactly."""


class Quantity(Frozen):
    """A number in an SI unit."""

    value: float
    unit: Unit


def parse_quantity(text: str) -> Quantity:
    """The quantity that `text` states, in SI units.

    A plain number has the unit "1"; "%" is 0.01. Decimal prefixes are powers of 1000 and binary ones (Ki, Mi, ...)
    powers of 1024, as in IEC 80000-13. Raises UsageError on anything else.
    """
    match = _NUMBER_AND_SUFFIX.match(text.replace("\N{MICRO SIGN}", "µ"))
    if match is None:
        raise UsageError(f"{text!r} is not a quantity", "write a number and a unit, such as 64MiB, 2.5GHz, 10min or 1%")
    number, suffix = float(match[1]), match[2]
    if suffix == "":
        return Quantity(number, "1")
    if suffix == "%":
        return Quantity(number / 100.0, "1")
    if suffix in _TIMES:
        return Quantity(number * _TIMES[suffix], "s")
    prefixed = _PREFIXED.match(suffix)
    if prefixed is None:
        raise UsageError(
            f"{text!r} has the unknown unit {suffix!r}",
            f"use one of {', '.join(UNITS)} with k, M, G, T or Ki, Mi, Gi, Ti before it; ns, us, ms, s, min, h; or %",
        )
    scale = _BINARY[prefixed[1]] if prefixed[1] in _BINARY else _DECIMAL[prefixed[1]]
    unit, per_base = _BASES[prefixed[2]]
    return Quantity(number * scale * per_base, unit)


def parse_seconds(text: str) -> float:
    """A duration in seconds, at least 0 ("20s", "5min"); a number without a unit is refused."""
    quantity = _quantity_or_none(text)
    if quantity is None or quantity.unit != "s" or not 0 <= quantity.value < float("inf"):
        raise UsageError(
            f"{text!r} is not a duration", _suggestion(text, _MEANT_TIMES) or "write a time such as 90s, 5min or 1h"
        )
    return quantity.value


def parse_bytes(text: str) -> int:
    """An integer number of bytes, at least 0 ("64MiB", "1GB", "4096")."""
    quantity = _quantity_or_none(text)
    is_size = (
        quantity is not None
        and quantity.unit in ("B", "1")
        and "%" not in text
        and 0 <= quantity.value <= LARGEST_COUNT
        and quantity.value == int(quantity.value)
    )
    if quantity is None or not is_size:
        raise UsageError(
            f"{text!r} is not a size in bytes",
            _suggestion(text, _MEANT_SIZES) or "write a whole number of bytes up to 2^53, such as 4096, 64KiB or 1GB",
        )
    return int(quantity.value)


def parse_share(text: str) -> float:
    """A share strictly between 0 and 1, given as "2%" or 0.02."""
    quantity = _quantity_or_none(text)
    if quantity is None or quantity.unit != "1" or not 0 < quantity.value < 1:
        is_percent = quantity is not None and quantity.unit == "1" and 1 <= quantity.value < 100 and "%" not in text
        todo = did_you_mean([f"{text.strip()}%"]) if is_percent else "write a percentage such as 2%"
        raise UsageError(f"{text!r} is not a share between 0 % and 100 %", todo)
    return quantity.value


def _quantity_or_none(text: str) -> Quantity | None:
    try:
        return parse_quantity(text)
    except UsageError:
        return None


_MEANT_TIMES = {
    **dict.fromkeys(("second", "seconds", "secs"), ("s",)),
    **dict.fromkeys(("minute", "minutes", "mins", "m", "mn"), ("min",)),
    **dict.fromkeys(("hour", "hours", "hr", "hrs"), ("h",)),
    **dict.fromkeys(("day", "days"), ("d",)),
    **dict.fromkeys(("msec", "millisecond", "milliseconds"), ("ms",)),
    **dict.fromkeys(("usec", "microsecond", "microseconds"), ("us",)),
    "": ("s", "min"),
} | {unit.lower(): (unit,) for unit in _TIMES}
"""What people write, in lower case -> the units that they may mean."""

_MEANT_SIZES = {
    **{
        f"{prefix.lower()}{end}": (f"{prefix}B", f"{prefix}iB") for prefix in "KMGTP" for end in ("", "b", "bs", "byte")
    },
    **{f"{prefix.lower()}i{end}": (f"{prefix}iB",) for prefix in "KMGTP" for end in ("", "b", "bs", "byte")},
    **dict.fromkeys(("b", "byte", "bytes"), ("B",)),
}


def _suggestion(text: str, meant: Mapping[str, tuple[str, ...]]) -> str:
    """The question that suggests the number with the units that may be meant; "" if none is known."""
    match = _NUMBER_AND_SUFFIX.match(text)
    units = () if match is None or match[1].startswith("-") else meant.get(match[2].lower(), ())
    return did_you_mean(f"{match[1]}{unit}" for unit in units) if match is not None and units else ""


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
