"""Runs a command in the foreground, with the terminal, standard input and signals of seatrial, without a time limit."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from seatrial.model.frozen import Frozen
from seatrial.processes.start import Running

_SIGNALLED = 128
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
_FORWARDED = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that batch systems and users send to the command."""
_SI_KERNEL = 0x80
"""`si_code` of a signal that the terminal sent to its whole foreground group, the command included (sigaction(2))."""
_OVER = signal.SIGRTMIN
"""Ends the thread that forwards signals."""


class Ended(Frozen):
    """How a command ended: its exit status as in a shell (128 + number for a signal)."""

    exit_status: int
    started_s: float
    wall_s: float


def run_attached(command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> Ended:
    """Run a command to its end. `stdout` is a file descriptor for its output (default: our own).

    Signals that this process receives are forwarded, and only the command reacts to them; Ctrl-C reaches it directly
    from the terminal. Raises OSError if it cannot be started.
    """
    with ExitStack() as ours, _signals_taken() as forward_to:
        streams = [_stream(ours, number) for number in (0, 1 if stdout is None else stdout, 2)]
        started_s = time.time()
        program = Running(command, environment, streams, in_our_group=True)
        try:
            with forward_to(program):
                ending = program.wait()
        finally:
            program.end()
            ending = program.wait()
    status = -signal.SIGKILL if ending is None else ending.returncode
    wall_s = 0.0 if ending is None else ending.ended_s - ending.started_s
    return Ended(status if status >= 0 else _SIGNALLED - status, started_s, wall_s)


def _stream(ours: ExitStack, number: int) -> int:
    """A standard stream of ours; /dev/null if it is closed."""
    try:
        os.fstat(number)
    except OSError:
        number = os.open(os.devnull, os.O_RDWR)
        ours.callback(os.close, number)
    return number


@contextmanager
def _signals_taken() -> Iterator[Callable[[Running], _Forwarding]]:
    """Context in which signals are kept for `_Forwarding`; what this process ignores stays ignored."""
    taken = {number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*taken, _OVER})
    try:
        yield lambda program: _Forwarding(program, taken)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Forwarding:
    """Context that forwards signals to a program, those that arrived before it had started too."""

    def __init__(self, program: Running, numbers: set[signal.Signals]) -> None:
        self._program = program
        self._numbers = numbers
        self._thread = threading.Thread(target=self._forward, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        if self._thread.ident is not None:
            signal.pthread_kill(self._thread.ident, _OVER)
            self._thread.join()

    def _forward(self) -> None:
        while True:
            seen = signal.sigwaitinfo({*self._numbers, _OVER})
            if seen.si_signo == _OVER:
                return
            if not (seen.si_signo in _FROM_TERMINAL and seen.si_code == _SI_KERNEL):
                self._program.send_signal(seen.si_signo)
