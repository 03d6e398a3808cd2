"""Read files named by the caller."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

from seatrial.errors import UsageError, did_you_mean, nearest_names

STDIN = "-"


def read_file(path: str | Path, most: int, todo: str, what: str = "") -> bytes:
    """The first `most` + 1 bytes of a file: the extra byte makes its reader reject a file that is too long.

    Raises UsageError, which says `what` it is ("the site file ") and suggests `todo`, if the file cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        near = _files_like(Path(path)) if isinstance(error, FileNotFoundError) else []
        raise UsageError(f"{what}{str(path)!r} cannot be read: {why}", did_you_mean(near) if near else todo) from error


_MOST_ENTRIES = 10_000


def _files_like(path: Path) -> list[str]:
    """The files beside a missing one whose names are similar; those of the same kind before others."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_ENTRIES) if entry.is_file()]
    except OSError:
        return []
    near = [name for name in names if _similar(name, path)]
    return [str(path.parent / name) for name in nearest_names(path.name, near) if name.isprintable()]


def _similar(name: str, path: Path) -> bool:
    """Whether a file may be meant: the ending is one of the same kind, or the missing file has none."""
    return path.suffix in ("", Path(name).suffix) or {path.suffix, Path(name).suffix} <= {".yaml", ".yml"}


def read_output(name: str, most: int) -> bytes:
    """The same for the output of another tool; "-" is standard input."""
    if name == STDIN:
        return sys.stdin.buffer.read(most + 1)
    return read_file(name, most, "give the file with the tool's output")
