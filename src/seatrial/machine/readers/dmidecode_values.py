"""Values in dmidecode's text: sizes, rates, counts, words. Each function raises ParseError with the line."""

from __future__ import annotations

import re

from seatrial.machine.readers.dmidecode_blocks import TOOL, Field

_EMPTY_WORDS = frozenset(
    {
        *("", "unknown", "not specified", "no dimm", "none", "n/a", "empty", "not installed", "undefined"),
        *("<bad index>", "<out of spec>", "not provided", "to be filled by o.e.m."),
    }
)
"""Placeholders of firmware and dmidecode for missing values."""

_UNITS = {"bytes": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}
_SIZE = re.compile(r"(\d{1,9}) (bytes|[kKMGT]B)\Z", re.ASCII)
_RATE = re.compile(r"(\d{1,6}) (?:MT/s|MHz)(?: \([\d.]{1,6} ns\))?\Z", re.ASCII)
_WIDTH = re.compile(r"(\d{1,5}) bits\Z", re.ASCII)
_DURATION = re.compile(r"\d{1,6}(?:\.\d{1,3})? ns\Z", re.ASCII)


def read_word(field: Field) -> str | None:
    """A text of the firmware; None for a placeholder."""
    return None if field.value.lower() in _EMPTY_WORDS else field.value


def read_size(field: Field) -> int | None:
    """Bytes of a module: 0 for an empty slot, None for unknown. A GB is 2**30 bytes, as dmidecode prints it."""
    value = field.value.lower()
    if value in ("no module installed", "not installed", "none"):
        return 0
    if value == "unknown":
        return None
    match = _SIZE.match(field.value)
    if match is None:
        raise field.line.error(TOOL, 'a size must be like "16 GB", "16384 MB", "No Module Installed" or "Unknown"')
    return int(match[1]) * _UNITS[match[2].lower()]


def read_rate(field: Field) -> float | None:
    """Transfer rate in MT/s (old versions print MHz); None if unknown, or a time in ns of older memory."""
    if _is_unknown(field) or _DURATION.match(field.value):
        return None
    match = _RATE.match(field.value)
    if match is None:
        raise field.line.error(TOOL, 'a speed must be like "3200 MT/s", "2933 MHz" or "Unknown"')
    return float(match[1]) or None


def read_width(field: Field) -> int | None:
    """Bits of "64 bits"; None if unknown."""
    if _is_unknown(field):
        return None
    match = _WIDTH.match(field.value)
    if match is None:
        raise field.line.error(TOOL, 'a width must be like "64 bits" or "Unknown"')
    return int(match[1]) or None


def read_rank(field: Field) -> int | None:
    """Ranks of a module, or None."""
    if _is_unknown(field):
        return None
    return _whole(field, 2, "a rank must be a number or Unknown") or None


def read_count(field: Field) -> int:
    """The number of devices."""
    return _whole(field, 5, "expected a number of devices")


def read_handle(field: Field) -> int | None:
    """The handle of another structure, or None."""
    if field.value.lower() in _EMPTY_WORDS or field.value in ("No Error", "Not Provided"):
        return None
    if not re.fullmatch(r"0x[0-9A-Fa-f]{1,8}", field.value):
        raise field.line.error(TOOL, 'a handle must be like "0x1000"')
    return int(field.value, 16)


def _is_unknown(field: Field) -> bool:
    """Whether a number is not reported. dmidecode prints a word then: an empty value is a line that is cut off."""
    return bool(field.value) and field.value.lower() in _EMPTY_WORDS


def _whole(field: Field, digits: int, why: str) -> int:
    if not (field.value.isascii() and field.value.isdecimal() and len(field.value) <= digits):
        raise field.line.error(TOOL, why)
    return int(field.value)
