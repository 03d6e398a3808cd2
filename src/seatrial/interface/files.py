"""Read files named by the caller."""

from __future__ import annotations

import sys
from pathlib import Path

from seatrial.errors import UsageError

STDIN = "-"


def read_file(path: str | Path, most: int, todo: str) -> bytes:
    """The first `most` + 1 bytes of a file: the extra byte makes its reader reject a file that is too long.

    Raises UsageError, which suggests `todo`, if the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UsageError(f"{str(path)!r} cannot be read: {why}", todo) from error


def read_output(name: str, most: int) -> bytes:
    """The same for the output of another tool; "-" is standard input."""
    if name == STDIN:
        return sys.stdin.buffer.read(most + 1)
    return read_file(name, most, "give the file with the tool's output")
