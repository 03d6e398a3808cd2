"""Who writes to a results folder: processes that add records share a lock, one that renumbers or removes them has it
alone (docs/adr/0029).

The lock is flock(2) on an empty file in the folder, so it ends with its process, however that ends, and containers that
share the folder see it. On file systems without locks, and in folders that cannot be written, nobody has it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.store.files import opened_folder

_FILE = ".writers"
_LONGEST_WAIT_S = 60.0
_EACH_S = 0.1


class AddsRecords:
    """The shared lock of a process that adds records, until `end`.

    Waits for a merge or drop in the folder. Raises UsageError if that takes longer than a minute.
    """

    def __init__(self, folder: Path) -> None:
        self._file = _opened(folder)
        until = time.monotonic() + _LONGEST_WAIT_S
        try:
            while self._file >= 0 and not _lock(self._file, fcntl.LOCK_SH):
                if time.monotonic() > until:
                    raise UsageError(
                        f"another process merges into {folder}, or drops or restores experiments in it",
                        "wait until it has ended; then start the same command again",
                    )
                time.sleep(_EACH_S)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Release the lock."""
        file, self._file = self._file, -1
        if file >= 0:
            with suppress(OSError):  # a late error of the file system: nothing was written to this file
                os.close(file)

    def __del__(self) -> None:
        self.end()


@contextmanager
def alone(folder: Path) -> Iterator[bool]:
    """The lock of a process that nobody may add records beside; yields whether the file system has locks.

    Raises UsageError if a process adds records.
    """
    file = _opened(folder)
    try:
        if file >= 0 and not _lock(file, fcntl.LOCK_EX):
            raise UsageError(
                f"a run is active in {folder}, or another process changes it", "wait until it ends, and try again"
            )
        yield file >= 0 and _has_locks(file)
    finally:
        if file >= 0:
            os.close(file)


def _opened(folder: Path) -> int:
    """The descriptor of the file; -1 if it cannot be opened, or is not a plain file."""
    usual = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # another user's file may only be readable
        try:
            with opened_folder(folder) as top:
                file = os.open(_FILE, flags | usual, 0o666, dir_fd=top)
        except OSError:
            continue
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
    return -1


def _lock(file: int, kind: int) -> bool:
    """False if another process has the lock; True as well if the file system has no locks."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _has_locks(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # we have it already, if anyone can
    except OSError:
        return False
    return True
