"""Units and quantities, and durations as text: SI inside, one spelling for each unit; units of the user are labels.

`parse_quantity` reads quantities in study files and on the command line ("64MiB", "2.5GHz", "10min", "1%") and
returns the value in the SI unit. `seatrial.model.spelling` formats values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from seatrial.errors import UsageError, did_you_mean
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Keywords

SIUnit = Literal["s", "B", "B/s", "flop/s", "op/s", "Hz", "W", "J", "flop/J", "op/J", "B/J", "1"]
UNITS: tuple[SIUnit, ...] = ("s", "B", "B/s", "flop/s", "op/s", "Hz", "W", "J", "flop/J", "op/J", "B/J", "1")

_LABEL = r"[A-Za-z%µ][A-Za-z0-9%µ.^*()-]{0,23}(?:/[A-Za-z0-9%µ.^*()-]{1,23}){0,2}"
Unit = Annotated[str, Keywords(pattern=f"^(?:1|{_LABEL})$")]
"""One of UNITS, or the label of a user's figure without its prefix, such as "LUP/s"."""

_THINGS = (
    "atoms?|atom-steps?|bodies|cells?|columns?|cycles?|edges?|elements?|evaluations?|events?|files?|frames?|images?|"
    "inserts?|instructions?|interactions?|iter|iterations?|jobs?|lines?|messages?|nodes?|operations?|ops|packets?|pairs?|"
    "particles?|pixels?|points?|queries|reads?|requests?|rows?|samples?|sequences?|sites?|steps?|tasks?|timesteps?|"
    "tokens?|transactions?|triangles?|updates?|vertices|voxels?|writes?|zones?"
)
_COUNTED = re.compile(rf"(?:[A-Z]{{3,}}[A-Za-z]*|(?:{_THINGS})\b).*")
"""Labels that count something, and so may have a prefix: an abbreviation of three capital letters or more, a word."""
_NOT_A_PREFIX = frozenset({"TEPS"})

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
    "flop/J": ("flop/J", 1.0),
    "op/J": ("op/J", 1.0),
    "B/J": ("B/J", 1.0),
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


def si_unit(unit: Unit) -> SIUnit:
    """The unit of a figure of ours, which is one of UNITS. Raises ValueError for a label."""
    return UNITS[UNITS.index(unit)]


def is_power_or_energy(unit: Unit) -> bool:
    """Whether a figure in this unit is measured with a sensor of power or energy."""
    return unit in ("W", "J") or unit.endswith("/J")


def is_unit(text: str) -> bool:
    """Whether results may have a text as the unit of a figure: it is one without a prefix."""
    try:
        return labelled_unit(text) == (text, 1.0)
    except UsageError:
        return False


def takes_prefix(unit: Unit) -> bool:
    """Whether numbers in this unit are shown with k, M, G, ...: those of UNITS, and labels that count something."""
    return unit in UNITS or _COUNTED.fullmatch(unit) is not None


def labelled_unit(text: str) -> tuple[Unit, float]:
    """The unit that a user names, and what one of it is in the unit without its prefix: "MLUP/s" is 1e6 LUP/s, "GB/s"
    1e9 B/s, "ms" 0.001 s, "ns/day" itself.

    A prefix of a unit that is not in UNITS is one before something counted (`takes_prefix`). Raises UsageError for what
    cannot be a unit, and for another spelling of one.
    """
    if text in UNITS:
        return text, 1.0
    known = _quantity_or_none(f"1 {text}") if text else None
    if known is not None:
        return known.unit, known.value
    if text and (meant := _MEANT_TIMES.get(text.lower()) or _meant_rate(text)):
        raise UsageError(f"the unit {text!r} is unknown", did_you_mean(meant))
    if re.fullmatch(_LABEL, text) is None:
        raise UsageError(
            f"{text!r} is not a unit", f"use one of {', '.join(UNITS)}, or a label such as MLUP/s, ns/day or atoms/s"
        )
    base = text[1:]
    if text[0] in _DECIMAL and text not in _NOT_A_PREFIX and text[0] != "" and _COUNTED.fullmatch(base):
        return base, _DECIMAL[text[0]]
    return text, 1.0


_LABELLED = re.compile(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*(\S+)\s*", re.ASCII)


def labelled_quantity(text: str) -> Quantity:
    """As `parse_quantity`, and numbers with a label: "651 MLUP/s" is 6.51e8 LUP/s. Raises UsageError."""
    found = _LABELLED.fullmatch(text)
    if found is None or _quantity_or_none(text) is not None or re.fullmatch(_LABEL, found[2]) is None:
        return parse_quantity(text)
    unit, factor = labelled_unit(found[2])
    number = _quantity_or_none(found[1])
    return parse_quantity(text) if number is None else Quantity(number.value * factor, unit)


_RATE = re.compile(r"([kKMGTPE]?i?)((?i:flops?|b|bytes?|bits?|ops?))(?i:/s(?:ec(?:ond)?)?|ps)?")


def _meant_rate(text: str) -> tuple[str, ...]:
    """The rates that a text may mean: "GFLOPS" is GFLOP/s, "MB/sec" MB/s; none for others."""
    found = _RATE.fullmatch(text)
    if found is None:
        return ()
    prefix, name = found[1], found[2].lower()
    ends = {"f": ("FLOP/s",), "o": ("op/s",)}.get(name[0], ("bit/s",) if name.startswith("bit") else ("B/s", "bit/s"))
    return tuple(f"{prefix}{end}" for end in ends)


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
