"""Run a command in our place: with the terminal, the input and the signals that we have, for as long as it takes."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

_SIGNALLED = 128
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""What batch systems send, and what programs are told with: it is meant for the command."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit status as a shell tells it (128 + number for a signal)."""

    exit_status: int
    started_s: float
    wall_s: float


def run_attached(command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> Ended:
    """Run a command to its end. `stdout` is a descriptor for its output instead of ours.

    Ctrl-C reaches it from the terminal, as it would without us, and what it does about it is its own affair; other
    signals that end us are passed on. Raises OSError where it cannot be started.
    """
    passing = _Passing()
    with passing:
        started_s, start = time.time(), time.perf_counter()
        process = subprocess.Popen(list(command), env=dict(environment), stdout=stdout)
        passing.begin(process)
        status = process.wait()
    return Ended(status if status >= 0 else _SIGNALLED - status, started_s, time.perf_counter() - start)


class _Passing:
    """While this lasts, signals go to the command; those that come before it is started wait for it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: list[int] = []
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> None:
        for number in _PASSED_ON:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._pass_on)
        # A handler, and not SIG_IGN, which the command would inherit.
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, lambda number, frame: None)

    def __exit__(self, *raised: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def begin(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        for number in self._waiting:
            process.send_signal(number)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        if self._process is None:
            self._waiting.append(number)
        else:
            self._process.send_signal(number)
