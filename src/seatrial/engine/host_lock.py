"""One lab at a time on one host: two that measure at once would measure each other.

The lock is an abstract Unix socket (unix(7)): the kernel gives its name to one process of the host (of its network
namespace) and takes it back when that process ends, however it ends. Nothing lies on a disk.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_NAME = "\0seatrial.measures"
_AGAIN_S = 0.5


@contextmanager
def only_lab_on_this_host(waits_for: Callable[[int | None], None]) -> Iterator[None]:
    """Hold the lock; until it can be had, wait. `waits_for` is called once with the process that has it, if known."""
    told = False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        while True:
            try:
                lock.bind(_NAME)
                lock.listen()
                break
            except OSError:
                if not told:
                    waits_for(_holder())
                    told = True
                time.sleep(_AGAIN_S)
        yield


def _holder() -> int | None:
    """The process that holds the lock: the kernel tells a caller who listens (SO_PEERCRED)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.settimeout(1.0)
            caller.connect(_NAME)
            pid, _, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return None
    return int(pid) or None
