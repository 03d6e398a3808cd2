"""Files that a caller names."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.errors import UsageError

STDIN = "-"


def read_file(path: str | Path, most: int, todo: str) -> bytes:
    """What a file holds: at most one byte more than its reader takes, so that an endless file ends in an error. Raises
    UsageError where it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{str(path)!r} cannot be read: {why}", todo) from error


def read_output(name: str, most: int) -> bytes:
    """The same of another tool's output; "-" is standard input."""
    if name == STDIN:
        return sys.stdin.buffer.read(most + 1)
    return read_file(name, most, "give the file with the tool's output")
