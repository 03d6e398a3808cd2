"""Locks that end with the process that holds them, however it ends (flock(2))."""

from __future__ import annotations

import fcntl
import time
from typing import IO

_LOOK_AGAIN_S = 0.01


def lock(file: int | IO[str], kind: int = fcntl.LOCK_EX, wait_s: float = 0.0) -> bool:
    """False if another process holds the lock for longer than this; True as well if the file system has no locks."""
    until = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_AGAIN_S)
        except OSError:
            return True
        else:
            return True
