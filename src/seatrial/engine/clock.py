"""The time of a whole command, for a budget that it must keep."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct, field

_NOT_TIMED_S = 1.0
"""The start of the interpreter and the output of the results, which the command cannot time itself."""


class Clock(Struct):
    """Seconds since it was made, and a second for what comes before and after; without the time that the command waited
    for others."""

    _began_s: float = field(default_factory=lambda: time.monotonic() - _NOT_TIMED_S)
    _waited_s: float = 0.0

    def elapsed_s(self) -> float:
        """The time so far, in seconds."""
        return time.monotonic() - self._began_s - self._waited_s

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """The time inside does not count."""
        since_s = time.monotonic()
        try:
            yield
        finally:
            self._waited_s += time.monotonic() - since_s
