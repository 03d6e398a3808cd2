"""Runs a command in the foreground, with the terminal, standard input and signals of seatrial, without a time limit."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

_SIGNALLED = 128
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that batch systems and users send to the command."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit status as in a shell (128 + number for a signal)."""

    exit_status: int
    started_s: float
    wall_s: float


def run_attached(command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> Ended:
    """Run a command to its end. `stdout` is a file descriptor for its output (default: our own).

    Ctrl-C reaches it directly from the terminal, and only the command reacts to it; other signals are forwarded.
    Raises OSError if it cannot be started.
    """
    forwarding = _SignalForwarding()
    with forwarding:
        started_s, start = time.time(), time.perf_counter()
        process = subprocess.Popen(list(command), env=dict(environment), stdout=stdout)
        forwarding.begin(process)
        status = process.wait()
    return Ended(status if status >= 0 else _SIGNALLED - status, started_s, time.perf_counter() - start)


class _SignalForwarding:
    """Context that forwards signals to the command; those that arrive before it has started are sent once it runs."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._pending: list[int] = []
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._forward)
        # A handler instead of SIG_IGN, which the command would inherit.
        self._previous[signal.SIGINT] = signal.signal(signal.SIGINT, lambda number, frame: None)

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._pending:
            process.send_signal(number)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        if self._process is None:
            self._pending.append(number)
        else:
            self._process.send_signal(number)
