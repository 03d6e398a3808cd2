"""Text output of other tools: strict parsing of lines and numbers.

A number has plain decimal or exponent form. Numbers with commas or units, NaN and infinity are refused: a wrong number
in a record is worse than a file that the user must look at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import cached_property

from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen
from seatrial.model.spelling import half_unit
from seatrial.printable import without_sequences_of_bytes


class Pattern:
    """The pattern of a line, as `re` has it."""

    def __init__(self, text: str, flags: re.RegexFlag = re.NOFLAG) -> None:
        self.text = text
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """What it is compiled to."""
        return re.compile(self.text, self._flags)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """The match of the whole text."""
        return self.compiled.fullmatch(text)

    def match(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The match at `start`."""
        return self.compiled.match(text, start)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The first match."""
        return self.compiled.search(text, start)

    def finditer(self, text: str, start: int = 0) -> Iterator[re.Match[str]]:
        """All matches from `start` on, one after another."""
        return self.compiled.finditer(text, start)

    def sub(self, replacement: str, text: str) -> str:
        """The text with its matches replaced."""
        return self.compiled.sub(replacement, text)


MAX_BYTES = 64 << 20
"""Larger files are refused."""

_MOST = 1e24
"""No rate, time, size or count of any machine reaches this in SI units."""
_LONGEST_NUMBER = 40

_NUMBER = Pattern(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE = Pattern(r"[0-9]{1,18}")


class LogLine(Frozen):
    """One line: its number in the file (from 1) and its text without the line break.

    `tool` is the one that printed it. `is_ended` is False only for a last line that has no line break: it may have been
    cut off.
    """

    tool: str
    number: int
    text: str
    is_ended: bool = True

    @property
    def words(self) -> list[str]:
        """The words between white space."""
        return self.text.split()

    def error(self, why: str) -> ParseError:
        """The error for this line, the first wrong one in a file."""
        return ParseError(self.tool, self.number, self.text, why)

    def number_of(self, token: str, what: str) -> float:
        """`token` as a number above zero. Raises ParseError with this line."""
        value = self.number_or_zero(token, what)
        if value == 0:
            raise self.error(f"{what} is {token}, but must be above zero")
        return value

    def number_or_zero(self, token: str, what: str) -> float:
        """`token` as a number, zero or more. Raises ParseError with this line."""
        value = number(token)
        if value is None:
            raise self.error(f"{what} is {_short(token)}, which is not a plain number")
        if not 0 <= value < _MOST:
            raise self.error(f"{what} is {_short(token)}, which is impossible")
        return value

    def whole_of(self, token: str, what: str, *, least: int = 1) -> int:
        """`token` as a whole number, `least` or more. Raises ParseError with this line."""
        if _WHOLE.fullmatch(token) is None or int(token) < least:
            raise self.error(f"{what} is {_short(token)}, but must be a whole number, at least {least}")
        return int(token)


def read_lines(data: bytes, tool: str) -> list[LogLine]:
    """The lines of a text. Raises ParseError if it is empty, too long or binary."""
    return [
        LogLine(tool, number, text, is_ended)
        for number, (text, is_ended) in enumerate(_split(read_text(data, tool)), start=1)
    ]


def read_text(data: bytes, tool: str) -> str:
    """The text of a file without terminal control sequences. Raises ParseError if it is empty, too long or binary."""
    if len(data) > MAX_BYTES:
        raise ParseError(tool, None, "", f"larger than {MAX_BYTES >> 20} MiB")
    if not data.strip():
        raise ParseError(tool, None, "", "the file is empty")
    if b"\0" in data:
        raise ParseError(tool, None, "", "the file is binary, not text")
    return without_sequences_of_bytes(data).decode("utf-8-sig", "replace")


def _split(text: str) -> Iterable[tuple[str, bool]]:
    """Lines, and whether each has a line break. Only a line feed counts: no other separator may hide a line."""
    parts = text.split("\n")
    for part in parts[:-1]:
        yield part.removesuffix("\r"), True
    if parts[-1]:
        yield parts[-1].removesuffix("\r"), False


def number(token: str) -> float | None:
    """A token as a finite number, or None."""
    if len(token) > _LONGEST_NUMBER or _NUMBER.fullmatch(token) is None:
        return None
    value = float(token)
    return value if math.isfinite(value) else None


def moment_of(text: str, *forms: str) -> datetime | None:
    """The date and time that is written in one of these forms, or None."""
    for form in forms:
        with suppress(ValueError):
            return datetime.strptime(text, form)
    return None


SIX_DIGITS = 1e-5
"""The largest step, as a share of the number, of the six significant digits that C and C++ print by default. They omit
trailing zeros, so a shorter number is as exact."""


def last_digit(token: str) -> float:
    """One unit in the last printed digit, as a share of the number; 0 for zero."""
    value = abs(float(token))
    return 2.0 * half_unit(token) / value if value else 0.0


def is_product(product: float, a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether `product` can be the product of two printed values, each given as (value, rounding error).

    A file that states a rate, a time and the work is redundant: this check detects damage in any of the three.
    """
    (x, dx), (y, dy) = a, b
    slack = 1e-5 * product  # tools compute in double, print in decimal, and some round the work
    return max(0.0, x - dx) * max(0.0, y - dy) - slack <= product <= (x + dx) * (y + dy) + slack


def _short(token: str) -> str:
    return repr(token if len(token) <= _LONGEST_NUMBER else token[:_LONGEST_NUMBER] + "...")
