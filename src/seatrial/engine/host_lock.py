"""One measuring process at a time on one host: two would disturb each other.

The lock is an abstract Unix socket (unix(7)): the kernel gives its name to one process of the host (of its network
namespace) and frees it when that process ends, even if killed. No file is involved.
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
def exclusive_on_this_host(waits_for: Callable[[int | None], None]) -> Iterator[None]:
    """Wait for the lock and hold it. `waits_for` is called once with the id of the process that holds it, if known."""
    is_reported = False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        while True:
            try:
                lock.bind(_NAME)
                lock.listen()
                break
            except OSError:
                if not is_reported:
                    waits_for(_holder())
                    is_reported = True
                time.sleep(_AGAIN_S)
        yield


def _holder() -> int | None:
    """The process that holds the lock, from the socket's peer credentials (SO_PEERCRED)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        try:
            caller.settimeout(1.0)
            caller.connect(_NAME)
            pid, _, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        except OSError:
            return None
    return int(pid) or None
