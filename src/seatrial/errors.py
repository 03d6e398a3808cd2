"""Every error that seatrial raises on purpose.

    SeatrialError                 one clear message: what was tried, what was seen, what to do next
    ├── UsageError                what was asked cannot be understood (exit 2, before anything runs)
    │   ├── UnknownNameError      no such benchmark, parameter, ...; names the nearest
    │   └── ParseError            a file or dump from outside is damaged (tool, line, text)
    ├── StoreError                the results folder cannot be used or written
    ├── BuildError                a measuring program could not be built
    │   └── NoCompilerError       there is no C++20 compiler at all
    └── ProtocolError             a measuring program broke the protocol

Nothing else should reach the user as a traceback; an exception outside this tree is a defect of seatrial.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class SeatrialError(Exception):
    """Base of all errors above; `str()` is what the user reads."""

    exit_code = 3

    def __init__(self, message: str, todo: str = "") -> None:
        self.message = message
        self.todo = todo
        super().__init__(f"{message}\n  {todo}" if todo else message)


class UsageError(SeatrialError):
    """Bad usage or input, found before anything runs."""

    exit_code = 2


class UnknownNameError(UsageError):
    """A name that seatrial does not know; the message shows the nearest known ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        nearest = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        if not nearest:
            nearest = [known_name for known_name in names if name and name in known_name][:3]
        if nearest:
            todo = "did you mean " + " or ".join(nearest) + "?"
        else:
            todo = "known: " + ", ".join(names) if names else "there are none"
        super().__init__(f"there is no {what} named {name!r}", todo)
        self.name = name
        self.nearest = tuple(nearest)


class ParseError(UsageError):
    """Text from outside that does not have the form it claims.

    Attributes: `tool` (whose format it is), `line` (counted from 1, None for binary data), `text` (that line, whole).
    The message shows the line as it stands in the file, on a line of its own, so that it can be searched for there.
    """

    def __init__(self, tool: str, line: int | None, text: str, why: str = "", file: str = "") -> None:
        self.tool = tool
        self.line = line
        self.text = text
        self.why = why
        place = (f"{file}: " if file else "") + (f"line {line}: " if line is not None else "")
        super().__init__(f"{tool}: {place}{why or 'not understood'}", _printable(text))

    def in_file(self, file: str) -> ParseError:
        """The same error, saying which file it is in."""
        return ParseError(self.tool, self.line, self.text, self.why, file)


_LONGEST_LINE = 20_000


def _printable(text: str) -> str:
    """A line for a terminal: tabs stay, other control characters become "?"; only an absurd length is cut."""
    start = text[:_LONGEST_LINE]
    shown = "".join(character if character.isprintable() or character == "\t" else "?" for character in start)
    return shown if len(text) <= _LONGEST_LINE else f"{shown} ... ({len(text)} characters in all)"


class StoreError(SeatrialError):
    """The results folder cannot be opened, read or written."""


class BuildError(SeatrialError):
    """A measuring program could not be built; `command` and `output` are the evidence.

    `need` says in one word what this machine lacks, where that is why.
    """

    need = ""

    def __init__(self, message: str, todo: str = "", command: tuple[str, ...] = (), output: str = "") -> None:
        super().__init__(message, todo)
        self.command = command
        self.output = output


class NoCompilerError(BuildError):
    """No C++20 compiler was found."""

    need = "compiler"


class ProtocolError(SeatrialError):
    """A measuring program wrote something that the protocol does not allow."""
