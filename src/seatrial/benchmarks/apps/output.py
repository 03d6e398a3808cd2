"""Text printed by an application: lines, and numbers, which must be plain numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from seatrial.errors import ProtocolError

_LARGEST_B = 16 << 20
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_WHOLE = re.compile(r"[0-9]{1,15}")
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf)(?:\([a-z-]{0,9}\))?", re.IGNORECASE)


class Text:
    """The lines of one application's output; what is wrong with them is a ProtocolError that names the application."""

    def __init__(self, application: str, data: bytes) -> None:
        self._application = application
        if len(data) > _LARGEST_B or b"\0" in data:
            raise self.error("it is not text, or too large for the output of a run")
        self.lines = [line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")]

    def error(self, why: str) -> ProtocolError:
        """The error that this output is not understood."""
        return ProtocolError(f"cannot read {self._application}'s output: {why}")

    def found(self, pattern: re.Pattern[str], lines: Iterable[str] | None = None) -> list[re.Match[str]]:
        """The lines that this pattern matches as a whole, white space at their ends left out."""
        searched = self.lines if lines is None else lines
        return [match for line in searched if (match := pattern.fullmatch(line.strip())) is not None]

    def only(self, pattern: re.Pattern[str], what: str, lines: Iterable[str] | None = None) -> re.Match[str]:
        """The one line of this pattern. Raises ProtocolError where there is none, or another one."""
        matches = self.found(pattern, lines)
        if len(matches) != 1:
            raise self.error(f"it has {len(matches) or 'no'} lines with {what}, expected one")
        return matches[0]

    def number(self, token: str, what: str) -> float:
        """A token as a finite number."""
        if _NUMBER.fullmatch(token) is None or abs(value := float(token)) == float("inf"):
            raise self.error(f"{what} is {token[:40]!r}, which is not a number")
        return value

    def number_or_none(self, token: str, what: str) -> float | None:
        """A token as a number; None where the application says that its own result is none (nan, inf)."""
        return None if _NOT_FINITE.fullmatch(token) else self.number(token, what)

    def whole(self, token: str, what: str) -> int:
        """A token as a whole number from 0 on."""
        if _WHOLE.fullmatch(token) is None:
            raise self.error(f"{what} is {token[:40]!r}, which is not a whole number")
        return int(token)


def rounding(token: str) -> float:
    """Half a unit in the last place of a plain decimal: how far the true value may be from the printed one."""
    mantissa, _, exponent = token.lower().partition("e")
    return float(0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))


def is_near(value: float, other: float, slacks: Sequence[float]) -> bool:
    """Whether two numbers are equal but for these relative roundings, and a little for what was rounded inside."""
    return abs(value - other) <= (sum(slacks) + 1e-6) * max(abs(value), abs(other))
