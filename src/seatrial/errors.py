"""Every error that seatrial raises on purpose.

    SeatrialError                 one clear message: what was tried, what was seen, what to do next
    ├── UsageError                invalid usage or input (exit 2, before anything runs)
    │   ├── UnknownNameError      no such benchmark, parameter, ...; suggests the nearest
    │   ├── PlaceError            a fault in a file that the user wrote (file, line)
    │   └── ParseError            an input file or dump is damaged (tool, line, text)
    ├── StoreError                the results folder cannot be used or written
    ├── BuildError                a measuring program could not be built
    │   └── NoCompilerError       no C++20 compiler was found
    ├── ImageError                a container image could not be made
    ├── ResourceError             a limit of this process on memory, files or threads was reached
    ├── BusyError                 others measure, on this host or into this folder
    └── ProtocolError             a measuring program broke the protocol

An exception outside this tree that reaches the user is a defect of seatrial.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Sequence
from enum import IntEnum

from seatrial.printable import printable


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


_MOST_FAULTS = 20


class PlaceError(UsageError):
    """A fault in a file that the user wrote; `line` counts from 1, None for the whole file. `path`: the keys and
    positions that lead to it. `faults`: all that were found, in the order of the file. The error has the words of the
    first one, and `str()` reports all."""

    def __init__(
        self, file: str, line: int | None, seen: str, todo: str = "", path: tuple[str | int, ...] = ()
    ) -> None:
        super().__init__(f"{file}: line {line}: {seen}" if line is not None else f"{file}: {seen}", todo)
        self.file = file
        self.line = line
        self.path = path
        self.faults: tuple[PlaceError, ...] = (self,)

    @classmethod
    def of(cls, faults: Iterable[PlaceError]) -> PlaceError:
        """One error that reports all of them, each in one line."""
        flat = {str(one): one for fault in faults for one in fault.faults}
        found = sorted(flat.values(), key=lambda fault: fault.line or 0)
        if len(found) == 1:
            return found[0]
        lines = [f"{one.message}; {one.todo}" if one.todo else one.message for one in found[:_MOST_FAULTS]]
        if len(found) > _MOST_FAULTS:
            lines.append(f"and {len(found) - _MOST_FAULTS} more")
        first = found[0]
        whole = cls(first.file, first.line, "", first.todo, first.path)
        whole.message, whole.faults = first.message, tuple(found)
        whole.args = ("\n  ".join([f"{first.file}: {len(found)} errors", *lines]),)
        return whole


_LIKE = 0.5
"""The least similarity of a suggestion (difflib: 2 x matching characters / all characters)."""
_NEARLY_AS_NEAR = 0.05
"""A suggestion is left out if another is nearer by more than this."""
_MOST_NEAREST = 3
_LONGEST_NAME = 200
_MOST_KNOWN = 20
"""Names that are listed if none is near."""


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that `name` probably stands for, the nearest first; empty if none is near.

    A name that differs only in case and separators, or is a whole part of a known name (`stream` of `memory.stream`),
    excludes the others; so does the only one that begins with it.
    """
    names = list(dict.fromkeys(known))
    wanted = _bare(name[:_LONGEST_NAME])
    if not wanted:
        return []
    same = [other for other in names if _bare(other) == wanted]
    if found := same or [other for other in names if wanted in map(_bare, other.split("."))]:
        return found[:_MOST_NEAREST]
    beginning = [other for other in names if _bare(other).startswith(wanted)]
    if len(beginning) == 1 and len(wanted) > 1:
        return beginning
    matcher = difflib.SequenceMatcher()
    matcher.set_seq2(wanted)
    scores = {}
    for other in names:
        matcher.set_seq1(_bare(other))
        if matcher.real_quick_ratio() >= _LIKE and matcher.quick_ratio() >= _LIKE:
            scores[other] = matcher.ratio()
    best = max(scores.values(), default=0.0)
    near = [other for other, score in scores.items() if score >= max(_LIKE, best - _NEARLY_AS_NEAR)]
    nearest = sorted(near, key=lambda other: (-scores[other], other)) or [o for o in names if wanted in _bare(o)]
    return nearest[:_MOST_NEAREST]


def did_you_mean(names: Iterable[str]) -> str:
    """The question that suggests these names."""
    return f"did you mean {' or '.join(names)}?"


def _bare(name: str) -> str:
    """Without what people confuse: case and separators."""
    return "".join(letter for letter in name.casefold() if letter not in "-_. ")


def _known(names: Sequence[str]) -> str:
    """The names that there are, or the first of them."""
    more = f" and {len(names) - _MOST_KNOWN} more" if len(names) > _MOST_KNOWN else ""
    return f"known: {', '.join(names[:_MOST_KNOWN])}{more}" if names else "none are defined"


class UnknownNameError(UsageError):
    """An unknown name; the message suggests the nearest known ones."""

    def __init__(self, what: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        nearest = nearest_names(name, names)
        todo = did_you_mean(nearest) if nearest else _known(names)
        super().__init__(f"unknown {what}{':' if ' ' in what else ''} {name!r}", todo)
        self.name = name
        self.nearest = tuple(nearest)


class ParseError(UsageError):
    """Input text that is not in the format of its tool.

    Attributes: `tool` (whose format it is), `line` (counted from 1, None for binary data), `text` (that line, whole),
    `why`, `file` ("" if it is unknown).
    The message shows the line unchanged, on a separate line, so that it can be searched for in the file.
    """

    def __init__(self, tool: str, line: int | None, text: str, why: str = "", file: str = "") -> None:
        self.tool = tool
        self.line = line
        self.text = text
        self.why = why
        self.file = file
        place = (f"{file}: " if file else "") + (f"line {line}: " if line is not None else "")
        super().__init__(f"{tool}: {place}{why or 'not understood'}", _printable(text))

    def in_file(self, file: str) -> ParseError:
        """The same error with the name of the file."""
        return ParseError(self.tool, self.line, self.text, self.why, file)


_LONGEST_LINE = 1000


def _printable(text: str) -> str:
    """A line for a terminal: tabs stay, other control characters become "?", an extremely long line is cut."""
    start = text[:_LONGEST_LINE]
    shown = printable(start, "\t")
    return shown if len(text) <= _LONGEST_LINE else f"{shown} ... ({len(text)} characters)"


class StoreError(SeatrialError):
    """The results folder cannot be opened, read or written."""


class BuildError(SeatrialError):
    """A measuring program could not be built; `command` and `output` are the evidence.

    `need` is one word for what is missing on this machine; "" if nothing is.
    """

    need = ""

    def __init__(self, message: str, todo: str = "", command: tuple[str, ...] = (), output: str = "") -> None:
        super().__init__(message, todo)
        self.command = command
        self.output = output


class NoCompilerError(BuildError):
    """No C++20 compiler was found."""

    need = "compiler"


class ImageError(SeatrialError):
    """A container image could not be made or read."""


_NO_MEMORY = re.compile(
    r"cannot allocate memory|Out of Memory Error|failed to map segment|std::bad_alloc", re.IGNORECASE
)


def _limit(command: str, name: str, unit: int, of: str) -> str:
    """What is known of a limit, and what to do."""
    import resource

    limit = resource.getrlimit(getattr(resource, name))[0]
    if limit == resource.RLIM_INFINITY:
        return "this process has no limit of its own: the machine or its control group has no more"
    return f"this process may have {limit // unit}{of} ({command}): raise that"


class ResourceError(SeatrialError):
    """Memory, file descriptors or threads do not suffice, by a limit that is set for this process or by our own."""

    @classmethod
    def of(cls, error: BaseException) -> ResourceError | None:
        """The error in these words, with the limit that is in force; None if it is about something else."""
        number, text = getattr(error, "errno", None), str(error)
        if isinstance(error, MemoryError) or number == errno.ENOMEM or _NO_MEMORY.search(text):
            return cls("memory does not suffice", _limit("ulimit -v", "RLIMIT_AS", 1024, " KiB of virtual memory"))
        if number in (errno.EMFILE, errno.ENFILE):
            return cls("too many files are open", _limit("ulimit -n", "RLIMIT_NOFILE", 1, " open files"))
        if number == errno.EAGAIN or "can't start new thread" in text:
            return cls(
                "no process or thread can be started", _limit("ulimit -u", "RLIMIT_NPROC", 1, " processes of this user")
            )
        return None

    @classmethod
    def require_memory(cls, what: str, least_B: int) -> None:
        """Raises ResourceError if the limit on virtual memory is lower: a library may end the process then."""
        import resource

        limit_B = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit_B != resource.RLIM_INFINITY and limit_B < least_B:
            raise cls(
                f"{what} needs {least_B >> 20} MiB of virtual memory",
                _limit("ulimit -v", "RLIMIT_AS", 1024, " KiB of virtual memory"),
            )


class BusyError(SeatrialError):
    """Others still measure, on this host or into the same results folder, after the wait that was asked for."""


class ProtocolError(SeatrialError):
    """A measuring program wrote a record that violates the protocol."""


class Exit(IntEnum):
    """The exit statuses of native programs, as in `native/failure.hpp` (from sysexits.h if one fits). They are here
    since commands of guests, which start often, load this module and little else."""

    OK = 0
    USAGE = 64
    WRONG_CPU = 65
    SOFTWARE = 70
    SYSTEM = 71
    RECORD = 74
    PARENT_GONE = 75
    LAUNCHER = 76
