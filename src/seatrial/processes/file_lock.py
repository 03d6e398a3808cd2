"""Locks that end with the process that holds them, however it ends (flock(2))."""

from __future__ import annotations

import fcntl
import time
from typing import IO

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 0.5  # a shared file system is not asked a hundred times a second


def lock(file: int | IO[str], kind: int = fcntl.LOCK_EX, wait_s: float = 0.0) -> bool:
    """False if another process holds the lock for longer than this; True as well if the file system has no locks."""
    until, pause_s = time.monotonic() + wait_s, _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        except OSError:
            return True
        else:
            return True
