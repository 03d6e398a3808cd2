"""A folder that only we can write to, with a lock, for what outlives the process that made it."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seatrial.errors import SeatrialError


def is_owned(path: Path) -> bool:
    """Whether this is a folder that belongs to root or to this user, and that no other user can write to. Raises
    OSError."""
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid in (0, os.geteuid()) and not found.st_mode & 0o022


@contextmanager
def locked(path: Path, busy: SeatrialError) -> Iterator[None]:
    """Hold the lock of a folder; raises `busy` if another process holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        yield
    finally:
        os.close(descriptor)


def write_synced(path: Path, text: str) -> None:
    """Write a file whole or not at all; on disk when this returns."""
    new = path.with_name(f".{path.name}")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
